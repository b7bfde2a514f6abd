"""Token saving: truncates old tool output, and asks a repetitive run for its answer.

Both change only the request; the history of the agent stays unchanged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware.types import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from reasonblocks._engine import ConversationCursor, compress_tool_output
from reasonblocks.monitors.suite import evaluate_all
from reasonblocks.server import telemetry_row
from reasonblocks.steering import MARK

Signals = Callable[[Sequence[Mapping[str, Any]]], Mapping[str, float]]

EARLY_EXIT_INTERVAL = 5
"""Number of calls between two early-exit messages."""

EARLY_EXIT_TEXT = (
    f"{MARK}\nRun monitor of this workspace: this run has made many model calls, and the recent ones repeat each "
    "other. Giving the best answer there is now, and naming what is still open, may serve better than further attempts."
)

# Providers with automatic prompt caching: changing an old message would invalidate the cache.
_AUTO_CACHED = ("ChatOpenAI", "AzureChatOpenAI", "ChatGoogleGenerativeAI", "ChatVertexAI", "ChatDeepSeek", "ChatXAI")


@dataclass
class TokenSavingStats:
    """Savings. A message that is truncated in several requests counts in each of them."""

    compressions: int = 0
    chars_saved: int = 0
    early_exits: int = 0


class TokenSavingMiddleware(AgentMiddleware[Any, Any, Any]):
    """Truncates old tool output and asks a repetitive run for its answer."""

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
            raise ValueError("lengths and counts must not be negative")
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
        """Make one model call with the shortened request."""
        return handler(self.shorten(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Async variant of `wrap_model_call`."""
        return await handler(self.shorten(request))

    def shorten(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """Return the request with truncated tool output, and with the early-exit message if one is due."""
        messages: list[Any] = request.messages
        if self._compresses and (self._forced or type(request.model).__name__ not in _AUTO_CACHED):
            messages = self._truncate(messages)
        if self._exits_early and self._should_end(messages):
            self.stats.early_exits += 1
            messages = [*messages, HumanMessage(content=self._early_exit_text)]
        return request if messages is request.messages else request.override(messages=messages)

    def _truncate(self, messages: list[Any]) -> list[Any]:
        at = [i for i, message in enumerate(messages) if isinstance(message, ToolMessage)]
        old = at[: len(at) - self._keep_recent] if self._keep_recent else at
        truncated = list(messages)
        changed = False
        for i in old:
            message = messages[i]
            if not isinstance(message.content, str) or len(message.content) <= self._threshold:
                continue
            short = compress_tool_output(
                message.content, threshold_chars=self._threshold, head_chars=self._head, tail_chars=self._tail
            )
            if len(short) < len(message.content):
                truncated[i] = message.model_copy(update={"content": short})
                self.stats.compressions += 1
                self.stats.chars_saved += len(message.content) - len(short)
                changed = True
        return truncated if changed else messages

    def _should_end(self, messages: list[Any]) -> bool:
        calls = sum(isinstance(message, AIMessage) for message in messages)
        over = calls - self._early_exit_from
        if over < 0 or over % EARLY_EXIT_INTERVAL:
            return False
        signals = self._signals(build_steps_from_messages(messages))
        score = signals.get
        return score("streak", 0.0) > 0.7 or (score("hedge", 0.0) > 0.6 and score("diversity", 0.0) > 0.5)


def _signals(steps: Sequence[Mapping[str, Any]]) -> Mapping[str, float]:
    return evaluate_all(steps)["scores"]


def build_steps_from_messages(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return the steps of a conversation in the format of `evaluate_all`."""
    return [
        {"step_index": index, **telemetry_row(step)}
        for index, step in enumerate(ConversationCursor.all_steps(messages))
    ]


__all__ = ["TokenSavingMiddleware", "TokenSavingStats", "build_steps_from_messages", "compress_tool_output"]
