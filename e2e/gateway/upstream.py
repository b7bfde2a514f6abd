"""A scripted provider on loopback. Speaks Anthropic Messages, Chat Completions and Responses, streaming or not.

The scripted model repeats the same search. It stops when it receives guidance, or after `TURNS_MAX` turns. A suffix of
the model name selects further behaviour:

- `…-refuses`: responds with 400 to a system or developer message after the first message, as older models do.
- `…-dies`: ends a stream in the middle of an event.
- `…-garbage`: responds with bytes that are neither JSON nor an event.
- `…-busy`: responds with 529 and an error body.
- `…-thinks`: adds a thinking block with a signature that must come back unchanged.

Every request is recorded byte for byte. The prefix that a request shares with the previous one of its conversation
counts as cached.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TURNS_MAX = 14
SIGN = "Run monitor of this workspace"
SEARCH = {"query": "session timeout"}
THOUGHT = "I will search for the session timeout setting."
FINAL = "The setting does not exist under that name; I looked at the configuration instead."


@dataclass
class Seen:
    """A recorded request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)


@dataclass
class Upstream:
    """A running provider and its recorded requests."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    prefixes: dict[str, bytes] = field(default_factory=dict)

    def of_model(self, model: str) -> list[Seen]:
        return [seen for seen in self.seen if f'"{model}"'.encode() in seen.body]

    def cached(self, conversation: str, prompt: bytes) -> int:
        """Length of the prefix shared with the previous prompt of the conversation, in bytes."""
        with self.lock:
            before = self.prefixes.get(conversation, b"")
            self.prefixes[conversation] = prompt
        common = 0
        for old, new in zip(before, prompt):
            if old != new:
                break
            common += 1
        return common


def start() -> tuple[Upstream, ThreadingHTTPServer]:
    upstream = Upstream()
    handler = type("Handler", (Handler,), {"upstream": upstream})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    upstream.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return upstream, server


class Handler(BaseHTTPRequestHandler):
    upstream: Upstream
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # one packet for headers and body

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.record(b"")
        self.answer(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.record(body)
        path = self.path.split("?")[0]
        if path.endswith("/count_tokens"):
            self.answer(200, {"input_tokens": len(body) // 4})
            return
        dialects = {"/v1/messages": Anthropic, "/v1/chat/completions": Chat, "/v1/responses": Responses}
        if path not in dialects:
            self.answer(404, {"error": {"type": "not_found_error", "message": f"no such path: {path}"}})
            return
        turn = dialects[path](self.upstream, body)
        if turn.model.endswith("-busy"):
            self.answer(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
        elif turn.model.endswith("-refuses") and turn.has_late_system():
            self.answer(400, {"type": "error", "error": {"type": "invalid_request_error",
                                                          "message": "role 'system' is not supported"}})
        elif turn.model.endswith("-garbage"):
            self.raw(200, "text/event-stream" if turn.is_stream else "application/json", [b"\x00\xff{{{not an answer"])
        elif turn.is_stream:
            self.stream(turn)
        else:
            self.answer(200, turn.body())

    def stream(self, turn: Any) -> None:
        events = [event.encode() for event in turn.events()]
        if turn.model.endswith("-dies"):
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", "1000000")
            self.end_headers()
            self.wfile.write(events[0] + events[1][:10])
            self.wfile.flush()
            self.close_connection = True
            return
        self.raw(200, "text/event-stream; charset=utf-8", events)

    def record(self, body: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.upstream.lock:
            self.upstream.seen.append(Seen(self.path, headers, body))

    def answer(self, status: int, body: Any) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.send_header("request-id", "req_scripted")
        self.end_headers()
        self.wfile.write(raw)
        self.wfile.flush()

    def raw(self, status: int, kind: str, chunks: list[bytes]) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()


class Turn:
    """The next response of the model. A subclass implements the format of a dialect."""

    items: str

    def __init__(self, upstream: Upstream, raw: bytes) -> None:
        self.request = json.loads(raw)
        self.model: str = self.request.get("model", "")
        self.is_stream = bool(self.request.get("stream"))
        items = self.request.get(self.items) or []
        self.messages: list[Any] = [{"role": "user", "content": items}] if isinstance(items, str) else items
        self.turns = sum(self.is_result(message) for message in self.messages)
        self.is_over = SIGN in json.dumps(self.messages[1:]) + json.dumps(self.system()) or self.turns >= TURNS_MAX
        prompt = (json.dumps(self.request.get("tools")) + json.dumps(self.system())
                  + "".join(json.dumps(message) for message in self.messages)).encode()
        first = json.dumps(self.messages[:1]) + self.model
        self.cache_read = upstream.cached(first, prompt) // 4
        self.input = len(prompt) // 4
        self.id = uuid.uuid4().hex[:12]

    def system(self) -> Any:
        return self.request.get("system") or self.request.get("instructions")

    def is_result(self, message: Any) -> bool:
        raise NotImplementedError

    def has_late_system(self) -> bool:
        return any(message.get("role") in ("system", "developer") for message in self.messages[1:])


class Anthropic(Turn):
    items = "messages"

    def is_result(self, message: Any) -> bool:
        return "tool_result" in json.dumps(message.get("content"))

    def blocks(self) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        if self.model.endswith("-thinks"):
            blocks.append({"type": "thinking", "thinking": f"Turn {self.turns}.", "signature": f"sig-{self.turns}=="})
        names = {tool.get("name") for tool in self.request.get("tools") or []}
        if self.is_over or not names:
            return [*blocks, {"type": "text", "text": FINAL}]
        call = {"type": "tool_use", "id": f"toolu_{self.id}", "name": "search", "input": SEARCH}
        if "search" not in names and "Bash" in names:
            search = {"command": "grep -rn session_timeout . || true", "description": "Search"}
            call |= {"name": "Bash", "input": search}
        return [*blocks, {"type": "text", "text": THOUGHT}, call]

    def usage(self) -> dict[str, int]:
        return {"input_tokens": self.input - self.cache_read, "cache_read_input_tokens": self.cache_read,
                "cache_creation_input_tokens": 0, "output_tokens": 40}

    def body(self) -> dict[str, Any]:
        blocks = self.blocks()
        return {"id": f"msg_{self.id}", "type": "message", "role": "assistant", "model": self.model,
                "content": blocks, "stop_reason": blocks[-1]["type"].replace("text", "end_turn"),
                "stop_sequence": None, "usage": self.usage()}

    def events(self) -> Iterator[str]:
        def event(kind: str, **data: Any) -> str:
            return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"

        whole = self.body()
        yield event("message_start", message={**whole, "content": [], "stop_reason": None})
        for at, block in enumerate(whole["content"]):
            empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}
            yield event("content_block_start", index=at, content_block={**block, **empty[block["type"]]})
            if block["type"] == "text":
                for part in (block["text"][:9], block["text"][9:]):
                    yield event("content_block_delta", index=at, delta={"type": "text_delta", "text": part})
            elif block["type"] == "thinking":
                yield event("content_block_delta", index=at,
                            delta={"type": "thinking_delta", "thinking": block["thinking"]})
                yield event("content_block_delta", index=at,
                            delta={"type": "signature_delta", "signature": block["signature"]})
            else:
                text = json.dumps(block["input"])
                for part in ("", text[:5], text[5:]):
                    yield event("content_block_delta", index=at,
                                delta={"type": "input_json_delta", "partial_json": part})
            yield event("content_block_stop", index=at)
        yield event("message_delta", delta={"stop_reason": whole["stop_reason"], "stop_sequence": None},
                    usage=self.usage())
        yield event("message_stop")


class Chat(Turn):
    items = "messages"

    def is_result(self, message: Any) -> bool:
        return bool(message.get("role") == "tool")

    def message(self) -> dict[str, Any]:
        if self.is_over:
            return {"role": "assistant", "content": FINAL}
        call = {"id": f"call_{self.id}", "type": "function",
                "function": {"name": "search", "arguments": json.dumps(SEARCH)}}
        return {"role": "assistant", "content": THOUGHT, "tool_calls": [call]}

    def usage(self) -> dict[str, Any]:
        return {"prompt_tokens": self.input, "completion_tokens": 40, "total_tokens": self.input + 40,
                "prompt_tokens_details": {"cached_tokens": self.cache_read}}

    def body(self) -> dict[str, Any]:
        reason = "stop" if self.is_over else "tool_calls"
        return {"id": f"chatcmpl-{self.id}", "object": "chat.completion", "created": 1, "model": self.model,
                "choices": [{"index": 0, "message": self.message(), "finish_reason": reason}],
                "usage": self.usage()}

    def events(self) -> Iterator[str]:
        def chunk(delta: dict[str, Any], reason: str | None = None) -> str:
            data = {"id": f"chatcmpl-{self.id}", "object": "chat.completion.chunk", "created": 1,
                    "model": self.model, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
            return f"data: {json.dumps(data)}\n\n"

        message = self.message()
        yield chunk({"role": "assistant", "content": ""})
        yield chunk({"content": message["content"][:9]})
        yield chunk({"content": message["content"][9:]})
        for call in message.get("tool_calls", []):
            function = call["function"]
            yield chunk({"tool_calls": [{"index": 0, **call, "function": {**function, "arguments": ""}}]})
            for part in (function["arguments"][:5], function["arguments"][5:]):
                yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
        yield chunk({}, "stop" if self.is_over else "tool_calls")
        if (self.request.get("stream_options") or {}).get("include_usage"):
            data = {"id": f"chatcmpl-{self.id}", "object": "chat.completion.chunk", "created": 1,
                    "model": self.model, "choices": [], "usage": self.usage()}
            yield f"data: {json.dumps(data)}\n\n"
        yield "data: [DONE]\n\n"


class Responses(Turn):
    items = "input"

    def is_result(self, message: Any) -> bool:
        return bool(message.get("type") in ("function_call_output", "custom_tool_call_output"))

    def call(self) -> dict[str, Any]:
        """The search as a tool call; uses the shell if the client has no search tool."""
        names = {tool.get("name") for tool in self.request.get("tools") or []}
        if "search" in names or not names & {"shell", "shell_command", "exec_command", "local_shell"}:
            return {"name": "search", "arguments": json.dumps(SEARCH)}
        if "exec_command" in names:
            return {"name": "exec_command", "arguments": json.dumps({"cmd": "grep -rn session_timeout . || true"})}
        name = "shell_command" if "shell_command" in names else "shell"
        command: Any = "grep -rn session_timeout . || true"
        if name == "shell":
            command = ["bash", "-lc", command]
        return {"name": name, "arguments": json.dumps({"command": command})}

    def output(self) -> list[dict[str, Any]]:
        text = FINAL if self.is_over else THOUGHT
        message = {"type": "message", "id": f"msg_{self.id}", "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "text": text, "annotations": []}]}
        if self.is_over:
            return [message]
        call = {"type": "function_call", "id": f"fc_{self.id}", "call_id": f"call_{self.id}",
                "status": "completed", **self.call()}
        return [message, call]

    def body(self, status: str = "completed") -> dict[str, Any]:
        done = status == "completed"
        usage = {"input_tokens": self.input, "input_tokens_details": {"cached_tokens": self.cache_read},
                 "output_tokens": 40, "output_tokens_details": {"reasoning_tokens": 0},
                 "total_tokens": self.input + 40}
        return {"id": f"resp_{self.id}", "object": "response", "created_at": 1, "status": status,
                "model": self.model, "output": self.output() if done else [], "usage": usage if done else None,
                "error": None, "incomplete_details": None, "instructions": None, "metadata": {},
                "parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto", "tools": [],
                "top_p": 1.0}

    def events(self) -> Iterator[str]:
        number = 0

        def event(kind: str, **data: Any) -> str:
            nonlocal number
            number += 1
            return f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': number, **data})}\n\n"

        yield event("response.created", response=self.body("in_progress"))
        for at, item in enumerate(self.output()):
            started = {**item, "status": "in_progress"}
            if item["type"] == "message":
                started["content"] = []
                yield event("response.output_item.added", output_index=at, item=started)
                part = item["content"][0]
                place = {"item_id": item["id"], "output_index": at, "content_index": 0}
                yield event("response.content_part.added", **place, part={**part, "text": ""})
                for text in (part["text"][:9], part["text"][9:]):
                    yield event("response.output_text.delta", **place, delta=text, logprobs=[])
                yield event("response.output_text.done", **place, text=part["text"], logprobs=[])
                yield event("response.content_part.done", **place, part=part)
            else:
                started["arguments"] = ""
                yield event("response.output_item.added", output_index=at, item=started)
                place = {"item_id": item["id"], "output_index": at}
                yield event("response.function_call_arguments.delta", **place, delta=item["arguments"])
                yield event("response.function_call_arguments.done", **place, arguments=item["arguments"],
                            name=item["name"])
            yield event("response.output_item.done", output_index=at, item=item)
        yield event("response.completed", response=self.body())
