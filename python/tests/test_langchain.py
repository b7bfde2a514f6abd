"""The middleware in LangChain agents."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import ScriptedChat, looping, search, turn
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from reasonblocks import ReasonBlocks

RULE = {"tier": "e3", "pattern_id": "r1", "fields": {"instruction": "Cite. Never guess."}}
ASKED = {"messages": [("user", "Where is the session expiry set?")]}


def text_of(message: Any) -> str:
    content = message.content
    return content if isinstance(content, str) else "\n".join(block["text"] for block in content)


def steered(model: ScriptedChat) -> list[int]:
    """Indices of the calls whose request contained guidance."""
    return [at for at, request in enumerate(model.requests) if any("[REASONBLOCKS]" in text_of(m) for m in request)]


def run(model: ScriptedChat, mw: Any, *, asked: Any = ASKED, prompt: str | None = "You fix bugs.") -> Any:
    agent = create_agent(model=model, tools=[search], system_prompt=prompt, middleware=[mw])
    return agent.invoke(asked, {"recursion_limit": 200})


def test_looping_agent_gets_guidance_in_the_system_message():
    model = ScriptedChat(script=looping(8))
    mw = ReasonBlocks(suite="both").middleware()
    result = run(model, mw)
    assert steered(model) == [3, 8]
    first = model.requests[3][0]
    assert isinstance(first, SystemMessage)
    assert first.content[0] == {"type": "text", "text": "You fix bugs.", "cache_control": {"type": "ephemeral"}}
    assert first.content[1]["text"].startswith(
        "[REASONBLOCKS]\nRun monitor of this workspace: `search` was called 3 times"
    )
    assert set(first.content[1]) == {"type", "text"}
    assert [entry.monitors_fired for entry in mw.step_log][:4] == [[], [], [], ["streak"]]
    assert [entry.step for entry in mw.step_log] == list(range(9))
    assert mw.step_log[3].injection_sources == ["monitor"]
    assert mw.step_log[0].thought_preview == "(first call)"
    assert mw.step_log[1].tokens == 110
    assert not any("[REASONBLOCKS]" in text_of(m) for m in result["messages"])


def test_other_models_get_a_plain_system_prompt():
    model = ScriptedChat(script=looping(4), model_name="gpt-5")
    run(model, ReasonBlocks(suite="both").middleware())
    assert model.requests[1][0].content == "You fix bugs."
    assert model.requests[3][0].content.startswith("You fix bugs.\n\n[REASONBLOCKS]\n")


def test_tail_guidance_keeps_its_position():
    model = ScriptedChat(script=looping(7))
    result = run(model, ReasonBlocks(suite="both", placement="tail").middleware())
    assert steered(model) == [3, 4, 5, 6, 7]
    for request in model.requests:
        assert request[0].content == "You fix bugs."
    at = {[text_of(m).startswith("[REASONBLOCKS]") for m in request].index(True) for request in model.requests[3:]}
    texts = {text_of(request[min(at)]) for request in model.requests[3:]}
    assert (len(at), len(texts)) == (1, 1)
    for shorter, longer in zip(model.requests[3:], model.requests[4:], strict=False):
        assert [text_of(m) for m in longer[: len(shorter)]] == [text_of(m) for m in shorter]
    assert not any("[REASONBLOCKS]" in text_of(m) for m in result["messages"])


@pytest.mark.parametrize("placement", ["system", "tail"])
def test_guidance_without_a_system_prompt(placement):
    model = ScriptedChat(script=looping(4))
    run(model, ReasonBlocks(suite="both", placement=placement).middleware(), prompt=None)
    assert 3 in steered(model)


async def test_async_agents_are_steered():
    model = ScriptedChat(script=looping(8))
    mw = ReasonBlocks(suite="both").middleware()
    agent = create_agent(model=model, tools=[search], system_prompt="You fix bugs.", middleware=[mw])
    await agent.ainvoke(ASKED, {"recursion_limit": 200})
    assert steered(model) == [3, 8]
    assert len(mw.step_log) == 9


async def test_streaming_agents_are_steered():
    async def pieces(model: ScriptedChat, stream: bool, *middleware: Any) -> list[Any]:
        agent = create_agent(model=model, tools=[search], system_prompt="You fix bugs.", middleware=middleware)
        config = {"recursion_limit": 200}
        if stream:
            return [p async for p in agent.astream(ASKED, config, stream_mode="messages")]
        return list(agent.stream(ASKED, config, stream_mode="messages"))

    for stream in (True, False):
        model = ScriptedChat(script=looping(8))
        mw = ReasonBlocks(suite="both").middleware()
        steered_pieces = await pieces(model, stream, mw)
        # How finely an agent streams is up to the framework: on Python 3.10, asynchronous ones stream whole messages.
        plain_pieces = await pieces(ScriptedChat(script=looping(8)), stream)
        assert len(steered_pieces) == len(plain_pieces) > 8
        assert steered(model) == [3, 8]
        assert mw.step_log[1].tool_calls == ["search"]
        assert mw.step_log[1].tokens == 110


async def test_concurrent_runs_are_separate():
    mw = ReasonBlocks(suite="both").middleware()
    sessions: list[Any] = []
    make = mw._make_session
    mw._make_session = lambda run_id, asked: sessions.append(make(run_id, asked)) or sessions[-1]

    async def one(count: int) -> ScriptedChat:
        model = ScriptedChat(script=looping(count))
        agent = create_agent(model=model, tools=[search], middleware=[mw])
        await agent.ainvoke(ASKED, {"recursion_limit": 200})
        return model

    models = await asyncio.gather(*(one(2) for _ in range(8)))
    assert all(steered(model) == [] for model in models)
    assert [len(session.step_log) for session in sessions] == [3] * 8
    assert len({session.run_id for session in sessions}) == 8
    assert len(mw._runs) <= 8


def test_second_run_gets_a_numbered_id():
    mw = ReasonBlocks(suite="both").middleware(run_id="fix-42")
    assert (mw.run_id, mw.step_log) == ("fix-42", [])
    with pytest.raises(RuntimeError, match="no run has started"):
        _ = mw.session
    for expected in ("fix-42", "fix-42-2"):
        run(ScriptedChat(script=looping(1)), mw)
        assert mw.run_id == expected
        assert len(mw.step_log) == 2


def test_turns_without_text_are_monitored():
    model = ScriptedChat(script=looping(4, text=""))
    mw = ReasonBlocks(suite="both").middleware()
    run(model, mw)
    assert steered(model) == [3]
    assert "streak" in mw.step_log[3].monitors_fired


def test_parallel_tool_calls_are_separate_steps():
    both = AIMessage(
        content="Both at once",
        tool_calls=[
            {"name": "search", "args": {"query": q}, "id": f"{q}-{at}"} for at, q in enumerate(["a", "b", "c"])
        ],
    )
    model = ScriptedChat(script=[both, AIMessage(content="done")])
    mw = ReasonBlocks(suite="both").middleware()
    run(model, mw)
    assert mw.step_log[1].monitors_fired == ["streak"]


def test_model_errors_propagate_without_retry():
    model = ScriptedChat(script=[turn("look", 0), RuntimeError("overloaded")])
    mw = ReasonBlocks(suite="both").middleware()
    with pytest.raises(RuntimeError, match="overloaded"), mw:
        run(model, mw)
    assert model.calls == 2
    assert len(mw.step_log) == 1
    assert mw.session.outcome == "failure: RuntimeError"


def test_guidance_of_a_failed_call_is_repeated():
    from langchain.agents.middleware import ModelRetryMiddleware

    script = looping(4)
    model = ScriptedChat(script=[*script[:3], RuntimeError("overloaded"), *script[3:]])
    mw = ReasonBlocks(suite="both").middleware()
    retry = ModelRetryMiddleware(max_retries=2, initial_delay=0.0)
    agent = create_agent(model=model, tools=[search], middleware=[retry, mw])
    agent.invoke(ASKED, {"recursion_limit": 200})
    assert steered(model) == [3, 4]
    assert [entry.injection_sources for entry in mw.step_log].count(["monitor"]) == 1


def test_standing_rules_are_in_the_first_call_only():
    model = ScriptedChat(script=looping(2))
    mw = ReasonBlocks(suite="both", patterns=[RULE]).middleware()
    run(model, mw)
    assert steered(model) == [0]
    assert "ALWAYS: Cite.\nNEVER: Guess." in text_of(model.requests[0][0])
    assert mw.step_log[0].injections == ["[e3:r1]"]


def test_model_routing_selects_models_by_state():
    slow, fast = ScriptedChat(script=looping(8)), ScriptedChat(script=looping(8)[6:], model_name="small")
    made: list[str] = []

    def factory(model_id: str) -> Any:
        made.append(model_id)
        return fast

    mw = ReasonBlocks(suite="both", model_routing={"FAST": "openai:small"}).middleware(model_factory=factory)
    run(slow, mw)
    assert made == ["openai:small"]
    assert (slow.calls, fast.calls) == (6, 3)
    assert [entry.model_id for entry in mw.step_log][5:8] == ["claude-sonnet-4-5", "small", "small"]


def test_agent_keeps_its_model_if_routing_fails():
    def factory(model_id: str) -> Any:
        raise ValueError(model_id)

    model = ScriptedChat(script=looping(8))
    mw = ReasonBlocks(suite="both", model_routing={"FAST": "openai:small"}).middleware(model_factory=factory)
    run(model, mw)
    assert model.calls == 9
    assert {entry.model_id for entry in mw.step_log} == {"claude-sonnet-4-5"}


def test_enforced_budget_asks_to_wrap_up_then_ends_the_run():
    model = ScriptedChat(script=looping(30))
    mw = ReasonBlocks(suite="both", token_budget=1_000, enforce_token_budget=True).middleware()
    result = run(model, mw)
    assert model.calls == 10
    assert result["messages"][-1].content == (
        "[REASONBLOCKS]\nThis run was ended: 1100 of the 1000 tokens of this run are used."
    )
    assert "budget" in [source for entry in mw.step_log for source in entry.injection_sources]
    tracked_model = ScriptedChat(script=looping(20))
    tracked = ReasonBlocks(suite="both", token_budget=1_000).middleware()
    run(tracked_model, tracked)
    assert (tracked_model.calls, tracked.session.get_budget_used()) == (21, 1.0)


def test_off_arm_is_monitored_and_unchanged():
    rb = ReasonBlocks(suite="both", patterns=[RULE], model_routing={"FAST": "openai:small"})
    arms = {}
    for unit in ("t-1", "t-2"):
        model = ScriptedChat(script=looping(8))
        mw = rb.ab_middleware(
            experiment_id="cust-acme-q2", unit_id=unit, metadata={"arm": "mine"}, model_factory=lambda _id, m=model: m
        )
        run(model, mw)
        arms[mw.arm] = model
        assert mw.session._metadata["metadata"]["arm"] == mw.arm
    assert steered(arms["on"])[:2] == [0, 3]
    assert steered(arms["off"]) == []
    assert all(request[0].content == "You fix bugs." for request in arms["off"].requests)
    assert "streak" in mw.step_log[3].monitors_fired


def test_earlier_conversation_is_not_evaluated():
    model = ScriptedChat(script=[AIMessage(content="done")])
    mw = ReasonBlocks(suite="both").middleware()
    before = [HumanMessage(content="hi"), *looping(5), HumanMessage(content="and now?")]
    run(model, mw, asked={"messages": before})
    assert steered(model) == []
    assert mw.step_log[0].thought_preview == "(first call)"


def test_engine_errors_do_not_reach_the_agent(monkeypatch, caplog):
    model = ScriptedChat(script=looping(4))
    mw = ReasonBlocks(suite="both").middleware()

    def broken(*_args: Any, **_kwargs: Any) -> Any:
        raise ValueError("boom")

    monkeypatch.setattr("reasonblocks.middleware.ConversationCursor", lambda: SimpleNamespace(new_steps=broken))
    assert run(model, mw)["messages"][-1].content == "I could not find it."
    monkeypatch.undo()
    monkeypatch.setattr("reasonblocks.steering.Run", lambda *_: SimpleNamespace(decide=broken, finish=dict))
    model = ScriptedChat(script=looping(4))
    mw = ReasonBlocks(suite="both").middleware()
    assert run(model, mw)["messages"][-1].content == "I could not find it."
    assert mw.session.failures == 5
    assert steered(model) == []
    monkeypatch.undo()
    mw = ReasonBlocks(suite="both").middleware()
    mw._make_session = broken
    assert run(ScriptedChat(script=looping(1)), mw)["messages"][-1].content == "I could not find it."


def test_rewritten_history_adds_no_duplicate_steps():
    from langchain.agents.middleware import SummarizationMiddleware

    model = ScriptedChat(script=looping(12))
    summary = SummarizationMiddleware(
        model=ScriptedChat(script=[AIMessage(content="so far nothing")]), trigger=("messages", 8), keep=("messages", 4)
    )
    mw = ReasonBlocks(suite="both").middleware()
    agent = create_agent(model=model, tools=[search], middleware=[summary, mw])
    agent.invoke(ASKED, {"recursion_limit": 200})
    assert len(mw.step_log) == 13
    assert mw.session._run.finish()["steps"] in {12, 13}


def test_outcome_is_unknown_without_a_verdict():
    mw = ReasonBlocks(suite="both").middleware()
    with mw:
        run(ScriptedChat(script=looping(1)), mw)
    assert mw.session.outcome == "completed"
    verdict = ReasonBlocks(suite="both").middleware()
    with verdict:
        run(ScriptedChat(script=looping(1)), verdict)
        verdict.mark_success()
    assert verdict.session.outcome == "success"


def test_exception_after_the_run_is_a_failure():
    mw = ReasonBlocks(suite="both").middleware()

    def run_and_check() -> None:
        with mw:
            run(ScriptedChat(script=looping(1)), mw)
            raise AssertionError("the tests of the task fail")

    with pytest.raises(AssertionError):
        run_and_check()
    assert mw.session.outcome == "failure: AssertionError"
