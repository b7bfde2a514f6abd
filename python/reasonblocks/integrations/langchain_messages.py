"""LangChain messages as steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from reasonblocks._engine import Step

# A message is known by its `type`: asking for its class goes through pydantic's metaclass, several times a call.
OF_MODEL = frozenset({"ai", "AIMessageChunk"})
_OF_PERSON = frozenset({"human", "HumanMessageChunk"})
_OF_TOOL = frozenset({"tool", "ToolMessageChunk"})


class Follower:
    """Knows how far a conversation was read. Reads each turn once, however long the conversation is."""

    def __init__(self) -> None:
        self._last: str | None = None
        self._at = 0

    def new_steps(self, messages: Sequence[Any]) -> list[Step]:
        """Give the steps since the last look.

        At the first look these are the turns since the user spoke last: earlier ones belong to earlier runs.
        """
        begin = self._unread(messages)
        new = messages[begin:]
        results = {message.tool_call_id: message for message in new if message.type in _OF_TOOL}
        steps: list[Step] = []
        said: list[str] = []
        for at, message in enumerate(new, begin):
            if message.type in OF_MODEL:
                steps += _steps_of(message, results, "\n".join(said))
                said = []
                self._last, self._at = _key(message), at
            elif message.type in _OF_PERSON:
                said.append(plain_text(message))
        return steps

    def _unread(self, messages: Sequence[Any]) -> int:
        """Where the new messages begin: after the turn read last, which mostly is where it was."""
        if self._at < len(messages) and _key(messages[self._at]) == self._last:
            return self._at + 1
        newest: int | None = None
        for at in range(len(messages) - 1, -1, -1):
            message = messages[at]
            if message.type in OF_MODEL:
                if _key(message) == self._last:
                    return at + 1
                newest = at if newest is None else newest
            elif message.type in _OF_PERSON and self._last is None:
                return at + 1
        if self._last is None:
            return 0
        # The turn read last is gone: the history was rewritten, and only the newest turn is surely new.
        return len(messages) if newest is None else newest


def _steps_of(turn: AIMessage, results: dict[str, ToolMessage], said: str) -> list[Step]:
    """One step a tool call; what was thought, and what the user said before, stand with the first of them."""
    text = plain_text(turn)
    if not turn.tool_calls:
        return [Step(text, user_input=said)]
    steps = []
    for at, call in enumerate(turn.tool_calls):
        result = results.get(call["id"] or "")
        observation, is_error = ("", False) if result is None else (plain_text(result), result.status == "error")
        thought, user_input = (text, said) if at == 0 else (None, None)
        steps.append(Step(thought, call["name"], call["args"], observation, is_error, user_input))
    return steps


def plain_text(message: BaseMessage) -> str:
    """Give the text of a message; where it is nothing but text, without going through its blocks."""
    content = message.content
    return content if isinstance(content, str) else str(message.text)


def _key(message: BaseMessage) -> str:
    return message.id or str(id(message))
