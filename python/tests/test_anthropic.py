"""Anthropic client against a scripted Messages API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic

from reasonblocks import ReasonBlocks
from reasonblocks.integrations.claude_tools import run_messages_agent_loop

MODEL = "claude-haiku-4-5"
SPECS = [{"name": "search", "description": "Search.", "input_schema": {"type": "object", "properties": {}}}]


def message(at: int, count: int, text: str | None = "Let me search again") -> dict[str, Any]:
    done = at >= count
    content: list[dict[str, Any]] = [{"type": "text", "text": "I could not find it." if done else f"{text} {at}"}]
    if text is None and not done:
        content = []
    if not done:
        content.append({"type": "tool_use", "id": f"tu_{at}", "name": "search", "input": {"query": "session"}})
    return {
        "id": f"msg_{at}", "type": "message", "role": "assistant", "model": MODEL, "content": content,
        "stop_reason": "end_turn" if done else "tool_use", "stop_sequence": None,
        "usage": {"input_tokens": 90, "output_tokens": 10, "cache_read_input_tokens": 30},
    }  # fmt: skip


def as_events(reply: dict[str, Any]) -> bytes:
    events: list[tuple[str, dict[str, Any]]] = [("message_start", {"message": {**reply, "content": []}})]
    for index, block in enumerate(reply["content"]):
        if block["type"] == "text":
            started, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            started = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events.append(("content_block_start", {"index": index, "content_block": started}))
        events.append(("content_block_delta", {"index": index, "delta": delta}))
        events.append(("content_block_stop", {"index": index}))
    stop = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    events.append(("message_delta", {"delta": stop, "usage": {"output_tokens": 10}}))
    events.append(("message_stop", {}))
    return b"".join(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode() for name, data in events)


def provider(serve: Any, count: int, text: str | None = "Let me search again") -> Any:
    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        at = sum(asked["role"] == "assistant" for asked in body["messages"])
        reply = message(at, count, text)
        return 200, as_events(reply) if body.get("stream") else reply

    return serve(answer)


def bodies(server: Any) -> list[Any]:
    return [body for _, path, body in server.requests if path.startswith("/v1/messages")]


def steered(server: Any) -> list[int]:
    return [at for at, body in enumerate(bodies(server)) if "[REASONBLOCKS]" in json.dumps(body)]


def nothing(name: str, arguments: Any) -> str:
    return f"nothing found for {arguments['query']}"


def loop(server: Any, session: Any, **options: Any) -> dict[str, Any]:
    client = Anthropic(api_key="x", base_url=server.url, max_retries=0)
    asked = [{"role": "user", "content": "Where is the session expiry set?"}]
    return run_messages_agent_loop(
        client, model=MODEL, messages=asked, tool_specs=SPECS, dispatch=nothing, session=session, **options
    )


def test_loop_is_steered_and_history_is_unchanged(serve):
    server = provider(serve, 8)
    with ReasonBlocks(suite="both").claude_messages_session(model=MODEL) as session:
        result = loop(server, session, system="You fix bugs.")
    assert steered(server) == [3, 8]
    system = bodies(server)[3]["system"]
    assert system[0] == {"type": "text", "text": "You fix bugs.", "cache_control": {"type": "ephemeral"}}
    assert system[1]["text"].startswith("[REASONBLOCKS]\n")
    assert "cache_control" not in system[1]
    assert result["stop_reason"] == "end_turn"
    assert result["final_text"] == "I could not find it."
    assert result["tool_calls"][0] == ("search", {"query": "session"}, "nothing found for session")
    assert "REASONBLOCKS" not in json.dumps(result["messages"])
    entry = session.step_log[3]
    assert (entry.model_id, entry.tokens, entry.cache_read_tokens) == (MODEL, 130, 30)
    assert entry.tool_calls == ["search"]


def test_turns_without_text_belong_to_the_same_run(serve):
    server = provider(serve, 9, text=None)
    session = ReasonBlocks(suite="both").claude_messages_session()
    loop(server, session)
    assert steered(server) == [3, 6, 9]
    assert "system" not in bodies(server)[0]
    assert bodies(server)[3]["system"][0]["text"].startswith("[REASONBLOCKS]")


def test_tail_guidance_keeps_its_position(serve):
    server = provider(serve, 7)
    loop(server, ReasonBlocks(suite="both").claude_messages_session(), placement="tail")
    assert steered(server) == [3, 4, 5, 6, 7]
    for shorter, longer in zip(bodies(server)[3:], bodies(server)[4:], strict=False):
        assert longer["messages"][: len(shorter["messages"])] == shorter["messages"]


def test_failed_tools_are_reported_and_the_loop_continues(serve):
    server = provider(serve, 2)

    def broken(name: str, arguments: Any) -> str:
        raise KeyError("gone")

    client = Anthropic(api_key="x", base_url=server.url)
    result = run_messages_agent_loop(
        client, model=MODEL, messages=[{"role": "user", "content": "x"}], tool_specs=SPECS, dispatch=broken
    )
    assert result["tool_calls"][0][2] == "KeyError: 'gone'"
    assert result["messages"][2]["content"][0]["is_error"] is True


def test_token_budget_and_max_steps_end_the_loop(serve):
    rb = ReasonBlocks(suite="both", token_budget=300, enforce_token_budget=True)
    assert loop(provider(serve, 20), rb.claude_messages_session())["stop_reason"] == "token_budget"
    assert loop(provider(serve, 20), None, max_steps=2)["stop_reason"] == "max_steps"


def test_model_routing_selects_models_by_state(serve):
    server = provider(serve, 8)
    rb = ReasonBlocks(suite="both", model_routing={"FAST": "anthropic:claude-opus-4-1"})
    loop(server, rb.claude_messages_session())
    assert [body["model"] for body in bodies(server)][5:8] == [MODEL, "claude-opus-4-1", "claude-opus-4-1"]


def drive(create: Any, handle: Any) -> None:
    """A custom agent loop."""
    history: list[dict[str, Any]] = [{"role": "user", "content": "Where is it?"}]
    for _ in range(5):
        content = handle(create(history))
        history.append({"role": "assistant", "content": content})
        uses = [block for block in content if block["type"] == "tool_use"]
        if not uses:
            return
        results = [{"type": "tool_result", "tool_use_id": use["id"], "content": "nothing"} for use in uses]
        history.append({"role": "user", "content": results})


def test_wrapped_client_steers_plain_and_streamed_calls(serve):
    for how in ("create", "events", "stream"):
        server = provider(serve, 4)
        client = ReasonBlocks(suite="both").anthropic(Anthropic(api_key="x", base_url=server.url), task="find it")

        def one(history: Any, client: Any = client, how: str = how) -> Any:
            request = {"model": MODEL, "max_tokens": 100, "messages": history, "tools": SPECS}
            if how == "create":
                reply = client.messages.create(**request)
                return [block.model_dump(exclude_none=True) for block in reply.content]
            if how == "stream":
                with client.messages.stream(**request) as stream:
                    reply = stream.get_final_message()
                return [block.model_dump(exclude_none=True) for block in reply.content]
            list(client.messages.create(**request, stream=True))
            return message(sum(m["role"] == "assistant" for m in history), 4)["content"]

        with client:
            drive(one, lambda content: content)
        assert steered(server) == [3], how
        assert [e.tool_calls for e in client.session.step_log] == [["search"]] * 4 + [[]], how
        assert client.session.step_log[2].output_tokens == 10, how
        assert client.api_key == "x"


async def test_async_client_is_steered(serve):
    for how in ("create", "events", "stream"):
        server = provider(serve, 4)
        async with ReasonBlocks(suite="both").anthropic(AsyncAnthropic(api_key="x", base_url=server.url)) as client:
            history: list[dict[str, Any]] = [{"role": "user", "content": "Where is it?"}]
            for at in range(5):
                request: dict[str, Any] = {"model": MODEL, "max_tokens": 100, "messages": history, "tools": SPECS}
                if how == "create":
                    await client.messages.create(**request)
                elif how == "stream":
                    async with client.messages.stream(**request) as stream:
                        await stream.get_final_message()
                else:
                    async for _event in await client.messages.create(**request, stream=True):
                        pass
                history.append({"role": "assistant", "content": message(at, 4)["content"]})
                result = {"type": "tool_result", "tool_use_id": f"tu_{at}", "content": "nothing"}
                history.append({"role": "user", "content": [result]})
        assert steered(server) == [3], how
        assert len(client.session.step_log) == 5


def test_provider_errors_propagate_without_retry(serve):
    from anthropic import InternalServerError

    server = serve(lambda *_: (500, {"type": "error", "error": {"type": "api_error", "message": "down"}}))
    client = ReasonBlocks(suite="both").anthropic(Anthropic(api_key="x", base_url=server.url, max_retries=0))
    with pytest.raises(InternalServerError), client:
        client.messages.create(model=MODEL, max_tokens=10, messages=[{"role": "user", "content": "x"}])
    assert len(server.requests) == 1
    assert client.session.step_log == []


def test_thinking_is_part_of_the_thought():
    from reasonblocks.integrations.anthropic_messages import _parse_turn

    thinking = {"type": "thinking", "thinking": "The setting may be elsewhere.", "signature": "s"}
    (step,) = _parse_turn([thinking, *message(0, 1)["content"]]).steps()
    assert step.thought == "The setting may be elsewhere.\n\nLet me search again 0"
