"""Fewer tokens for the same run: old tool output is cut, and a run that repeats itself is asked for its answer.

Both happen on the request alone; the history of the agent stays as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware.types import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from reasonblocks._engine import compress_tool_output
from reasonblocks.monitors.suite import evaluate_all
from reasonblocks.steering import MARK

Signals = Callable[[Sequence[Mapping[str, Any]]], Mapping[str, float]]

EARLY_EXIT_EVERY = 5
"""A run that goes on is asked again after this many calls, not at each of them."""

EARLY_EXIT_TEXT = (
    f"{MARK}\nRun monitor of this workspace: this run has made many model calls, and the recent ones repeat each "
    "other. Giving the best answer there is now, and naming what is still open, may serve better than further attempts."
)

# Providers that cache the beginning of a request by themselves: changing an old message would throw that away.
_AUTO_CACHED = ("ChatOpenAI", "AzureChatOpenAI", "ChatGoogleGenerativeAI", "ChatVertexAI", "ChatDeepSeek", "ChatXAI")


@dataclass
class TokenSavingStats:
    """What was saved. A message that is cut again in a later request counts again: it is saved again."""

    compressions: int = 0
    chars_saved: int = 0
    early_exits: int = 0


class TokenSavingMiddleware(AgentMiddleware[Any, Any, Any]):
    """Cuts old tool output in the middle and suggests an end to a run that repeats itself."""

    def __init__(
        self,
        *,
        compress_threshold_chars: int = 1800,
        head_keep_chars: int = 900,
        tail_keep_chars: int = 700,
        keep_recent_tool_messages: int = 2,
        early_exit_min_call_index: int = 40,
        early_exit_text: str = EARLY_EXIT_TEXT,
        signals_fn: Signals | None = None,
        enable_compression: bool = True,
        enable_early_exit: bool = True,
        force_compression_on_auto_cache: bool = False,
    ) -> None:
        super().__init__()
        if min(compress_threshold_chars, head_keep_chars, tail_keep_chars, keep_recent_tool_messages) < 0:
            raise ValueError("lengths and counts of token saving must not be negative")
        self.stats = TokenSavingStats()
        self._threshold = compress_threshold_chars
        self._head = head_keep_chars
        self._tail = tail_keep_chars
        self._keep_recent = keep_recent_tool_messages
        self._early_exit_from = early_exit_min_call_index
        self._early_exit_text = early_exit_text
        self._signals = signals_fn or _signals
        self._compresses = enable_compression
        self._exits_early = enable_early_exit
        self._forced = force_compression_on_auto_cache

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Make one call with fewer tokens."""
        return handler(self.saved(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Make one call with fewer tokens, in an event loop."""
        return await handler(self.saved(request))

    def saved(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """Give the request with old tool output cut, and the suggestion to end where one is due."""
        messages: list[Any] = request.messages
        if self._compresses and (self._forced or type(request.model).__name__ not in _AUTO_CACHED):
            messages = self._cut(messages)
        if self._exits_early and self._should_end(messages):
            self.stats.early_exits += 1
            messages = [*messages, HumanMessage(content=self._early_exit_text)]
        return request if messages is request.messages else request.override(messages=messages)

    def _cut(self, messages: list[Any]) -> list[Any]:
        at = [i for i, message in enumerate(messages) if isinstance(message, ToolMessage)]
        old = at[: len(at) - self._keep_recent] if self._keep_recent else at
        cut = list(messages)
        changed = False
        for i in old:
            message = messages[i]
            if not isinstance(message.content, str) or len(message.content) <= self._threshold:
                continue
            short = compress_tool_output(
                message.content, threshold_chars=self._threshold, head_chars=self._head, tail_chars=self._tail
            )
            if len(short) < len(message.content):
                cut[i] = message.model_copy(update={"content": short})
                self.stats.compressions += 1
                self.stats.chars_saved += len(message.content) - len(short)
                changed = True
        return cut if changed else messages

    def _should_end(self, messages: list[Any]) -> bool:
        calls = sum(isinstance(message, AIMessage) for message in messages)
        over = calls - self._early_exit_from
        if over < 0 or over % EARLY_EXIT_EVERY:
            return False
        signals = self._signals(build_steps_from_messages(messages))
        score = signals.get
        return score("streak", 0.0) > 0.7 or (score("hedge", 0.0) > 0.6 and score("diversity", 0.0) > 0.5)


def _signals(steps: Sequence[Mapping[str, Any]]) -> Mapping[str, float]:
    return evaluate_all(steps)["scores"]


def build_steps_from_messages(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Give a conversation as the steps that `evaluate_all` reads."""
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    steps: list[dict[str, Any]] = []
    for message in messages:
        if not isinstance(message, AIMessage):
            continue
        if not message.tool_calls:
            steps.append({"step_index": len(steps), "thought": message.text})
        for at, call in enumerate(message.tool_calls):
            result = results.get(call["id"] or "")
            steps.append(
                {
                    "step_index": len(steps),
                    "thought": message.text if at == 0 else "",
                    "action": call["name"],
                    "action_input": call["args"],
                    "observation": result.text if result is not None else "",
                    "is_error": result is not None and result.status == "error",
                }
            )
    return steps


__all__ = ["TokenSavingMiddleware", "TokenSavingStats", "build_steps_from_messages", "compress_tool_output"]
