"""Token saving middleware."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import ScriptedChat, looping, turn
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from reasonblocks import ReasonBlocksConfig, TokenSavingMiddleware, build_middleware


@tool
def search(query: str) -> str:
    """Return a long result."""
    return "line\n" * 1_000


class ChatOpenAI(ScriptedChat):
    """Has the name of a provider with automatic prompt caching."""


def run(model: Any, *middleware: Any) -> Any:
    agent = create_agent(model=model, tools=[search], middleware=list(middleware))
    return agent.invoke({"messages": [("user", "go")]}, {"recursion_limit": 500})


def lengths(messages: list[Any]) -> list[int]:
    return [len(m.content) for m in messages if isinstance(m, ToolMessage)]


def test_old_tool_output_is_truncated_in_the_request_only():
    model = ScriptedChat(script=looping(4))
    saving = TokenSavingMiddleware()
    result = run(model, saving)
    assert lengths(model.requests[4]) == [1634, 1634, 5000, 5000]
    assert lengths(result["messages"]) == [5000] * 4
    assert saving.stats.compressions == 3
    assert saving.stats.chars_saved == 3 * (5000 - 1634)


def test_automatic_prompt_cache_stays_valid():
    model = ChatOpenAI(script=looping(4), model_name="gpt-5")
    run(model, TokenSavingMiddleware())
    assert lengths(model.requests[4]) == [5000] * 4
    forced = ChatOpenAI(script=looping(4), model_name="gpt-5")
    run(forced, TokenSavingMiddleware(force_compression_on_auto_cache=True))
    assert lengths(forced.requests[4])[0] == 1634


def nudges(model: ScriptedChat) -> list[int]:
    return [at for at, r in enumerate(model.requests) if "Run monitor" in str(r[-1].content)]


def test_repetitive_run_gets_early_exit_messages():
    model = ScriptedChat(script=looping(20))
    saving = TokenSavingMiddleware(early_exit_min_call_index=10)
    result = run(model, saving)
    assert nudges(model) == [10, 15, 20]
    assert saving.stats.early_exits == 3
    assert sum(isinstance(m, HumanMessage) for m in result["messages"]) == 1


def test_healthy_run_gets_no_early_exit_message():
    names = ["search", "lookup", "scan"]
    script = [*(turn(f"step {n}", n, str(n), names[n % 3]) for n in range(20)), AIMessage(content="done")]
    model = ScriptedChat(script=script)
    tools = [_named(name) for name in names]
    agent = create_agent(model=model, tools=tools, middleware=[TokenSavingMiddleware(early_exit_min_call_index=5)])
    agent.invoke({"messages": [("user", "go")]}, {"recursion_limit": 500})
    assert nudges(model) == []


def _named(name: str) -> Any:
    from langchain_core.tools import StructuredTool

    return StructuredTool.from_function(func=lambda query: "ok " + query, name=name, description="x")


def test_custom_early_exit_signals():
    model = ScriptedChat(script=looping(3))
    run(model, TokenSavingMiddleware(early_exit_min_call_index=2, signals_fn=lambda steps: {"streak": 1.0}))
    assert nudges(model) == [2]


def test_config_creates_the_middleware_list():
    config = ReasonBlocksConfig(suite="both", monitor_weights={"streak": 0.5}, ts_early_exit_min_call_index=4)
    made = build_middleware(config, run_id="r", run_metadata={"task": "t", "pr": 7})
    assert [type(m).__name__ for m in made] == ["ReasonBlocksMiddleware", "TokenSavingMiddleware"]
    model = ScriptedChat(script=looping(4))
    run(model, *made)
    assert made[0].run_id == "r"
    assert made[0].session._metadata["metadata"] == {"pr": 7}
    assert made[0].step_log[3].monitors_fired == ["streak"]
    assert nudges(model) == [4]
    assert config.summary()["token_saving"] is True
    off = ReasonBlocksConfig(
        enable_e1=False, enable_e2=False, enable_e3=False, enable_monitor_steering=False, enable_token_saving=False
    )
    assert build_middleware(off) == []


def test_negative_lengths_are_rejected():
    with pytest.raises(ValueError, match="must not be negative"):
        TokenSavingMiddleware(head_keep_chars=-1)
