"""Sessions in custom loops, and settings."""

from __future__ import annotations

import pickle

import pytest

from reasonblocks import FSMState, LocalLibrary, ReasonBlocks, Rules, Run, SteeringSession, Step, assign_arm
from reasonblocks._engine import render_pattern, similarity

E1 = {
    "tier": "e1",
    "pattern_id": "p1",
    "fields": {
        "task_context_embedding_text": "searching for where the session timeout is set",
        "observation": "searching by name finds nothing",
        "recommended_action": "read the settings file",
    },
}
E2 = {
    "tier": "e2",
    "pattern_id": "p2",
    "failure_type": "action_loop",
    "fields": {
        "trigger_state": {"trajectory_description": "the same tool again and again"},
        "diagnosis": "the question is too broad",
        "intervention": "ask something narrower",
        "anti_pattern": "one more search",
    },
}


def walk(session: SteeringSession, count: int) -> list[str | None]:
    texts = []
    for at in range(count):
        if at == 0:
            decision = session.begin_step(model_id="claude-sonnet-4-5")
        else:
            decision = session.begin_step(
                thought="I look for where the session timeout is set",
                action="search",
                action_input={"query": "session timeout"},
                observation="nothing found",
                model_id="claude-sonnet-4-5",
            )
        texts.append(decision.fragment)
        session.end_step(decision, tokens=10, tool_calls=["search"])
    return texts


def test_custom_loop_is_monitored_and_steered():
    with ReasonBlocks(suite="both").session(task="find the timeout") as session:
        texts = walk(session, 9)
    assert [at for at, text in enumerate(texts) if text] == [3, 8]
    assert texts[3] != texts[8]
    assert session.tokens == 90
    assert session.state is FSMState.END
    assert [entry.fsm_state for entry in session.step_log][:2] == ["INIT", "NORMAL"]
    entry = session.step_log[3].as_dict()
    assert entry["failure_type"] == "action_loop"
    assert entry["monitors_fired"][0] == "streak"
    assert entry["intervention_texts"][0] in texts[3]


def test_local_patterns_match_by_similarity_and_failure_type():
    rb = ReasonBlocks(suite="both", patterns=[E1, E2])
    session = rb.session()
    texts = walk(session, 4)
    assert texts[:2] == [None, None]
    assert "UNLOCK: read the settings file" in texts[2]  # the composite opened the gate
    assert "INTERVENTION: ask something narrower" in texts[3]
    assert [entry.injection_sources for entry in session.step_log] == [[], [], ["e1"], ["monitor", "e2"]]
    assert session.step_log[2].injections == ["[e1:p1]"]
    assert len(LocalLibrary([E1, E2])) == 2
    with pytest.raises(ValueError, match="missing field of an e1 pattern: `recommended_action` or `unlock`"):
        LocalLibrary([{"tier": "e1", "fields": {"situation": "x"}}])
    with pytest.raises(ValueError, match="unknown tier: `e9`"):
        LocalLibrary([{"tier": "e9", "fields": {}}])


def test_patterns_are_read_from_a_file(tmp_path):
    import json

    path = tmp_path / "patterns.jsonl"
    path.write_text("\n".join(json.dumps(p) for p in (E1, E2)) + "\n\n")
    assert len(LocalLibrary.from_file(path)) == 2


async def test_async_session():
    async with ReasonBlocks(suite="both").session() as session:
        decision = await session.abegin_step()
        session.end_step(decision)
        for _ in range(3):
            decision = await session.abegin_step(thought="again", action="search")
            session.end_step(decision)
    assert decision.fragment is not None


def test_system_prompt_with_and_without_a_base():
    session = ReasonBlocks(suite="both").session()
    walk(session, 3)
    decision = session.begin_step(thought="again", action="search")
    assert decision.compose_system_prompt("Base. \n") == f"Base.\n\n{decision.fragment}"
    assert decision.compose_system_prompt(None) == decision.fragment
    assert decision.fragment == f"[REASONBLOCKS]\n{decision.rendered_injection_text}"
    assert decision.system_blocks("Base.")[0]["cache_control"] == {"type": "ephemeral"}
    own = [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}]
    assert decision.system_blocks(own)[:2] == own
    assert decision.system_blocks(None) == [{"type": "text", "text": decision.fragment}]


def test_decision_counts_once_and_only_after_a_response():
    session = ReasonBlocks(suite="both").session()
    walk(session, 3)
    first = session.begin_step(thought="again", action="search")
    again = session.begin([])
    assert first.fragment == again.fragment
    assert session.end_step(again) is not None
    assert session.end_step(again) is None
    assert len(session.step_log) == 4


def test_stages_cannot_be_used_twice():
    run = Run(Rules())
    ask = run.before_model([])
    plan = run.plan(ask)
    with pytest.raises(ValueError, match="was already planned"):
        run.plan(ask)
    run.record(plan)
    with pytest.raises(ValueError, match="was already recorded"):
        run.record(plan)
    with pytest.raises(TypeError):
        run.before_model(["no step"])
    assert run.finish() == {"steps": 0, "calls": 1, "tokens": 0, "injections": 0, "fired": {}}


@pytest.mark.parametrize(
    "argument",
    [
        {},
        [],
        {"query": 'a "b" \\ c\n\r\t\b\f\x00\x1f\x7f é 字 😀', "n": -12, "yes": True, "no": False, "none": None},
        {"nested": [{"a": [1, 2, []]}, "x"]},
        {"float": 1.5, "big": 10**30, 3: "number as a name"},
        {"tuple": (1, 2)},
    ],
)
def test_structured_arguments_equal_json_dumps(argument):
    import json

    expected = json.dumps(argument, ensure_ascii=False)
    assert Step(action="tool", action_input=argument).action_input == expected


def test_unserialisable_arguments_become_text():
    endless: list[object] = []
    endless.append(endless)
    assert Step(action="tool", action_input=endless).action_input == "[[...]]"
    assert Step(action="tool", action_input={"x": object}).action_input == '{"x": "<class \'object\'>"}'
    assert Step(action="tool", action_input="plain").action_input == "plain"


def test_readings_have_advice_and_steps():
    run = Run(Rules(suite="heuristic"))
    run.record(run.plan(run.before_model([])))
    ask = run.before_model([Step("x", "read")] * 3)
    streak = ask.readings[0]
    assert (streak.monitor, streak.suite, streak.score, streak.fired) == ("streak", "heuristic", 0.6, True)
    assert streak.steps[0] == 0
    assert "`read` was called 3 times" in streak.advice
    assert [query.tier for query in ask.queries] == ["e1", "e2"]
    assert ask.composite == 0.2325


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"suite": "all"}, ValueError, '`suite` ("all") must be "semantic"'),
        ({"fsm_thresholds": {"fast": 1}}, TypeError, "unknown setting: `fsm.fast`; use one of fast_threshold"),
        ({"fsm_thresholds": {"fast_threshold": 0.7}}, ValueError, "`fsm.fast_threshold` (0.7) must be smaller"),
        ({"fsm_thresholds": {"fast_window": 1.5}}, ValueError, "`fsm.fast_window` (1.5) must be a whole number"),
        ({"gate": {"cap": 1}}, TypeError, "unknown setting: `gate.cap`"),
        ({"model_routing": {"slow": "x"}}, ValueError, "`routing.slow`: there is no state of that name"),
        ({"token_budget": 0}, ValueError, "`budget.tokens_max` must be at least 1"),
        ({"placement": "middle"}, ValueError, "invalid `placement` ('middle'): use 'system' or 'tail'"),
        ({"monitor_names": ["loop"]}, ValueError, "`monitor_names` is not supported"),
        ({"api_key": "two words"}, ValueError, "invalid `api_key`"),
        ({"api_key": "key\n"}, ValueError, "invalid `api_key`"),
        ({"base_url": "ftp://x"}, ValueError, "must begin with http:// or https://"),
    ],
)
def test_invalid_settings_raise_errors(options, error, message):
    with pytest.raises(error) as raised:
        ReasonBlocks(**options)
    assert message in str(raised.value)


def test_adjusted_weights_are_noted(caplog):
    rb = ReasonBlocks(task_profile="legal", monitor_weights={"sterak": 0.1, "hedge": -1, "streak": 0.5})
    for note, named in zip(rb.rules.notes, ("unknown profile: `legal`", "`hedge`", "`sterak`"), strict=True):
        assert named in note
    assert "sterak" in caplog.text


def test_key_is_masked_and_not_pickled():
    rb = ReasonBlocks(api_key="rb_live_secret_1234", base_url="http://localhost:1")
    for shown in (repr(rb), repr(rb.server)):
        assert "secret" not in shown
        assert "1234" in shown
    for secret in (rb, rb.server):
        with pytest.raises(TypeError, match="instead of pickling"):
            pickle.dumps(secret)


def test_experiment_assignment_is_the_documented_one():
    arms = [assign_arm("cust-acme-q2", f"t-{n}") for n in range(1, 9)]
    assert arms == ["on", "off", "off", "on", "on", "on", "on", "off"]
    with pytest.raises(ValueError, match="on_fraction"):
        assign_arm("a", "b", on_fraction=2)


def test_patterns_render_per_model_family():
    fields = {"instruction": "Whenever you edit, run tests."}
    assert render_pattern("E3", "", fields) == "[RB-MONITOR CORRECTION]\nALWAYS: Whenever you edit, run tests."
    documented = {"situation": "s", "dead_ends": ["a", "b"], "unlock": "u"}
    assert render_pattern("e1", "claude-haiku", documented).endswith("SITUATION: s\nDEAD END: a; b\nUNLOCK: u")


def test_similarity_is_computed_in_process():
    assert similarity("session expiry", "session token expiration") > 0.8
    assert similarity("session expiry", "paint the fence") < 0.1


def test_step_of_a_failed_call_is_sent_at_the_end(serve):
    from conftest import healthy

    server = serve(healthy)
    session = ReasonBlocks(suite="both", base_url=server.url).session(run_id="r")
    session.end_step(session.begin_step())
    session.begin_step(thought="I look.", action="read", observation="nothing")
    session.__exit__(RuntimeError, RuntimeError("the model is away"), None)
    rows = server.bodies("/monitor/runs/r/steps")
    assert [row.get("action") for row in rows] == [None, "read"]
    assert server.bodies("/monitor/runs/r/finish") == [{"outcome": "failure: RuntimeError"}]


def outcomes(server, run_id="r"):
    return [body["outcome"] for body in server.bodies(f"/monitor/runs/{run_id}/finish")]


def test_outcome_is_unknown_without_a_verdict(serve):
    from conftest import healthy

    server = serve(healthy)
    with ReasonBlocks(suite="both", base_url=server.url).session(run_id="r") as session:
        session.end_step(session.begin_step())
    assert outcomes(server) == ["completed"], "a run without an exception is not a success"
    assert session.outcome == "completed"


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda session: session.finish(success=True), ["success"]),
        (lambda session: session.finish(success=False), ["failure"]),
        (lambda session: session.finish(outcome_status="partial"), ["partial"]),
        (lambda session: session.mark_success(), ["success"]),
        (lambda session: session.mark_failure(reason="tests fail"), ["tests fail"]),
        (lambda session: (session.finish(), session.mark_success()), ["completed", "success"]),
    ],
)
def test_explicit_verdict_is_the_outcome(serve, act, expected):
    from conftest import healthy

    server = serve(healthy)
    with ReasonBlocks(suite="both", base_url=server.url).session(run_id="r") as session:
        act(session)
    assert outcomes(server) == expected


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda session: None, "failure: RuntimeError"),
        (lambda session: session.mark_success(), "failure: RuntimeError"),
        (lambda session: session.mark_failure(reason="tests fail"), "tests fail"),
    ],
)
def test_exception_is_a_failure(act, expected):
    session = ReasonBlocks(suite="both").session()
    session.start()
    act(session)
    session.__exit__(RuntimeError, RuntimeError("overloaded"), None)
    assert session.outcome == expected


def test_final_answer_is_evaluated_as_the_closing_step():
    with ReasonBlocks(suite="semantic").session(task="fix the expiry") as session:
        session.end_step(session.begin_step(), tool_calls=["edit_file"])
        for at in range(2):
            decision = session.begin_step(
                thought=f"I change part {at} of the expiry.",
                action="edit_file",
                action_input={"path": f"app/part{at}.py", "old_str": "30", "new_str": "60"},
                observation="The file has been edited.",
            )
            tools = ["edit_file"] if at == 0 else []
            session.end_step(decision, tool_calls=tools, answer="Done. The expiry is fixed and all tests pass.")
    assert session.summary["steps"] == 3
    assert session.summary["fired"] == {"verification_skip": 1}


def test_heuristic_monitors_are_signals_by_default():
    steps = [Step(f"Next is part {at}.", "read_file", {"path": f"src/part{at}.py"}, f"part {at}") for at in range(6)]
    results = {}
    for suite in ("semantic", "both"):
        run = Run(Rules(suite=suite))
        run.record(run.decide([]))
        fired, signals, texts = [], [], []
        for step in steps:
            pre_call = run.before_model([step])
            signals += pre_call.signals
            plan = run.plan(pre_call)
            fired += plan.fired
            texts.append(plan.fragment)
            run.record(plan)
        results[suite] = ("streak" in fired, "streak" in signals, any(texts))
    assert results == {"semantic": (False, True, False), "both": (True, False, True)}


def test_standing_rules_are_looked_up_on_request():
    rule = {"tier": "e3", "fields": {"instruction": "Cite."}}
    for options, is_inserted in [({}, True), ({"tiers": ("e1", "e2")}, False), ({"tiers": ["e3"]}, True)]:
        decision = ReasonBlocks(patterns=[rule], **options).session().begin_step()
        assert bool(decision.fragment) == is_inserted, options
    assert [query.tier for query in Run(Rules()).before_model([]).queries] == []
