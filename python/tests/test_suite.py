"""`evaluate_all` and its equality with the public package 0.1.0."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from reasonblocks import _engine
from reasonblocks.monitors import ALL_MONITOR_NAMES, suite
from reasonblocks.monitors.suite import DEFAULT_FIRE_THRESHOLD, DEFAULT_WEIGHTS, evaluate_all

REFERENCE = os.environ.get("RB_REFERENCE_PYTHON")
needs_reference = pytest.mark.skipif(not REFERENCE, reason="RB_REFERENCE_PYTHON names no Python with the reference")

WORDS = [
    "maybe", "Perhaps", "await", "hmm", "not sure", "error", "I was wrong", "never mind", "nevermind", "src/main.py",
    "the bug is not", "İ", "ß", "\ud800", "\ud801", "\x1c", "\x85", "½", "é\u0301", "字", "1234567890", "/tmp/x9",
    "pid=12", "0xDEADBEEF", "2024-01-02 03:04:05Z", "test", "FAILED ", "AssertionError", "failures=2", "ok", "", "\n",
    "550e8400-e29b-41d4-a716-446655440000", "C:\\Users\\x", "on second thought", "disregard that", "😀", "invalid",
]  # fmt: skip
TOOLS = ["edit", "EDIT", "read_file", "run_tests", "pytest", "str_replace", "", None, "write", "grep", "test"]
ODD = [None, 0, 1, [], {}, {"path": "a.py"}, 3.5, True, "plain", b"bytes", ["edit"], ("edit",)]


def some_text(dice: random.Random) -> str:
    return dice.choice([" ", "", "\t"]).join(dice.choice(WORDS) for _ in range(dice.randint(0, 9)))


def some_step(dice: random.Random, *, odd: bool) -> dict[str, Any]:
    step: dict[str, Any] = {"step_index": dice.randint(0, 9)}
    for key in ("thought", "observation", "action_input"):
        if dice.random() < 0.8:
            step[key] = dice.choice(ODD) if odd and dice.random() < 0.2 else some_text(dice)
    if dice.random() < 0.8:
        step["action"] = dice.choice(ODD) if odd and dice.random() < 0.05 else dice.choice(TOOLS)
    if dice.random() < 0.3:
        step["tool_calls"] = dice.choice([[], ["edit"], ["grep", "edit"], None, ("write",)])
    if dice.random() < 0.3:
        step["is_error"] = dice.choice(ODD)
    return step


def cases() -> list[tuple[list[dict[str, Any]], dict[str, Any]]]:
    dice = random.Random(20)
    made = []
    for n in range(1_200):
        length = dice.choice([0, 1, 2, 3, 5, 8, 13, 30])
        steps = [some_step(dice, odd=n % 4 == 0) for _ in range(length)]
        options: dict[str, Any] = {}
        if dice.random() < 0.3:
            options["weights"] = {dice.choice([*DEFAULT_WEIGHTS, "unknown"]): dice.choice([-1, 0, 0.3, 2, 1e9])}
        if dice.random() < 0.3:
            options["fire_threshold"] = dice.choice([0, 0.4, 1, 2])
        made.append((steps, options))
    return made


def ours(steps: Any, options: dict[str, Any]) -> Any:
    try:
        return evaluate_all(steps, **options)
    except Exception as error:
        return type(error).__name__


def timed_runs() -> list[list[dict[str, Any]]]:
    text = "Let me look at the handler in src/app/session.py, maybe the expiry is wrong. " * 6
    step = {"thought": text, "action": "read_file", "action_input": "src/app/session.py", "observation": text * 2}
    return [[step] * length for length in (1, 2, 5, 20, 100)]


@needs_reference
def test_evaluate_all_equals_the_public_function_and_is_faster():
    given = cases()
    script = Path(__file__).with_name("reference.py")
    done = subprocess.run(
        [str(REFERENCE), str(script)], input=pickle.dumps((given, timed_runs())), capture_output=True, check=True
    )
    theirs, seconds, version = pickle.loads(done.stdout)
    for (steps, options), expected in zip(given, theirs, strict=True):
        said = ours(steps, options)
        if isinstance(expected, str):
            assert isinstance(said, str), f"the reference raises {expected}, ours says {said} on {steps}"
            continue
        if version < (3, 12) <= sys.version_info:
            said = {**said, "total": expected["total"]}  # newer Pythons add floats differently
        assert said == expected, (steps, options)
    for steps, theirs_s in zip(timed_runs(), seconds, strict=True):
        best = float("inf")
        for _ in range(60):
            begun = time.perf_counter()
            evaluate_all(steps)
            best = min(best, time.perf_counter() - begun)
        print(
            f"{len(steps):4} steps: {theirs_s * 1e6:9.1f} µs there, {best * 1e6:8.1f} µs here, {theirs_s / best:6.1f}×"
        )
        assert best < theirs_s


def test_documented_run_has_the_documented_scores():
    steps = [
        {"step_index": 0, "action": "read_file", "thought": "Let me look at this", "observation": "..."},
        {"step_index": 1, "action": "read_file", "thought": "Hmm, not sure", "observation": "..."},
        {"step_index": 2, "action": "read_file", "thought": "Maybe I missed something", "observation": "..."},
    ]
    result = evaluate_all(steps)
    assert result["scores"]["streak"] == 0.6
    assert result["fired"] == ["streak", "hedge"]
    assert result["total"] == 0.3325
    assert result["weights"] == DEFAULT_WEIGHTS
    assert DEFAULT_WEIGHTS == {
        "streak": 0.35, "call_count": 0.15, "edit_revert": 0.15, "test_repeat": 0.15, "diversity": 0.10, "hedge": 0.10,
    }  # fmt: skip
    assert DEFAULT_FIRE_THRESHOLD == 0.6
    assert len(ALL_MONITOR_NAMES) == 12


def test_single_monitor_settings():
    steps = [{"action": "read"}] * 4
    assert suite.score_streak(steps) == 0.8
    assert suite.score_streak(steps, cap=4) == 1.0
    assert suite.score_call_count(steps, budget=40) == 0.1
    assert suite.score_diversity(steps * 2) == 1.0
    assert suite.score_diversity(steps, window=3, min_total=4) == 1.0
    assert (suite.score_edit_revert(steps), suite.score_test_repeat(steps)) == (0.0, 0.0)
    assert suite.score_hedge([{"thought": "I was wrong"}]) == 1.0
    with pytest.raises(ValueError, match=r"`monitors.streak.cap` \(0\) must be at least 1"):
        suite.score_streak(steps, cap=0)
    with pytest.raises(TypeError, match="step 1: .*`action` is of type `int`"):
        evaluate_all([{}, {"action": 3}])
    with pytest.raises(TypeError):
        evaluate_all(3)


def test_unpaired_surrogates_are_kept():
    lone = "\ud800" * 3
    step = _engine.Step(lone, "tool", {"x": lone}, lone)
    assert len(step.thought) == 3
    assert _engine.compress_tool_output("\udc80" * 10, threshold_chars=20).startswith("\U00100480")


def test_tool_output_is_truncated_only_if_shorter():
    cut = _engine.compress_tool_output
    assert len(cut("x" * 1800)) == 1800
    assert len(cut("x" * 1801)) == 1633
    assert len(cut("x" * 5000)) == 1634
    assert "[... 3400 chars truncated ...]" in cut("x" * 5000)
    assert cut("x" * 1200, threshold_chars=1000) == "x" * 1200
    assert cut("x" * 10, threshold_chars=5, head_chars=2, tail_chars=2) == "x" * 10


def test_difficulty_is_the_documented_formula():
    assert _engine.score_step("") == 0.5
    assert round(_engine.score_step("ok"), 5) == 0.04756
