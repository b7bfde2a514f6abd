"""Conversion of LangChain messages to steps and responses."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from langchain.agents.middleware.types import ExtendedModelResponse, ModelResponse
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage

from reasonblocks._engine import ConversationCursor, Response, parse_response


def ai(text: Any, *calls: tuple[str, Any], id: str | None = None) -> AIMessage:
    made = [{"name": name, "args": {"q": name}, "id": call} for name, call in calls]
    return AIMessage(content=text, tool_calls=made, id=id)


def tool(call: str, text: Any = "found", **fields: Any) -> ToolMessage:
    return ToolMessage(content=text, tool_call_id=call, **fields)


HI = HumanMessage(content="hi")
THINKING = [
    {"type": "thinking", "thinking": "hm"},
    {"type": "reasoning", "summary": [{"text": "so"}]},
    {"type": "text", "text": "then"},
]
BLOCKS = [{"type": "text", "text": "so "}, {"type": "tool_use", "id": "1"}, {"type": "text", "text": "then"}]


def seen(messages: Any, cursor: ConversationCursor | None = None) -> list[tuple[str, str | None, str, str, bool, str]]:
    steps = (cursor or ConversationCursor()).new_steps(messages)
    return [(s.thought, s.action, s.action_input, s.observation, s.is_error, s.user_input) for s in steps]


@pytest.mark.parametrize(
    ("messages", "steps"),
    [
        pytest.param([], [], id="empty"),
        pytest.param([SystemMessage(content="be good"), HI], [], id="no model turn"),
        pytest.param([HI, ai("done")], [("done", None, "", "", False, "")], id="text only"),
        pytest.param([HI, AIMessageChunk(content="done")], [("done", None, "", "", False, "")], id="streamed turn"),
        pytest.param(
            [HI, ai("look", ("a", "1")), tool("1")], [("look", "a", '{"q": "a"}', "found", False, "")], id="tool call"
        ),
        pytest.param(
            [HI, ai("both", ("a", "1"), ("b", "2")), tool("2", "two", status="error"), tool("1", "one")],
            [("both", "a", '{"q": "a"}', "one", False, ""), ("", "b", '{"q": "b"}', "two", True, "")],
            id="parallel calls with results in another order",
        ),
        pytest.param(
            [HI, ai("look", ("a", None))], [("look", "a", '{"q": "a"}', "", False, "")], id="call without result"
        ),
        pytest.param([HI, ai(BLOCKS)], [("so then", None, "", "", False, "")], id="content blocks"),
        pytest.param([HI, ai(THINKING)], [("hm\n\nso\n\nthen", None, "", "", False, "")], id="reasoning blocks"),
        pytest.param([HI, ai("half \ud800")], [("half \U00100000", None, "", "", False, "")], id="unpaired surrogate"),
        pytest.param([ai("before"), HI, ai("after")], [("after", None, "", "", False, "")], id="earlier run"),
        pytest.param((HI, ai("done")), [("done", None, "", "", False, "")], id="tuple"),
    ],
)
def test_messages_to_steps(messages, steps):
    assert seen(messages) == steps


def test_each_turn_is_read_once_with_the_preceding_user_input():
    cursor = ConversationCursor()
    messages: list[Any] = [HI, ai("one", ("a", "1"), id="t1"), tool("1")]
    assert len(seen(messages, cursor)) == 1
    assert seen(messages, cursor) == []
    messages += [HumanMessage(content="no,"), HumanMessage(content="there"), ai("two")]
    assert seen(messages, cursor) == [("two", None, "", "", False, "no,\nthere")]
    assert seen(messages, cursor) == []


@pytest.mark.parametrize("name", ["t1", None])
def test_position_survives_removed_messages(name):
    read = ai("one", id=name)
    cursor = ConversationCursor()
    assert len(seen([HI, HI, read], cursor)) == 1
    assert [step[0] for step in seen([read, ai("two"), ai("three")], cursor)] == ["two", "three"]


def test_rewritten_history_yields_only_the_newest_turn():
    cursor = ConversationCursor()
    seen([HI, ai("one", id="t1")], cursor)
    rewritten = [HumanMessage(content="summary"), ai("old", id="t8"), ai("new", id="t9")]
    assert [step[0] for step in seen(rewritten, cursor)] == ["new"]
    assert seen([HI], cursor) == []


def test_values_that_are_not_messages_are_skipped():
    assert seen([{"role": "user"}, HI, 7, ai("done")]) == [("done", None, "", "", False, "")]
    assert parse_response({"role": "user"}) is None
    with pytest.raises(TypeError):
        ConversationCursor().new_steps(7)


TWO_THREADS = """
import threading
from types import SimpleNamespace
from reasonblocks._engine import ConversationCursor

cursor = ConversationCursor()

class Message:
    type, tool_calls, id = "ai", (), "1"

    @property
    def content(self):
        other = threading.Thread(target=cursor.new_steps, args=([SimpleNamespace(type="human", content="hi")],))
        other.start()
        other.join()
        return "done"

print(len(cursor.new_steps([Message()])))
"""


def test_two_threads_can_read_at_once():
    """Attribute access can run Python code. Runs in a subprocess, because a held lock would deadlock."""
    done = subprocess.run([sys.executable, "-c", TWO_THREADS], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "1\n"


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        (AIMessage(content="done"), Response([], "done")),
        (ai("look", ("a", "1"), ("b", "2")), Response(["a", "b"])),
        (
            AIMessage(
                content="",
                usage_metadata={
                    "input_tokens": 7,
                    "output_tokens": 3,
                    "total_tokens": 10,
                    "input_token_details": {"cache_read": 5},
                },
            ),
            Response([], "", 10, 7, 3, 5),
        ),
        (HI, None),
    ],
)
def test_response_has_tool_calls_and_token_counts(message, answer):
    response = ModelResponse(result=[HI, message])
    for given in (message, ModelResponse(result=[message]), response, ExtendedModelResponse(model_response=response)):
        assert parse_response(given) == answer


def test_invalid_token_counts_are_zero():
    odd = AIMessage(content="done")
    odd.usage_metadata = {"total_tokens": -1, "input_tokens": None, "input_token_details": None}
    assert parse_response(odd) == Response([], "done")
