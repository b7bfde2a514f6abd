"""Gateway conversations on three nodes with random routing equal those on one node."""

from __future__ import annotations

import http.server
import json
import random
import threading
from pathlib import Path

import pytest

from cluster import Node, Postgres

NODES = 3
REQUESTS = 12
TASK = "Find where the session timeout is set."
QUERY = '{"query": "session timeout"}'


class Provider(http.server.ThreadingHTTPServer):
    """Returns the same search in Chat Completions and Responses, and records its requests."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                number = len(provider.seen)
                provider.seen.append(self.rfile.read(int(self.headers["content-length"])).decode())
                said = response(number) if self.path.endswith("/responses") else completion(number)
                body = json.dumps(said).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def call(number: int) -> dict:
    return {"id": f"call_{number:06}", "type": "function", "function": {"name": "search", "arguments": QUERY}}


def completion(number: int) -> dict:
    message = {"role": "assistant", "content": "I search for it.", "tool_calls": [call(number)]}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}


def response(number: int) -> dict:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I search for it."}]}
    asked = {"type": "function_call", "call_id": f"call_{number:06}", "name": "search", "arguments": QUERY}
    return {"id": f"resp_{number:06}", "object": "response", "status": "completed", "model": "m",
            "output": [said, asked]}


def history(turns: int) -> dict:
    messages: list[dict] = [{"role": "user", "content": TASK}]
    for turn in range(turns):
        messages.append({"role": "assistant", "content": "I search for it.", "tool_calls": [call(turn)]})
        messages.append({"role": "tool", "tool_call_id": f"call_{turn:06}", "content": "no match"})
    return {"model": "m", "messages": messages}


def rewritten(turns: int) -> dict:
    """The system prompt contains the time, so that no request shares a prefix with the previous one."""
    body = history(turns)
    body["messages"].insert(0, {"role": "system", "content": f"It is {turns} o'clock."})
    return body


def stored_by_provider(turns: int) -> dict:
    """The provider stores the conversation; a request contains only new items and the id of the previous response."""
    if turns == 0:
        return {"model": "m", "input": TASK}
    result = {"type": "function_call_output", "call_id": f"call_{turns - 1:06}", "output": "no match"}
    return {"model": "m", "input": [result], "previous_response_id": f"resp_{turns - 1:06}"}


CHAT, RESPONSES = "/openai/v1/chat/completions", "/openai/v1/responses"
WAYS = {
    "named": (history, CHAT, {"x_reasonblocks_run_id": "talk"}),
    "nameless": (history, CHAT, {}),
    "rewritten": (rewritten, CHAT, {}),
    "stored": (stored_by_provider, RESPONSES, {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_conversation_on_random_nodes_equals_one_node(way: str, postgres: Postgres, tmp_path: Path) -> None:
    request, path, headers = WAYS[way]
    one, many = Provider(), Provider()
    patient = tmp_path / "patient.toml"
    patient.write_text("[gateway]\ndecision_timeout_ms = 20000\n")  # the test machine may be slow

    def node(url: str, name: str, provider: Provider) -> Node:
        upstream = f"http://127.0.0.1:{provider.server_port}"
        return Node(url, tmp_path / name, RB_UPSTREAM_OPENAI=upstream, RB_CONFIG=str(patient)).start()

    alone = node("", "alone", one)
    url = postgres.database(f"conversation_{way}")
    nodes = [node(url, str(at), many) for at in range(NODES)]
    choice = random.Random(7)
    for turns in range(REQUESTS):
        body = json.dumps(request(turns)).encode()
        for asked in (alone, choice.choice(nodes)):
            status, said, _ = asked.send("POST", path, body, content_type="application/json", **headers)
            assert status == 200, said
    assert many.seen == one.seen
    steered = sum("Run monitor of this workspace" in body for body in one.seen)
    assert steered > 0, "no guidance was inserted"
    for asked in (alone, nodes[0]):
        runs = asked.ask("GET", "/v1/monitor/runs")
        assert len(runs) == 1, runs
        steps = asked.run(runs[0]["run_id"], steps=REQUESTS)["steps"]
        assert [step["action"] for step in steps] == [None] + ["search"] * (REQUESTS - 1)
    print(f"{REQUESTS} requests of a conversation ({way}) on {NODES} nodes reached the provider as from one, "
          f"{steered} of them steered")
    for asked in [alone, *nodes]:
        asked.stop()
