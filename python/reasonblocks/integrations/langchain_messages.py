"""LangChain messages as steps."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from reasonblocks._engine import Step


class Follower:
    """Knows how far a conversation was read. Reads each turn once, however long the conversation is."""

    def __init__(self) -> None:
        self._last: str | None = None

    def new_steps(self, messages: Sequence[BaseMessage]) -> list[Step]:
        """Give the steps since the last look.

        At the first look these are the turns since the user spoke last: earlier ones belong to earlier runs.
        """
        new = self._unread(messages)
        results = {message.tool_call_id: message for message in new if isinstance(message, ToolMessage)}
        steps: list[Step] = []
        said: list[str] = []
        for message in new:
            if isinstance(message, HumanMessage):
                said.append(plain_text(message))
            elif isinstance(message, AIMessage):
                steps += _steps_of(message, results, "\n".join(said))
                said = []
                self._last = _key(message)
        return steps

    def _unread(self, messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
        newest: int | None = None
        for at in range(len(messages) - 1, -1, -1):
            message = messages[at]
            if isinstance(message, AIMessage):
                if _key(message) == self._last:
                    return messages[at + 1 :]
                newest = at if newest is None else newest
            elif isinstance(message, HumanMessage) and self._last is None:
                return messages[at + 1 :]
        # The turn read last is gone: the history was rewritten, and only the newest turn is surely new.
        return messages if self._last is None else messages[newest:] if newest is not None else []


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
