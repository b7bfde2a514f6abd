"""The Claude Agent SDK: hooks that watch a run and steer it.

The agent runs in a program of its own, but after each tool, and before it stops, it asks its hooks, and what they
answer as additional context is read by the model. So guidance reaches it there. Thoughts and tokens come with the
messages, if the stream of messages is handed through `wrap`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from types import TracebackType
from typing import Any

from claude_agent_sdk import AssistantMessage, HookMatcher, ResultMessage, TextBlock, ToolUseBlock

from reasonblocks._engine import Step, StepLogEntry
from reasonblocks.steering import SteeringSession, StepDecision

logger = logging.getLogger("reasonblocks")


class ClaudeAgentHooks:
    """One watched agent: `ClaudeAgentOptions(hooks=watch.hooks)`; a context manager."""

    def __init__(self, sessions: Iterator[SteeringSession]) -> None:
        self._sessions = sessions
        self.session = next(sessions)
        """The watched run; its `step_log` says what happened. A prompt after the end of a run begins the next."""
        self._model = ""
        self._thoughts: dict[str, str] = {}
        self._tokens = {"input_tokens": 0, "output_tokens": 0, "cache_read_tokens": 0}
        self._open: StepDecision | None = None

    @property
    def hooks(self) -> dict[Any, list[HookMatcher]]:
        """What goes into `ClaudeAgentOptions`."""
        events = ("UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop")
        return {event: [HookMatcher(hooks=[self.on_event])] for event in events}

    @property
    def step_log(self) -> list[StepLogEntry]:
        """One entry for every step that the model answered."""
        return self.session.step_log

    def mark_failure(self, *, reason: str = "failure") -> None:
        """Say that the run failed."""
        self.session.mark_failure(reason=reason)

    async def on_event(self, event: Any, tool_use_id: str | None, _context: Any) -> Any:
        """Answer one hook. Never raises, because the agent would be held up."""
        try:
            return await self._answered(event, tool_use_id)
        except Exception:
            logger.exception("a hook could not be answered; the agent goes on unsteered")
            return {}

    async def wrap(self, messages: AsyncIterable[Any]) -> AsyncIterator[Any]:
        """Hand the messages of `query(...)` through, and learn thoughts and tokens from them."""
        async for message in messages:
            self.see(message)
            yield message

    def see(self, message: Any) -> None:
        """Learn from one message."""
        if isinstance(message, AssistantMessage):
            self._model = message.model
            text = "\n".join(block.text for block in message.content if isinstance(block, TextBlock))
            for block in message.content:
                if isinstance(block, ToolUseBlock):
                    self._thoughts[block.id] = text
            self._count(getattr(message, "usage", None))
        elif isinstance(message, ResultMessage) and message.is_error:
            self.session.mark_failure(reason=f"failure: {message.subtype}")

    def __enter__(self) -> ClaudeAgentHooks:
        self.session.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.session.__exit__(kind, error, trace)

    async def __aenter__(self) -> ClaudeAgentHooks:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.__aexit__(kind, error, trace)

    async def _answered(self, event: Any, tool_use_id: str | None) -> dict[str, Any]:
        name = event["hook_event_name"]
        if name == "UserPromptSubmit":
            if self.session.is_finished:
                self.session = next(self._sessions)
            return await self._steer(name, [])
        if name == "Stop":
            return await self._before_stop(event)
        failed = name == "PostToolUseFailure"
        came_back = event.get("error") if failed else event.get("tool_response")
        thought = self._thoughts.pop(tool_use_id or "", None)
        step = Step(thought, event["tool_name"], event.get("tool_input"), _text_of(came_back), failed)
        self._close([event["tool_name"]])
        return await self._steer(name, [step])

    async def _before_stop(self, event: Any) -> dict[str, Any]:
        """The agent thinks that it is done. What speaks against that is said once, and then it may stop."""
        last = event.get("last_assistant_message") or ""
        self._close([], last)
        answer = await self._steer("Stop", [Step(last)] if last else [])
        if event.get("stop_hook_active") or "hookSpecificOutput" not in answer:
            self._open = None
            self.session.finish()
            return {}
        return answer

    async def _steer(self, event: str, steps: list[Step]) -> dict[str, Any]:
        self._open = decision = await self.session.abegin(steps, model_id=self._model)
        if decision.stop:
            return {"continue_": False, "stopReason": decision.stop}
        if decision.fragment is None or not self.session.is_steered:
            return {}
        return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": decision.fragment}}

    def _close(self, tools: list[str], answer: str | None = None) -> None:
        """A next event shows that the model has answered the last one."""
        decision, self._open = self._open, None
        if decision is not None:
            used, self._tokens = self._tokens, dict.fromkeys(self._tokens, 0)
            self.session.end_step(decision, model_id=self._model, tool_calls=tools, answer=answer, **used)

    def _count(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._tokens["input_tokens"] += usage.get("input_tokens") or 0
            self._tokens["output_tokens"] += usage.get("output_tokens") or 0
            self._tokens["cache_read_tokens"] += usage.get("cache_read_input_tokens") or 0


def _text_of(came_back: Any) -> str:
    if isinstance(came_back, str):
        return came_back
    if isinstance(came_back, dict) and isinstance(came_back.get("stdout"), str):
        return "\n".join(filter(None, [came_back["stdout"], came_back.get("stderr")]))
    return json.dumps(came_back, ensure_ascii=False, default=str) if came_back is not None else ""
