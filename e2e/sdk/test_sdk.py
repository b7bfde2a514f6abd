"""The public SDK against `rb serve`: only the base URL is changed."""

from __future__ import annotations

import asyncio
import importlib.metadata
import uuid
from typing import Any

import pytest
from langchain.agents import create_agent
from reasonblocks import CodebaseMemory, MonitorClient, ReasonBlocks, ReasonBlocksAPI

from conftest import Server
from scripted import ScriptedModel, looping, search, text_of

VERSION = importlib.metadata.version("reasonblocks")
newer = pytest.mark.skipif(VERSION == "0.1.0", reason="0.1.0 does not have this")
TASK = "Find where the session timeout is set and raise it."


def agent(model: ScriptedModel, middleware: Any) -> Any:
    return create_agent(model, tools=[search], system_prompt="You are careful.", middleware=[middleware])


def question() -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": TASK}]}


def steered(model: ScriptedModel) -> list[int]:
    """Indices of the calls with monitor guidance."""
    marks = ("[REASONBLOCKS]",)
    return [at for at, text in enumerate(model.system_texts()) if any(mark in text for mark in marks)]


def test_looping_agent_is_steered_and_its_telemetry_is_stored(server: Server) -> None:
    run_id = f"loop-{VERSION}-{uuid.uuid4()}"
    model = ScriptedModel(script=looping(9), seen=[])
    with ReasonBlocks(api_key=server.key, base_url=server.url).middleware(
        run_id=run_id, agent_name="looper", task=TASK, model="claude-sonnet-4-5"
    ) as middleware:
        agent(model, middleware).invoke(question(), {"recursion_limit": 60})

    texts = model.system_texts()
    assert "[REASONBLOCKS]" in texts[0], "the first call contains the standing rules"
    advised = [text for text in texts[1:] if "same" in text and "[REASONBLOCKS]" in text]
    assert advised, "the loop is detected"
    run = server.run(run_id, steps=len(model.seen), is_over=True)
    assert run["outcome"] == "success" and run["agent_name"] == "looper" and run["task"] == TASK
    assert [step["step_index"] for step in run["steps"]] == list(range(len(model.seen)))
    last = run["steps"][-1]
    assert last["action"] == "search" and "session timeout" in last["action_input"]
    assert any("semantic_loop" in step["fired"] for step in run["steps"])
    shown = [text for step in run["steps"] for text in step["intervention_texts"]]
    assert shown, "guidance is stored with the step"
    if VERSION != "0.1.0":  # which sends no tokens
        assert run["steps"][0]["input_tokens"] == 1000 and run["steps"][0]["cache_read_tokens"] == 400
        listed = [row for row in server.ask("GET", "/v1/monitor/runs") if row["run_id"] == run_id]
        assert listed[0]["cost_usd"] > 0
    # Other organisations cannot read the run.
    assert server.ask("GET", "/v1/monitor/runs?org_id=other", key="operator") == []


@newer
def test_async_agent_is_steered(server: Server) -> None:
    model = ScriptedModel(script=looping(9), seen=[])
    middleware = ReasonBlocks(api_key=server.key, base_url=server.url).middleware(task=TASK)
    asyncio.run(agent(model, middleware).ainvoke(question(), {"recursion_limit": 60}))
    middleware.close()
    assert len(steered(model)) >= 2


def test_healthy_agent_gets_no_guidance(server: Server) -> None:
    from langchain_core.messages import AIMessage

    from scripted import call

    script = [
        call("Let me look for the setting.", 1, query="timeout"),
        call("The setting is in config.toml, so I read it.", 2, query="config.toml"),
        AIMessage(content="The timeout is set in config.toml; that is the place."),
    ]
    model = ScriptedModel(script=script, seen=[])
    middleware = ReasonBlocks(api_key=server.key, base_url=server.url).middleware(task=TASK)
    agent(model, middleware).invoke(question())
    middleware.close()
    assert all(entry.monitors_fired == [] for entry in middleware.step_log)


def test_patterns_of_all_tiers_reach_the_prompt(server: Server) -> None:
    thought = "The login test fails because the session expires too early. Perhaps I could try again?"
    pattern = {
        "tier": "e1",
        "pattern_id": f"e1-session-{VERSION}",
        "context": "\n".join([thought] * 3),
        "fields": {
            "task_context_embedding_text": "login tests that fail after a while",
            "observation": "raising the timeout in the client changes nothing",
            "recommended_action": "look at the clock skew setting of the server",
        },
    }
    server.ask("POST", "/v1/library/patterns", pattern)
    # The SDK queries E2 once, at the first thought and without a failure type, so the situation must match.
    shared = {
        "tier": "e2",
        "pattern_id": f"e2-session-{VERSION}",
        "failure_type": "loop",
        "context": thought,
        "fields": {
            "trajectory": "the same test is run again and again",
            "diagnosis": "nothing was changed between the runs",
            "intervention": "change one thing before running the test again",
            "anti_pattern": "hoping for another result",
        },
    }
    server.ask("POST", "/v1/library/patterns", shared, key=server.operator_key)
    model = ScriptedModel(script=looping(12, thought), seen=[])
    middleware = ReasonBlocks(api_key=server.key, base_url=server.url).middleware(task=TASK)
    agent(model, middleware).invoke(question(), {"recursion_limit": 60})
    middleware.close()
    prompts = "\n".join(model.system_texts())
    assert "clock skew" in prompts, "E1 of the organisation"
    previews = [preview for entry in middleware.step_log for preview in entry.injections]
    tiers = {preview[1:3] for preview in previews if preview.startswith("[e")}
    assert {"e1", "e2", "e3"} <= tiers, previews
    assert f"[e1:e1-session-{VERSION}]" in previews, "an injection names its pattern"


def test_client_reads_back_its_run(server: Server) -> None:
    run_id = f"by-hand/{VERSION}"
    client = MonitorClient(api_key=server.key, base_url=server.url)
    assert client.start_run(run_id=run_id, agent_name="by hand", task=TASK, model="gpt-4o")
    for at, action in enumerate(["ls", "cat", "grep"]):
        reply = client.log_step(run_id=run_id, step_index=at, thought="Look.", action=action, observation=f"{at}.rs")
        assert reply is not None and reply["fired"] == []
    assert client.finish_run(run_id=run_id, outcome="success") is not None
    assert client.finish_run(run_id=run_id, outcome="failure: tests") is not None
    run = client.get_run(run_id)
    assert run is not None and run["outcome"] == "failure: tests" and len(run["steps"]) == 3
    assert run_id in [row["run_id"] for row in client.list_runs(limit=10)]
    health = client.health_summary()
    assert health is not None and health["total_runs"] >= 1 and 0 <= health["clean_run_rate"] <= 1
    client.close()


def test_findings_are_recalled_by_similarity(server: Server) -> None:
    memory = CodebaseMemory(api_key=server.key, base_url=server.url, codebase_id=f"acme/shop-{VERSION}")
    memory.clear()
    finding = "The session token expires after thirty minutes, see SessionStore."
    assert memory.store(finding, file_path="src/session.py", finding_type="behavior")
    assert memory.store("Invoices are rounded to whole cents.", file_path="src/invoice.py")
    best = memory.recall("how long until the session token expires?")[0]
    assert best["file_path"] == "src/session.py" and 0.25 <= best["score"] <= 1
    assert "thirty minutes" in memory.format_recall("session token expiry")
    assert memory.coverage_for(["src/session.py", "src/other.py"]) == 0.5
    assert memory.invalidate(["src/invoice.py"]) == 1
    assert len(memory.list_all()) == 1
    assert memory.clear() is True and memory.list_all() == []


def test_scores_and_patterns(server: Server) -> None:
    api = ReasonBlocksAPI(api_key=server.key, base_url=server.url)
    assert api.score_step("ok", "") == pytest.approx(0.04756, abs=1e-5)
    assert api.retrieve_traces("", level="e3", top_k=32), "the starter library is installed"
    api.close()


@newer
def test_session_without_a_framework_is_steered(server: Server) -> None:
    from reasonblocks.client import ReasonBlocks as Client

    run_id = f"session-{uuid.uuid4()}"
    session = Client(api_key=server.key, base_url=server.url).claude_messages_session(run_id=run_id, task=TASK)
    prompts = []
    with session:
        for _ in range(8):
            decision = session.begin_step(
                thought="I will search for the session timeout setting.",
                action="search", action_input='{"query": "session timeout"}', observation="no match",
            )
            prompts.append(decision.compose_system_prompt("You are careful."))
            session.end_step(decision)
    assert any("[REASONBLOCKS]" in text for text in prompts)
    assert server.run(run_id, steps=8, is_over=True)["outcome"] == "success"


@newer
def test_experiment_totals(server: Server) -> None:
    experiment = f"timeout-{uuid.uuid4()}"
    client = ReasonBlocks(api_key=server.key, base_url=server.url)
    arms: list[str] = []
    untouched: list[str] = []
    for task in range(12):
        model = ScriptedModel(script=looping(6), seen=[])
        middleware = client.ab_middleware(
            experiment_id=experiment, unit_id=f"task-{task}", task=TASK, run_id=f"{experiment}-{task}"
        )
        with middleware:
            agent(model, middleware).invoke(question(), {"recursion_limit": 60})
            if task % 3 == 0:
                middleware.mark_failure(reason="failure")
        arms.append(middleware.arm)
        if middleware.arm == "off":
            untouched.extend(text_of(messages[0]) for messages in model.seen)
    for task in range(12):
        server.run(f"{experiment}-{task}", steps=1, is_over=True)
    report = server.ask("GET", f"/v1/monitor/experiments/{experiment}/report")
    assert {arm: report["arms"][arm]["n_runs"] for arm in ("on", "off")} == {
        arm: arms.count(arm) for arm in ("on", "off")
    }
    outcomes = [report["arms"][arm]["outcomes"] for arm in ("on", "off")]
    assert sum(arm["failure"] for arm in outcomes) == 4 and sum(arm["success"] for arm in outcomes) == 8
    low, high = report["comparison"]["success_rate"]["ci_95"]
    assert low <= report["comparison"]["success_rate"]["delta"] <= high
    assert not any("[REASONBLOCKS]" in text for text in untouched), "the arm `off` is unchanged"
