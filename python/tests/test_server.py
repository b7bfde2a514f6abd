"""Evaluation, retrieval and telemetry with a server, and fallback when it fails."""

from __future__ import annotations

import threading
import time
from typing import Any

from conftest import ScriptedChat, healthy, looping, search
from langchain.agents import create_agent

from reasonblocks import MonitorClient, ReasonBlocks, ReasonBlocksAPI, Server, Step
from reasonblocks.telemetry import Telemetry

ASKED = {"messages": [("user", "Where is the session expiry set?")]}


def run(model: ScriptedChat, mw: Any) -> None:
    agent = create_agent(model=model, tools=[search], system_prompt="You fix bugs.", middleware=[mw])
    agent.invoke(ASKED, {"recursion_limit": 200})


def guidance(model: ScriptedChat) -> dict[int, str]:
    found = {}
    for at, request in enumerate(model.requests):
        blocks = [b["text"] for b in request[0].content if b["text"].startswith("[REASONBLOCKS]")]
        if blocks:
            found[at] = blocks[0]
    return found


def test_server_evaluates_retrieves_and_receives_telemetry(serve):
    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        if path == "/monitors/evaluate" and len(body["steps"]) == 2:
            return 200, {
                "inject": True,
                "intervention_text": "The server says: look elsewhere.",
                "fired": ["semantic_loop", "from_the_future"],
                "scores": {"semantic_loop": 0.9},
                "composite": 0.4,
                "failure_type": "semantic_loop",
            }
        if path == "/traces/retrieve" and body["tier"] == "e3":
            fields = {"instruction": "Cite.", "pattern_id": "r1"}
            return 200, {"traces": [{"tier": "e3", "fields": fields}, "broken", {"tier": "e3", "fields": {"x": 1}}]}
        return healthy(method, path, body)

    server = serve(answer)
    rb = ReasonBlocks(
        api_key="rb_live_x",
        base_url=server.url,
        monitor_weights={"streak": 0.5},
        task_profile="qa",
        tiers=["e1", "e2", "e3"],
    )
    model = ScriptedChat(script=looping(3))
    mw = rb.middleware(run_id="org/run:1", agent_name="fixer", task="find it", metadata={"pr": 7})
    with mw:
        run(model, mw)
    assert guidance(model) == {
        0: "[REASONBLOCKS]\n[RB-MONITOR CORRECTION]\nALWAYS: Cite.",
        2: "[REASONBLOCKS]\nThe server says: look elsewhere.",
    }
    assert mw.step_log[2].monitors_fired == ["semantic_loop"]
    assert mw.step_log[3].monitors_fired == []

    asked = server.bodies("/monitors/evaluate")
    assert [len(body["steps"]) for body in asked] == [1, 2, 3]
    assert asked[0] == {
        "model": "claude-sonnet-4-5",
        "task_profile": "qa",
        "weights": {"streak": 0.5},
        "run_id": "org/run:1",
        "task": "find it",
        "first_step_index": 1,
        "steps": [
            {
                "thought": "Let me search again 0",
                "action": "search",
                "action_input": {"query": "session"},
                "observation": "nothing found for session",
                "observation_is_error": False,
            }
        ],
    }
    looked_up = [(body["tier"], body["top_k"], body.get("failure_type")) for body in server.bodies("/traces/retrieve")]
    assert looked_up[0] == ("e3", 32, None)
    assert ("e1", 1, None) in looked_up
    assert looked_up.count(("e2", 2, "semantic_loop")) == 1

    start = server.bodies("/monitor/runs")[0]
    assert start == {
        "run_id": "org/run:1", "agent_name": "fixer", "task": "find it", "model": "", "framework": "langchain",
        "codebase_id": "", "org_id": "default", "project_id": "default", "task_profile": "qa", "metadata": {"pr": 7},
    }  # fmt: skip
    rows = server.bodies("/monitor/runs/org/run:1/steps")
    assert [row["step_index"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[0]["thought"] == "(first call)"
    assert rows[2]["intervention_texts"] == ["The server says: look elsewhere."]
    assert rows[2]["tokens"] == 110
    assert rows[2]["step_model"] == "claude-sonnet-4-5"
    assert rows[2]["metadata"]["fsm_state"] == "NORMAL"
    assert rows[4]["thought"] == "I could not find it."
    assert rows[4]["metadata"]["is_answer"] is True
    assert server.bodies("/monitor/runs/org/run:1/finish") == [{"outcome": "completed"}]
    assert server.headers[0]["Authorization"] == "Bearer rb_live_x"


def test_only_new_steps_are_sent_after_a_mark(serve):
    known: dict[str, int] = {}
    is_forgetful = False

    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        if path != "/monitors/evaluate":
            return healthy(method, path, body)
        after = body.get("after_mark")
        if after is not None and (is_forgetful or after not in known):
            return 409, {"detail": "send the whole run"}
        count = known.get(after or "", 0) + len(body["steps"])
        known[f"mark {count}"] = count
        return 200, {"inject": False, "fired": [], "scores": {}, "composite": 0.0, "mark": f"mark {count}"}

    server = serve(answer)
    session = ReasonBlocks(suite="both", base_url=server.url, live_streaming_enabled=False).session()

    def take(thought: str) -> None:
        session.end_step(session.begin_step(thought=thought))

    def asked() -> list[tuple[int, str | None]]:
        return [(len(body["steps"]), body.get("after_mark")) for body in server.bodies("/monitors/evaluate")]

    for thought in ("one", "two", "three"):
        take(thought)
    assert asked() == [(1, None), (1, "mark 1"), (1, "mark 2")]
    is_forgetful = True
    take("four")
    assert asked()[3:] == [(1, "mark 3"), (4, None)], "a restarted server does not know the mark"
    is_forgetful = False
    take("five")
    assert asked()[5:] == [(1, "mark 4")]


def test_failing_server_falls_back_after_one_request(serve):
    server = serve(lambda *_: (503, {"detail": "down"}))
    rb = ReasonBlocks(suite="both", base_url=server.url, live_streaming_enabled=False)
    model = ScriptedChat(script=looping(4))
    mw = rb.middleware()
    run(model, mw)
    assert list(guidance(model)) == [3]
    assert mw.step_log[3].monitors_fired == ["streak"]
    assert len(server.requests) == 1


def test_hanging_server_delays_the_agent_once(serve):
    release = threading.Event()

    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        release.wait(5)
        return 200, {}

    server = serve(answer)
    rb = ReasonBlocks(suite="both", base_url=server.url, timeout=0.2)
    model = ScriptedChat(script=looping(6))
    begun = time.monotonic()
    run(model, rb.middleware())
    elapsed = time.monotonic() - begun
    release.set()
    rb.close()
    assert elapsed < 2.0
    assert list(guidance(model)) == [3]


def test_failed_lookup_is_retried(serve):
    failing = [True]

    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        if path == "/traces/retrieve" and body["tier"] == "e3":
            if failing:
                failing.clear()
                return 200, {"nothing": "useful"}
            return 200, {"traces": [{"fields": {"instruction": "Cite.", "pattern_id": "r1"}}]}
        return healthy(method, path, body)

    server = serve(answer)
    model = ScriptedChat(script=looping(3))
    run(model, ReasonBlocks(base_url=server.url, tiers=("e1", "e2", "e3")).middleware())
    assert list(guidance(model)) == [1]


async def test_server_requests_do_not_block_the_event_loop(serve):
    import asyncio

    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        time.sleep(0.1)
        return healthy(method, path, body)

    server = serve(answer)
    rb = ReasonBlocks(suite="both", base_url=server.url)
    agent = create_agent(model=ScriptedChat(script=looping(3)), tools=[search], middleware=[rb.middleware()])
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await agent.ainvoke(ASKED, {"recursion_limit": 200})
    ticking.cancel()
    assert ticks > 20


def test_full_telemetry_queue_drops_the_oldest_event(serve):
    release = threading.Event()
    seen: list[int] = []

    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        release.wait(5)
        seen.append(body["step_index"])
        return 200, {"ok": True}

    server = serve(answer)
    telemetry = Telemetry(Server(base_url=server.url), queue_capacity=5)
    begun = time.monotonic()
    for n in range(100):
        telemetry.send_step("r", {"step_index": n})
    assert time.monotonic() - begun < 0.5
    release.set()
    assert telemetry.flush(5)
    assert seen[-5:] == [95, 96, 97, 98, 99]
    assert telemetry.stats.dropped_full == 100 - len(seen)
    telemetry.close()
    telemetry.send_step("r", {"step_index": 100})
    assert telemetry.stats.enqueued == 100


def test_telemetry_retries_transient_errors(serve):
    answers = [(500, {}), (429, {}), (200, {"ok": True}), (422, {"detail": "no"}), (200, {"ok": True})]
    server = serve(lambda *_: answers.pop(0))
    telemetry = Telemetry(Server(base_url=server.url), retry_delay_s=0.01)
    for n in range(3):
        telemetry.send_step("r", {"step_index": n})
    assert telemetry.flush(5)
    assert (telemetry.stats.sent, telemetry.stats.dropped_failed) == (2, 1)
    assert len(server.requests) == 5


def test_outcome_can_be_corrected_later(serve):
    server = serve(healthy)
    rb = ReasonBlocks(suite="both", base_url=server.url)
    mw = rb.middleware(run_id="r")
    with mw:
        run(ScriptedChat(script=looping(1)), mw)
        mw.mark_failure(reason="tests_still_failing")
    outcomes = [body["outcome"] for body in server.bodies("/monitor/runs/r/finish")]
    assert outcomes == ["completed", "tests_still_failing"]


def test_clients_use_the_documented_routes(serve):
    def answer(method: str, path: str, body: Any) -> tuple[int, Any]:
        return {
            "/monitor/runs?limit=3": (200, [{"run_id": "a"}]),
            "/monitor/runs/a%23b": (200, {"run_id": "a#b"}),
            "/monitor/health-summary": (200, {"total_runs": 1}),
            "/score": (200, {"difficulty": 0.25}),
        }.get(path, (200, {"ok": True}))

    server = serve(answer)
    client = MonitorClient(api_key="k", base_url=server.url + "/")
    assert client.list_runs(limit=3) == [{"run_id": "a"}]
    assert client.get_run("a#b") == {"run_id": "a#b"}
    assert client.health_summary() == {"total_runs": 1}
    assert client.start_run(run_id="a", task="t") == {"ok": True}
    assert client.log_step(run_id="a", step_index=0, thought="x") == {"ok": True}
    assert client.finish_run(run_id="a", outcome="success") == {"ok": True}
    api = ReasonBlocksAPI("k", server.url + "/v1")
    assert api.score_step("x") == 0.5
    assert server.requests[-1][1] == "/v1/score"
    assert api.evaluate([Step("x")]) is None
    assert Server(base_url="http://127.0.0.1:1", timeout=0.2).list_runs() == []


def test_base_url_from_the_environment(serve, monkeypatch, caplog):
    server = serve(healthy)
    monkeypatch.setenv("REASONBLOCKS_BASE_URL", server.url)
    assert ReasonBlocks(api_key="k").server is not None
    monkeypatch.setenv("REASONBLOCKS_BASE_URL", "http://rb.example.internal:9000")
    rb = ReasonBlocks(api_key="k")
    assert rb.server is not None
    assert rb.server.base_url == "http://rb.example.internal:9000"
    assert "not encrypted" in caplog.text
    assert ReasonBlocks(api_key="k", base_url="").server is None


def test_connection_is_reused_and_renewed(serve):
    server = serve(healthy)
    client = Server(base_url=server.url)
    assert client.health_summary() == {"status": "ok"}
    first = client._http._local.connection
    assert client.health_summary() == {"status": "ok"}
    assert client._http._local.connection is first
    first.sock.close()
    assert client.health_summary() == {"status": "ok"}
    client.close()
