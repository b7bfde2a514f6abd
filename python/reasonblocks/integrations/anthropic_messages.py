"""The Anthropic Messages API, steered: a client used like the one it wraps, and a loop for those without one."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any, Literal

from reasonblocks._engine import Step
from reasonblocks.integrations.turns import Call, Turn, steps_of, without_provider
from reasonblocks.steering import SteeringSession, StepDecision, TokenBudgetReached

logger = logging.getLogger("reasonblocks")

Request = dict[str, Any]


class SteeredAnthropic:
    """An Anthropic client, sync or async, for one run of an agent. Everything but `messages` is the client's own."""

    def __init__(
        self, client: Any, session: SteeringSession, *, placement: Literal["system", "tail"] = "system"
    ) -> None:
        self._client = client
        self.session = session
        """The watched run; its `step_log` says what happened."""
        self.messages = SteeredMessages(client.messages, session, placement)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def __enter__(self) -> SteeredAnthropic:
        self.session.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.session.__exit__(kind, error, trace)

    async def __aenter__(self) -> SteeredAnthropic:
        await self.session.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.__aexit__(kind, error, trace)


class SteeredMessages:
    """`client.messages` of a steered client."""

    def __init__(self, messages: Any, session: SteeringSession, placement: Literal["system", "tail"]) -> None:
        self._messages = messages
        self._session = session
        self._placement = placement
        self._is_async = type(messages).__name__.startswith("Async")
        self._turn: Turn | None = None
        self._kept: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._messages, name)

    def create(self, **request: Any) -> Any:
        """Call the model once. With an async client this is a coroutine, as there."""
        if self._is_async:
            return self._create_async(request)
        decision = self._session.begin(self._new_steps(request), model_id=str(request.get("model", "")))
        request = self._steered(request, decision)
        decision.begun = time.perf_counter()
        reply = self._messages.create(**request)
        if request.get("stream"):
            return self._watched(reply, decision, request)
        self._took_place(decision, request, _turn_of(reply.content), reply.usage)
        return reply

    async def _create_async(self, request: Request) -> Any:
        decision = await self._session.abegin(self._new_steps(request), model_id=str(request.get("model", "")))
        request = self._steered(request, decision)
        decision.begun = time.perf_counter()
        reply = await self._messages.create(**request)
        if request.get("stream"):
            return self._watched_async(reply, decision, request)
        self._took_place(decision, request, _turn_of(reply.content), reply.usage)
        return reply

    def stream(self, **request: Any) -> _SteeredStream:
        """Stream one call, as a context manager."""
        return _SteeredStream(self, request)

    # One call.

    def _new_steps(self, request: Request) -> list[Step]:
        try:
            results, said = _results_in(request.get("messages") or [])
            steps = steps_of(self._turn, results, said)
        except Exception:
            logger.exception("the messages could not be read; this step is not watched")
            steps = []
        self._turn = None
        return steps

    def _steered(self, request: Request, decision: StepDecision) -> Request:
        if decision.stop:
            raise TokenBudgetReached(decision.stop)
        if not self._session.is_steered:
            return request
        request = dict(request)
        if decision.model_override:
            request["model"] = without_provider(decision.model_override)
        if self._placement == "tail":
            request["messages"] = self._with_tail(request.get("messages") or [], decision.fragment)
        else:
            base = request.get("system")
            system = decision.system_blocks(base if isinstance(base, (str, list)) else None)
            if system:
                request["system"] = system
        return request

    def _with_tail(self, messages: list[Any], fragment: str | None) -> list[Any]:
        """Guidance stands at the end of the user turn it was first given with, then and ever after."""
        texts = dict(self._kept)
        if fragment and messages:
            texts[len(messages) - 1] = fragment
        return [
            _with_block(message, texts[at]) if at in texts and message.get("role") == "user" else message
            for at, message in enumerate(messages)
        ]

    def _took_place(self, decision: StepDecision, request: Request, turn: Turn, usage: Any) -> None:
        self._turn = turn
        if self._placement == "tail" and decision.fragment:
            self._kept[len(request.get("messages") or []) - 1] = decision.fragment
        cached = _count(usage, "cache_read_input_tokens")
        read = _count(usage, "input_tokens") + cached + _count(usage, "cache_creation_input_tokens")
        self._session.end_step(
            decision,
            model_id=str(request.get("model", "")),
            input_tokens=read,
            output_tokens=_count(usage, "output_tokens"),
            cache_read_tokens=cached,
            tool_calls=turn.tools,
            answer=turn.text,
        )

    # Streams of events: what passes by is put together again.

    def _watched(self, events: Any, decision: StepDecision, request: Request) -> Iterator[Any]:
        message = _Assembled()
        for event in events:
            message.take(event)
            yield event
        self._took_place(decision, request, message.turn(), message.usage)

    async def _watched_async(self, events: Any, decision: StepDecision, request: Request) -> AsyncIterator[Any]:
        message = _Assembled()
        async for event in events:
            message.take(event)
            yield event
        self._took_place(decision, request, message.turn(), message.usage)


class _SteeredStream:
    """`messages.stream(...)`: a context manager that is recorded when it ends well."""

    def __init__(self, messages: SteeredMessages, request: Request) -> None:
        self._owner = messages
        self._request = request
        self._decision: StepDecision | None = None
        self._manager: Any = None
        self._stream: Any = None

    def _begun(self, decision: StepDecision) -> Any:
        self._request = self._owner._steered(self._request, decision)
        decision.begun = time.perf_counter()
        self._decision = decision
        self._manager = self._owner._messages.stream(**self._request)
        return self._manager

    def _ended(self, kind: type[BaseException] | None) -> None:
        if kind is None and self._decision is not None:
            message = self._stream.current_message_snapshot
            self._owner._took_place(self._decision, self._request, _turn_of(message.content), message.usage)

    def __enter__(self) -> Any:
        steps, model = self._owner._new_steps(self._request), str(self._request.get("model", ""))
        self._stream = self._begun(self._owner._session.begin(steps, model_id=model)).__enter__()
        return self._stream

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        self._ended(kind)
        return self._manager.__exit__(kind, error, trace)

    async def __aenter__(self) -> Any:
        steps, model = self._owner._new_steps(self._request), str(self._request.get("model", ""))
        self._stream = await self._begun(await self._owner._session.abegin(steps, model_id=model)).__aenter__()
        return self._stream

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        self._ended(kind)
        return await self._manager.__aexit__(kind, error, trace)


class _Assembled:
    """A message, from the events of its stream."""

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, Any]] = {}
        self.usage: dict[str, int] = {}

    def take(self, event: Any) -> None:
        kind = getattr(event, "type", "")
        if kind == "message_start":
            self._use(event.message.usage)
        elif kind == "message_delta":
            self._use(event.usage)
        elif kind == "content_block_start":
            block = event.content_block
            known = {"type": block.type, "text": "", "json": ""}
            known |= {"id": getattr(block, "id", ""), "name": getattr(block, "name", "")}
            self._blocks[event.index] = known
        elif kind == "content_block_delta" and event.index in self._blocks:
            self._blocks[event.index]["text"] += getattr(event.delta, "text", None) or ""
            self._blocks[event.index]["json"] += getattr(event.delta, "partial_json", None) or ""

    def _use(self, usage: Any) -> None:
        for name in ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
            self.usage[name] = _count(usage, name) or self.usage.get(name, 0)

    def turn(self) -> Turn:
        blocks = self._blocks.values()
        text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
        calls = [Call(b["id"], b["name"], _argument(b["json"])) for b in blocks if b["type"] == "tool_use"]
        return Turn(text, calls)


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
    placement: Literal["system", "tail"] = "system",
) -> dict[str, Any]:
    """Run an agent on the Messages API until it is done: call, run the tools it asks for, call again.

    Gives `final_text`, `messages` (the history, without any guidance in it), `stop_reason` and `tool_calls`.
    """
    caller = client if session is None else SteeredAnthropic(client, session, placement=placement)
    history, final_text = list(messages), ""
    used: list[tuple[str, Any, str]] = []
    for _ in range(max_steps):
        request: Request = {"model": model, "messages": history, "tools": tool_specs, "max_tokens": max_tokens}
        if system:
            request["system"] = system
        try:
            reply = caller.messages.create(**request)
        except TokenBudgetReached:
            return _outcome(final_text, history, "token_budget", used)
        turn = _turn_of(reply.content)
        final_text = turn.text or final_text
        history = [*history, {"role": "assistant", "content": [_plain(block) for block in reply.content]}]
        if reply.stop_reason != "tool_use":
            return _outcome(final_text, history, reply.stop_reason, used)
        results = []
        for call in turn.calls:
            try:
                result, is_error = dispatch(call.name, call.argument), False
            except Exception as error:
                result, is_error = f"{type(error).__name__}: {error}", True
            used.append((call.name, call.argument, result))
            block = {"type": "tool_result", "tool_use_id": call.call_id, "content": result}
            results.append(block | ({"is_error": True} if is_error else {}))
        history = [*history, {"role": "user", "content": results}]
    return _outcome(final_text, history, "max_steps", used)


def _outcome(text: str, history: list[dict[str, Any]], why: str, used: list[Any]) -> dict[str, Any]:
    return {"final_text": text, "messages": history, "stop_reason": why, "tool_calls": used}


def _plain(block: Any) -> dict[str, Any]:
    return dict(block) if isinstance(block, dict) else dict(block.model_dump(exclude_none=True))


def _part(block: Any, name: str) -> Any:
    return block.get(name) if isinstance(block, dict) else getattr(block, name, None)


def _turn_of(content: list[Any]) -> Turn:
    texts = [str(_part(block, "text")) for block in content if _part(block, "type") == "text"]
    calls = [
        Call(str(_part(block, "id")), str(_part(block, "name")), _part(block, "input"))
        for block in content
        if _part(block, "type") == "tool_use"
    ]
    return Turn("\n".join(texts), calls)


def _results_in(messages: list[Any]) -> tuple[dict[str, tuple[str, bool]], str]:
    """What came back since the model answered last, and what the user said with it."""
    results: dict[str, tuple[str, bool]] = {}
    said: list[str] = []
    for message in reversed(messages):
        if _part(message, "role") != "user":
            break
        content = _part(message, "content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])
        for block in blocks:
            if _part(block, "type") == "tool_result":
                is_error = bool(_part(block, "is_error"))
                results[str(_part(block, "tool_use_id"))] = (_text_of(_part(block, "content")), is_error)
            elif _part(block, "type") == "text":
                said.append(str(_part(block, "text")))
    return results, "\n".join(said)


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(_part(block, "text") or "") for block in content or [])


def _with_block(message: dict[str, Any], text: str) -> dict[str, Any]:
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])
    return {**message, "content": [*blocks, {"type": "text", "text": text}]}


def _count(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, dict) else getattr(usage, name, None)
    return value if isinstance(value, int) else 0


def _argument(raw: str) -> Any:
    try:
        return json.loads(raw) if raw else {}
    except ValueError:
        return raw
