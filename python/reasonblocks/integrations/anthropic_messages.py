"""Anthropic Messages API: a steered client with the interface of the wrapped one, and an agent loop."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any

from reasonblocks._engine import Step, Turn
from reasonblocks.integrations.fields import ToolResults, count, get, join_texts, strip_provider
from reasonblocks.steering import SessionOwner, SteeringSession, StepDecision, TokenBudgetReached
from reasonblocks.types import Placement

logger = logging.getLogger("reasonblocks")

Request = dict[str, Any]


class SteeredAnthropic(SessionOwner):
    """A sync or async Anthropic client for one run. All attributes except `messages` are those of the client."""

    def __init__(self, client: Any, session: SteeringSession, *, placement: Placement = "system") -> None:
        self._client = client
        self.session = session
        self.messages = SteeredMessages(client.messages, session, placement)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class SteeredMessages:
    """`client.messages` of a steered client."""

    def __init__(self, messages: Any, session: SteeringSession, placement: Placement) -> None:
        self._messages = messages
        self._session = session
        self._placement = placement
        self._is_async = type(messages).__name__.startswith("Async")
        self._turn: Turn | None = None
        self._pinned: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._messages, name)

    def create(self, **request: Any) -> Any:
        """Make one model call. Returns a coroutine if the client is async."""
        if self._is_async:
            return self._create_async(request)
        decision = self._session.begin(self._new_steps(request), model_id=str(request.get("model", "")))
        request = self._apply_decision(request, decision)
        decision.started = time.perf_counter()
        reply = self._messages.create(**request)
        if request.get("stream"):
            return self._record_stream(reply, decision, request)
        self._record_response(decision, request, _parse_turn(reply.content), reply.usage)
        return reply

    async def _create_async(self, request: Request) -> Any:
        decision = await self._session.abegin(self._new_steps(request), model_id=str(request.get("model", "")))
        request = self._apply_decision(request, decision)
        decision.started = time.perf_counter()
        reply = await self._messages.create(**request)
        if request.get("stream"):
            return self._record_async_stream(reply, decision, request)
        self._record_response(decision, request, _parse_turn(reply.content), reply.usage)
        return reply

    def stream(self, **request: Any) -> _SteeredStream:
        """Stream one call, as a context manager."""
        return _SteeredStream(self, request)

    # One model call.

    def _new_steps(self, request: Request) -> list[Step]:
        try:
            results, user_input = _tool_results(request.get("messages") or [])
            steps = self._turn.steps(results, user_input) if self._turn is not None else []
        except Exception:
            logger.exception("failed to read the messages; this step is not monitored")
            steps = []
        self._turn = None
        return steps

    def _apply_decision(self, request: Request, decision: StepDecision) -> Request:
        if decision.stop:
            raise TokenBudgetReached(decision.stop)
        if not self._session.is_steered:
            return request
        request = dict(request)
        if decision.model_override:
            request["model"] = strip_provider(decision.model_override)
        if self._placement == "tail":
            request["messages"] = self._with_tail(request.get("messages") or [], decision.fragment)
        else:
            base = request.get("system")
            system = decision.system_blocks(base if isinstance(base, (str, list)) else None)
            if system:
                request["system"] = system
        return request

    def _with_tail(self, messages: list[Any], fragment: str | None) -> list[Any]:
        """Insert guidance at its original position in every later request, so that the prompt cache stays valid."""
        texts = dict(self._pinned)
        if fragment and messages:
            texts[len(messages) - 1] = fragment
        return [
            _with_block(message, texts[at]) if at in texts and message.get("role") == "user" else message
            for at, message in enumerate(messages)
        ]

    def _record_response(self, decision: StepDecision, request: Request, turn: Turn, usage: Any) -> None:
        self._turn = turn
        if self._placement == "tail" and decision.fragment:
            self._pinned[len(request.get("messages") or []) - 1] = decision.fragment
        cached = count(usage, "cache_read_input_tokens")
        read = count(usage, "input_tokens") + cached + count(usage, "cache_creation_input_tokens")
        self._session.end_step(
            decision,
            model_id=str(request.get("model", "")),
            input_tokens=read,
            output_tokens=count(usage, "output_tokens"),
            cache_read_tokens=cached,
            tool_calls=turn.tools,
            answer=turn.text,
        )

    # Event streams are forwarded unchanged; a copy is assembled to a message.

    def _record_stream(self, events: Any, decision: StepDecision, request: Request) -> Iterator[Any]:
        message = _StreamedMessage()
        for event in events:
            message.add(event)
            yield event
        self._record_response(decision, request, message.turn(), message.usage)

    async def _record_async_stream(self, events: Any, decision: StepDecision, request: Request) -> AsyncIterator[Any]:
        message = _StreamedMessage()
        async for event in events:
            message.add(event)
            yield event
        self._record_response(decision, request, message.turn(), message.usage)


class _SteeredStream:
    """Context manager of `messages.stream(...)`; records the call unless the block raised."""

    def __init__(self, messages: SteeredMessages, request: Request) -> None:
        self._owner = messages
        self._request = request
        self._decision: StepDecision | None = None
        self._manager: Any = None
        self._stream: Any = None

    def _start(self, decision: StepDecision) -> Any:
        self._request = self._owner._apply_decision(self._request, decision)
        decision.started = time.perf_counter()
        self._decision = decision
        self._manager = self._owner._messages.stream(**self._request)
        return self._manager

    def _record(self, kind: type[BaseException] | None) -> None:
        if kind is None and self._decision is not None:
            message = self._stream.current_message_snapshot
            self._owner._record_response(self._decision, self._request, _parse_turn(message.content), message.usage)

    def __enter__(self) -> Any:
        steps, model = self._owner._new_steps(self._request), str(self._request.get("model", ""))
        self._stream = self._start(self._owner._session.begin(steps, model_id=model)).__enter__()
        return self._stream

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        self._record(kind)
        return self._manager.__exit__(kind, error, trace)

    async def __aenter__(self) -> Any:
        steps, model = self._owner._new_steps(self._request), str(self._request.get("model", ""))
        self._stream = await self._start(await self._owner._session.abegin(steps, model_id=model)).__aenter__()
        return self._stream

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        self._record(kind)
        return await self._manager.__aexit__(kind, error, trace)


class _StreamedMessage:
    """A message assembled from the events of its stream."""

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, Any]] = {}
        self.usage: dict[str, int] = {}

    def add(self, event: Any) -> None:
        kind = getattr(event, "type", "")
        if kind == "message_start":
            self._add_usage(event.message.usage)
        elif kind == "message_delta":
            self._add_usage(event.usage)
        elif kind == "content_block_start":
            block = event.content_block
            known = {"type": block.type, "text": "", "json": ""}
            known |= {"id": getattr(block, "id", ""), "name": getattr(block, "name", "")}
            self._blocks[event.index] = known
        elif kind == "content_block_delta" and event.index in self._blocks:
            text = getattr(event.delta, "text", None) or getattr(event.delta, "thinking", None)
            self._blocks[event.index]["text"] += text or ""
            self._blocks[event.index]["json"] += getattr(event.delta, "partial_json", None) or ""

    def _add_usage(self, usage: Any) -> None:
        for name in ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
            self.usage[name] = count(usage, name) or self.usage.get(name, 0)

    def turn(self) -> Turn:
        blocks = [block | {"thinking": block["text"]} for block in self._blocks.values()]
        return _parse_turn([block | {"input": _parse_argument(block["json"])} for block in blocks])


def run_messages_agent_loop(
    client: Any,
    *,
    model: str,
    messages: list[dict[str, Any]],
    tool_specs: list[dict[str, Any]],
    dispatch: Callable[[str, dict[str, Any]], str],
    system: str = "",
    max_steps: int = 40,
    max_tokens: int = 4096,
    session: SteeringSession | None = None,
    placement: Placement = "system",
) -> dict[str, Any]:
    """Run an agent loop on the Messages API: call the model, run the requested tools, repeat.

    Returns `final_text`, `messages` (the history without guidance), `stop_reason` and `tool_calls`.
    """
    caller = client if session is None else SteeredAnthropic(client, session, placement=placement)
    history, final_text = list(messages), ""
    tool_calls: list[tuple[str, Any, str]] = []
    for _ in range(max_steps):
        request: Request = {"model": model, "messages": history, "tools": tool_specs, "max_tokens": max_tokens}
        if system:
            request["system"] = system
        try:
            reply = caller.messages.create(**request)
        except TokenBudgetReached:
            return _result(final_text, history, "token_budget", tool_calls)
        final_text = "\n".join(block.text for block in reply.content if block.type == "text") or final_text
        history = [*history, {"role": "assistant", "content": [_as_dict(block) for block in reply.content]}]
        if reply.stop_reason != "tool_use":
            return _result(final_text, history, reply.stop_reason, tool_calls)
        results = []
        for call in (block for block in reply.content if block.type == "tool_use"):
            try:
                result, is_error = dispatch(call.name, call.input), False
            except Exception as error:
                result, is_error = f"{type(error).__name__}: {error}", True
            tool_calls.append((call.name, call.input, result))
            block = {"type": "tool_result", "tool_use_id": call.id, "content": result}
            results.append(block | ({"is_error": True} if is_error else {}))
        history = [*history, {"role": "user", "content": results}]
    return _result(final_text, history, "max_steps", tool_calls)


def _result(text: str, history: list[dict[str, Any]], stop_reason: str, tool_calls: list[Any]) -> dict[str, Any]:
    return {"final_text": text, "messages": history, "stop_reason": stop_reason, "tool_calls": tool_calls}


def _as_dict(block: Any) -> dict[str, Any]:
    return dict(block) if isinstance(block, dict) else dict(block.model_dump(exclude_none=True))


def _parse_turn(content: list[Any]) -> Turn:
    texts = [get(block, "thinking" if get(block, "type") == "thinking" else "text") for block in content]
    calls = [
        (str(get(block, "id")), str(get(block, "name")), get(block, "input"))
        for block in content
        if get(block, "type") == "tool_use"
    ]
    return Turn("\n\n".join(text for text in texts if text), calls)


def _tool_results(messages: list[Any]) -> tuple[ToolResults, str]:
    """Return the tool results and the user's text since the last response of the model."""
    results: ToolResults = {}
    texts: list[str] = []
    for message in reversed(messages):
        if get(message, "role") != "user":
            break
        content = get(message, "content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])
        for block in blocks:
            if get(block, "type") == "tool_result":
                is_error = bool(get(block, "is_error"))
                results[str(get(block, "tool_use_id"))] = (join_texts(get(block, "content")), is_error)
            elif get(block, "type") == "text":
                texts.append(str(get(block, "text")))
    return results, "\n".join(texts)


def _with_block(message: dict[str, Any], text: str) -> dict[str, Any]:
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])
    return {**message, "content": [*blocks, {"type": "text", "text": text}]}


def _parse_argument(raw: str) -> Any:
    try:
        return json.loads(raw) if raw else {}
    except ValueError:
        return raw
