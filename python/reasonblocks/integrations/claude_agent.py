"""Claude Agent SDK: hooks that monitor and steer a run.

The agent runs in a separate process and calls its hooks after each tool and before it stops. Guidance is returned as
additional context, which the model reads. Thoughts and token counts are known only if messages pass through `wrap`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from typing import Any

from claude_agent_sdk import AssistantMessage, HookMatcher, ResultMessage, TextBlock, ToolUseBlock

from reasonblocks._engine import Step
from reasonblocks.steering import SessionOwner, SteeringSession, StepDecision

logger = logging.getLogger("reasonblocks")


class ClaudeAgentHooks(SessionOwner):
    """Hooks of one agent: `ClaudeAgentOptions(hooks=watch.hooks)`; a context manager.

    `session` is the current run. A prompt after the end of a run starts the next one.
    """

    def __init__(self, sessions: Iterator[SteeringSession]) -> None:
        self._sessions = sessions
        self.session = next(sessions)
        self._model = ""
        self._thoughts: dict[str, str] = {}
        self._tokens = {"input_tokens": 0, "output_tokens": 0, "cache_read_tokens": 0}
        self._decision: StepDecision | None = None

    @property
    def hooks(self) -> dict[Any, list[HookMatcher]]:
        """Hooks for `ClaudeAgentOptions`."""
        events = ("UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop")
        return {event: [HookMatcher(hooks=[self.on_event])] for event in events}

    async def on_event(self, event: Any, tool_use_id: str | None, _context: Any) -> Any:
        """Handle one hook event. Never raises, because an exception would block the agent."""
        try:
            return await self._handle(event, tool_use_id)
        except Exception:
            logger.exception("failed to handle a hook event; the agent continues without guidance")
            return {}

    async def wrap(self, messages: AsyncIterable[Any]) -> AsyncIterator[Any]:
        """Forward the messages of `query(...)` and read thoughts and token counts from them."""
        async for message in messages:
            self.see(message)
            yield message

    def see(self, message: Any) -> None:
        """Read thoughts and token counts from one message."""
        if isinstance(message, AssistantMessage):
            self._model = message.model
            text = "\n".join(block.text for block in message.content if isinstance(block, TextBlock))
            for block in message.content:
                if isinstance(block, ToolUseBlock):
                    self._thoughts[block.id] = text
            self._add_usage(getattr(message, "usage", None))
        elif isinstance(message, ResultMessage) and message.is_error:
            self.session.mark_failure(reason=f"failure: {message.subtype}")

    async def _handle(self, event: Any, tool_use_id: str | None) -> dict[str, Any]:
        name = event["hook_event_name"]
        if name == "UserPromptSubmit":
            if self.session.is_finished:
                self.session = next(self._sessions)
            return await self._steer(name, [])
        if name == "Stop":
            return await self._before_stop(event)
        failed = name == "PostToolUseFailure"
        result = event.get("error") if failed else event.get("tool_response")
        thought = self._thoughts.pop(tool_use_id or "", None)
        step = Step(thought, event["tool_name"], event.get("tool_input"), _result_text(result), failed)
        self._record_response([event["tool_name"]])
        return await self._steer(name, [step])

    async def _before_stop(self, event: Any) -> dict[str, Any]:
        """Return guidance on the final answer once; the second stop event ends the run."""
        last = event.get("last_assistant_message") or ""
        self._record_response([], last)
        answer = await self._steer("Stop", [Step(last)] if last else [])
        if event.get("stop_hook_active") or "hookSpecificOutput" not in answer:
            self._decision = None
            self.session.finish()
            return {}
        return answer

    async def _steer(self, event: str, steps: list[Step]) -> dict[str, Any]:
        self._decision = decision = await self.session.abegin(steps, model_id=self._model)
        if decision.stop:
            return {"continue_": False, "stopReason": decision.stop}
        if decision.fragment is None or not self.session.is_steered:
            return {}
        return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": decision.fragment}}

    def _record_response(self, tools: list[str], answer: str | None = None) -> None:
        """Record the previous call: the next event shows that the model has responded."""
        decision, self._decision = self._decision, None
        if decision is not None:
            usage, self._tokens = self._tokens, dict.fromkeys(self._tokens, 0)
            self.session.end_step(decision, model_id=self._model, tool_calls=tools, answer=answer, **usage)

    def _add_usage(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._tokens["input_tokens"] += usage.get("input_tokens") or 0
            self._tokens["output_tokens"] += usage.get("output_tokens") or 0
            self._tokens["cache_read_tokens"] += usage.get("cache_read_input_tokens") or 0


def _result_text(result: Any) -> str:
    if isinstance(result, str):
        return result
    if isinstance(result, dict) and isinstance(result.get("stdout"), str):
        return "\n".join(filter(None, [result["stdout"], result.get("stderr")]))
    return json.dumps(result, ensure_ascii=False, default=str) if result is not None else ""
