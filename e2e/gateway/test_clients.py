"""Provider SDKs with a changed base URL: a looping agent is steered and nothing else changes."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
import uuid
from typing import Any

import anthropic
import openai
import pytest

import loops
from conftest import Gateway
from upstream import SIGN, TURNS_MAX, Seen

KEY = "sk-secret-of-the-provider"


def anthropic_client(gateway: Gateway, **headers: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=gateway.anthropic, api_key=KEY, max_retries=0, default_headers=headers)


def openai_client(gateway: Gateway, **headers: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=gateway.openai, api_key=KEY, max_retries=0, default_headers=headers)


def named(run_id: str) -> dict[str, str]:
    return {"x-reasonblocks-run-id": run_id}


LOOPS = {
    "messages": lambda gateway, model, **headers: loops.run_anthropic(anthropic_client(gateway, **headers), model),
    "messages streamed": lambda gateway, model, **headers: loops.run_anthropic(
        anthropic_client(gateway, **headers), model, stream=True),
    "chat": lambda gateway, model, **headers: loops.run_chat(openai_client(gateway, **headers), model),
    "chat streamed": lambda gateway, model, **headers: loops.run_chat(
        openai_client(gateway, **headers), model, stream=True),
    "responses": lambda gateway, model, **headers: loops.run_responses(openai_client(gateway, **headers), model),
    "responses streamed": lambda gateway, model, **headers: loops.run_responses(
        openai_client(gateway, **headers), model, stream=True),
}


def items(seen: Seen) -> list[Any]:
    body = seen.json
    return body.get("messages") or body["input"]


@pytest.mark.parametrize("kind", LOOPS)
def test_looping_agent_is_steered(gateway: Gateway, kind: str) -> None:
    model, run_id = f"{kind.replace(' ', '-')}-{uuid.uuid4()}", f"loop-{uuid.uuid4()}"
    calls = LOOPS[kind](gateway, model, **named(run_id))
    assert calls < TURNS_MAX, "guidance ended the loop"
    requests = gateway.upstream.of_model(model)
    assert len(requests) == calls, "no request was repeated"
    run = gateway.run(run_id, steps=calls)
    assert run["task"] == loops.TASK and run["framework"] == "gateway"
    assert any("semantic_loop" in step["fired"] for step in run["steps"])
    assert sum(step["tokens"] for step in run["steps"]) > 0 or kind == "chat streamed"
    for request in requests:
        assert request.headers.get("x-api-key", request.headers.get("authorization", "")).endswith(KEY)
        assert not [name for name in request.headers if name.startswith("x-reasonblocks")]


@pytest.mark.parametrize("kind", LOOPS)
def test_each_request_extends_the_previous_one(gateway: Gateway, kind: str) -> None:
    model = f"prefix-{kind.replace(' ', '-')}-{uuid.uuid4()}"
    LOOPS[kind](gateway, model, **named(f"prefix-{uuid.uuid4()}"))
    requests = [items(request) for request in gateway.upstream.of_model(model)]
    for before, after in zip(requests, requests[1:]):
        assert after[: len(before)] == before, "earlier messages are unchanged"


@pytest.mark.parametrize("kind", LOOPS)
def test_observed_run_is_unchanged(gateway: Gateway, kind: str) -> None:
    model, run_id = f"observed-{uuid.uuid4()}", f"observed-{uuid.uuid4()}"
    headers = {**named(run_id), "x-reasonblocks-mode": "observe"}
    calls = LOOPS[kind](gateway, model, **headers)
    assert calls == TURNS_MAX + 1, "no guidance was inserted"
    assert all(SIGN.encode() not in request.body for request in gateway.upstream.of_model(model))
    run = gateway.run(run_id, steps=calls)
    said = [text for step in run["steps"] for text in step["intervention_texts"]]
    assert said, "planned guidance is recorded"


def test_run_without_id_is_recognised_by_its_messages(gateway: Gateway) -> None:
    model = f"nameless-{uuid.uuid4()}"
    for runs in (1, 2):
        calls = loops.run_anthropic(anthropic_client(gateway), model)
        assert calls < TURNS_MAX
        deadline = time.monotonic() + 10
        while True:
            rows = [row for row in gateway.get("/v1/monitor/runs?limit=50") if row["model"] == model]
            # A step for each call, and the final answer as the closing step.
            if len(rows) == runs and all(row["step_count"] == calls + 1 for row in rows):
                break
            assert time.monotonic() < deadline, f"one run for each conversation: {rows}"
            time.sleep(0.05)


def test_async_streams(gateway: Gateway) -> None:
    client = anthropic.AsyncAnthropic(base_url=gateway.anthropic, api_key=KEY, max_retries=0)
    model = f"async-{uuid.uuid4()}"
    assert asyncio.run(loops.run_anthropic_async(client, model, extra_headers=named(model))) < TURNS_MAX


def test_thinking_blocks_are_unchanged(gateway: Gateway) -> None:
    model = f"{uuid.uuid4()}-thinks"
    assert loops.run_anthropic(anthropic_client(gateway), model, stream=True) < TURNS_MAX
    last = items(gateway.upstream.of_model(model)[-1])
    signatures = [block["signature"] for message in last for block in message["content"]
                  if isinstance(block, dict) and block.get("type") == "thinking"]
    assert signatures == [f"sig-{turn}==" for turn in range(len(signatures))] and signatures


def test_refused_message_role_falls_back(gateway: Gateway) -> None:
    model = f"{uuid.uuid4()}-refuses"
    calls = loops.run_anthropic(anthropic_client(gateway), model)
    assert calls < TURNS_MAX, "the agent is steered and does not receive the refusal"
    late = [request for request in gateway.upstream.of_model(model)
            if any(message["role"] == "system" for message in items(request))]
    assert len(late) == 1, "the refused role is tried once"


def test_guidance_keeps_its_position_after_a_restart(gateway: Gateway) -> None:
    model, run_id = f"restart-{uuid.uuid4()}", f"restart-{uuid.uuid4()}"
    client = anthropic_client(gateway, **named(run_id))
    messages: list[Any] = [{"role": "user", "content": loops.TASK}]
    for call in range(loops.TURNS_MAX):
        message = client.messages.create(**loops.anthropic_request(model, messages))
        if not loops.anthropic_results(message):
            break
        messages += [{"role": "assistant", "content": message.content},
                     {"role": "user", "content": loops.anthropic_results(message)}]
    before = items(gateway.upstream.of_model(model)[-1])
    gateway.run(run_id, steps=call)
    gateway.stop()
    gateway.start()
    messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": "And now?"}]
    client.messages.create(**loops.anthropic_request(model, messages))
    after = items(gateway.upstream.of_model(model)[-1])
    assert after[: len(before)] == before


def call(gateway: Gateway, path: str, body: Any, **headers: str) -> tuple[int, dict[str, str], bytes]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"content-type": "application/json", "x-api-key": KEY, **headers}
    request = urllib.request.Request(gateway.url + path, data=data, headers=given)
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, dict(reply.headers), reply.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def test_request_bytes_are_unchanged(gateway: Gateway) -> None:
    odd = b'{ "model":"odd","max_tokens" : 1e2,"unknown":{"b":1,"a":[ 1.0,2 ]},"messages":[{"role":"user",' \
          b'"content":"\\u00e9 \\/ \xc3\xa9"}],"betas":["x"] }'
    assert call(gateway, "/anthropic/v1/messages?beta=true", odd, **{"x-reasonblocks-mode": "observe"})[0] == 200
    seen = next(seen for seen in gateway.upstream.seen if b"unknown" in seen.body)
    assert seen.body == odd and seen.path == "/v1/messages?beta=true"


def test_upstream_errors_are_forwarded(gateway: Gateway) -> None:
    request = {"max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}
    status, headers, body = call(gateway, "/anthropic/v1/messages", {**request, "model": "m-busy"})
    assert (status, json.loads(body)["error"]["type"]) == (529, "overloaded_error")
    assert headers["request-id"] == "req_scripted"
    status, _, body = call(gateway, "/anthropic/v1/messages", {**request, "model": "m-garbage"})
    assert (status, body) == (200, b"\x00\xff{{{not an answer")
    assert call(gateway, "/anthropic/v1/messages/count_tokens", {**request, "model": "m"})[0] == 200
    assert call(gateway, "/anthropic/v1/nothing", {})[0] == 404
    assert call(gateway, "/anthropic/v1/messages", b"this is not JSON")[0] in (400, 502)


def test_broken_stream_breaks_for_the_client(gateway: Gateway) -> None:
    request = {"model": "m-dies", "max_tokens": 1, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    with pytest.raises(Exception):
        call(gateway, "/anthropic/v1/messages", request)
    assert gateway.get("/health")["status"] == "ok"


def test_agents_sdk(gateway: Gateway) -> None:
    from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled

    set_tracing_disabled(True)

    @function_tool
    def search(query: str) -> str:
        """Searches the code."""
        return loops.RESULT

    client = openai.AsyncOpenAI(base_url=gateway.openai, api_key=KEY, max_retries=0)
    model = f"agents-{uuid.uuid4()}"
    agent = Agent(name="looper", instructions=loops.SYSTEM, tools=[search],
                  model=OpenAIResponsesModel(model=model, openai_client=client))
    result = Runner.run_sync(agent, loops.TASK, max_turns=25)
    assert "configuration" in result.final_output
    assert len(gateway.upstream.of_model(model)) < TURNS_MAX


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_langchain_chat_models(gateway: Gateway, provider: str) -> None:
    from langchain.agents import create_agent
    from langchain_anthropic import ChatAnthropic
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    @tool
    def search(query: str) -> str:
        """Searches the code."""
        return loops.RESULT

    model = f"langchain-{provider}-{uuid.uuid4()}"
    chat: Any = (ChatAnthropic(model=model, base_url=gateway.anthropic, api_key=KEY, max_retries=0)
                 if provider == "anthropic"
                 else ChatOpenAI(model=model, base_url=gateway.openai, api_key=KEY, max_retries=0))
    agent = create_agent(chat, tools=[search], system_prompt=loops.SYSTEM)
    agent.invoke({"messages": [{"role": "user", "content": loops.TASK}]}, {"recursion_limit": 80})
    assert len(gateway.upstream.of_model(model)) < TURNS_MAX
