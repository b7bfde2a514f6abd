"""LangChain's messages as the compiled part reads them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from langchain.agents.middleware.types import ExtendedModelResponse, ModelResponse
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage

from reasonblocks._engine import Answer, Follower, answer_of


def ai(text: Any, *calls: tuple[str, Any], id: str | None = None) -> AIMessage:
    made = [{"name": name, "args": {"q": name}, "id": call} for name, call in calls]
    return AIMessage(content=text, tool_calls=made, id=id)


def tool(call: str, text: Any = "found", **fields: Any) -> ToolMessage:
    return ToolMessage(content=text, tool_call_id=call, **fields)


HI = HumanMessage(content="hi")
BLOCKS = [{"type": "text", "text": "so "}, {"type": "tool_use", "id": "1"}, {"type": "text", "text": "then"}]


def seen(messages: Any, follower: Follower | None = None) -> list[tuple[str, str | None, str, str, bool, str]]:
    steps = (follower or Follower()).new_steps(messages)
    return [(s.thought, s.action, s.action_input, s.observation, s.is_error, s.user_input) for s in steps]


@pytest.mark.parametrize(
    ("messages", "steps"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([SystemMessage(content="be good"), HI], [], id="no turn yet"),
        pytest.param([HI, ai("done")], [("done", None, "", "", False, "")], id="words alone"),
        pytest.param([HI, AIMessageChunk(content="done")], [("done", None, "", "", False, "")], id="a streamed turn"),
        pytest.param(
            [HI, ai("look", ("a", "1")), tool("1")], [("look", "a", '{"q": "a"}', "found", False, "")], id="a call"
        ),
        pytest.param(
            [HI, ai("both", ("a", "1"), ("b", "2")), tool("2", "two", status="error"), tool("1", "one")],
            [("both", "a", '{"q": "a"}', "one", False, ""), ("", "b", '{"q": "b"}', "two", True, "")],
            id="two calls at once, answered in the other order",
        ),
        pytest.param([HI, ai("look", ("a", None))], [("look", "a", '{"q": "a"}', "", False, "")], id="never answered"),
        pytest.param([HI, ai(BLOCKS)], [("so then", None, "", "", False, "")], id="the text of blocks"),
        pytest.param([HI, ai("half \ud800")], [("half \U00100000", None, "", "", False, "")], id="half a surrogate"),
        pytest.param([ai("before"), HI, ai("after")], [("after", None, "", "", False, "")], id="an earlier run"),
        pytest.param((HI, ai("done")), [("done", None, "", "", False, "")], id="a tuple"),
    ],
)
def test_turns_are_steps(messages, steps):
    assert seen(messages) == steps


def test_each_turn_is_read_once_and_what_the_user_says_goes_with_the_next():
    follower = Follower()
    messages: list[Any] = [HI, ai("one", ("a", "1"), id="t1"), tool("1")]
    assert len(seen(messages, follower)) == 1
    assert seen(messages, follower) == []
    messages += [HumanMessage(content="no,"), HumanMessage(content="there"), ai("two")]
    assert seen(messages, follower) == [("two", None, "", "", False, "no,\nthere")]
    assert seen(messages, follower) == []


@pytest.mark.parametrize("name", ["t1", None])
def test_a_turn_is_found_again_where_messages_before_it_are_gone(name):
    read = ai("one", id=name)
    follower = Follower()
    assert len(seen([HI, HI, read], follower)) == 1
    assert [step[0] for step in seen([read, ai("two"), ai("three")], follower)] == ["two", "three"]


def test_of_a_rewritten_history_only_the_newest_turn_is_new():
    follower = Follower()
    seen([HI, ai("one", id="t1")], follower)
    rewritten = [HumanMessage(content="summary"), ai("old", id="t8"), ai("new", id="t9")]
    assert [step[0] for step in seen(rewritten, follower)] == ["new"]
    assert seen([HI], follower) == []


def test_what_is_no_message_is_passed_over():
    assert seen([{"role": "user"}, HI, 7, ai("done")]) == [("done", None, "", "", False, "")]
    assert answer_of({"role": "user"}) is None
    with pytest.raises(TypeError):
        Follower().new_steps(7)


TWO_THREADS = """
import threading
from types import SimpleNamespace
from reasonblocks._engine import Follower

follower = Follower()

class Message:
    type, tool_calls, id = "ai", (), "1"

    @property
    def content(self):
        other = threading.Thread(target=follower.new_steps, args=([SimpleNamespace(type="human", content="hi")],))
        other.start()
        other.join()
        return "done"

print(len(follower.new_steps([Message()])))
"""


def test_two_threads_may_look_at_once():
    """What is read may run Python. In a process of its own: with the lock held, both would wait for ever."""
    done = subprocess.run([sys.executable, "-c", TWO_THREADS], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "1\n"


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        (AIMessage(content="done"), Answer([], "done")),
        (ai("look", ("a", "1"), ("b", "2")), Answer(["a", "b"])),
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
            Answer([], "", 10, 7, 3, 5),
        ),
        (HI, None),
    ],
)
def test_an_answer_says_what_was_asked_for_and_what_it_cost(message, answer):
    response = ModelResponse(result=[HI, message])
    for given in (message, ModelResponse(result=[message]), response, ExtendedModelResponse(model_response=response)):
        assert answer_of(given) == answer


def test_counts_that_no_call_can_have_count_for_nothing():
    odd = AIMessage(content="done")
    odd.usage_metadata = {"total_tokens": -1, "input_tokens": None, "input_token_details": None}
    assert answer_of(odd) == Answer([], "done")
