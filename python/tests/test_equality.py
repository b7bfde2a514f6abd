"""One recorded trace through a session with and without a server, compared with the other integrations.

`e2e/equality/steered.json` is the result of the engine; `crates/rb/tests/it/equality.rs` writes it and compares the
walk and the gateway with it. `RB_BIN` is the path of the binary.
"""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from test_serve import RB_BIN, url  # noqa: F401 -- a fixture

from reasonblocks import ReasonBlocks
from reasonblocks.steering import SteeringSession

DATA = Path(__file__).parents[2] / "e2e" / "equality"
TRACE = json.loads((DATA / "trace.jsonl").read_text())
STEERED = json.loads((DATA / "steered.json").read_text())
MODEL = "claude-sonnet-4-5"


class RecordingRun:
    """Delegates to the engine's run and keeps the assessment of each call."""

    def __init__(self, run: Any) -> None:
        self._run = run
        self.assessed: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    def before_model(self, steps: Any, verdict: Any = None) -> Any:
        pre_call = self._run.before_model(steps, verdict)
        readings = {reading.monitor: reading.score for reading in pre_call.readings}
        self.assessed.append((readings, pre_call.signals))
        return pre_call

    def decide(self, steps: Any, model_id: str) -> Any:
        return self.plan(self.before_model(steps), None, model_id)


def results(session: SteeringSession) -> list[dict[str, Any]]:
    """Plays the trace and returns what the session decided after each step."""
    recording = RecordingRun(session._run)
    session._run = recording  # type: ignore[assignment]
    session.end_step(session.begin_step(model_id=MODEL))
    found = []
    for step in TRACE["steps"]:
        decision = session.begin_step(model_id=MODEL, **step)
        entry = session.end_step(decision)
        scores, signals = recording.assessed[-1]
        found.append(
            {
                "state": decision.state.value,
                "scores": scores,
                "composite": entry.composite,
                "fired": entry.monitors_fired,
                "signals": signals,
                "guidance": decision.fragment,
                "decision": "steer" if decision.fragment else "go_on",
                "texts": entry.intervention_texts,
            }
        )
    return found


def check(found: list[dict[str, Any]]) -> None:
    assert len(found) == len(STEERED) == len(TRACE["steps"])
    for at, (ours, expected) in enumerate(zip(found, STEERED, strict=True)):
        for field, value in expected.items():
            assert ours[field] == value, f"`{field}` of step {at}"


def test_session_without_a_server_decides_like_the_engine():
    with ReasonBlocks().session(task=TRACE["task"]) as session:
        check(results(session))
    assert session.failures == 0


@pytest.mark.skipif(not RB_BIN, reason="RB_BIN names no `rb` binary")
def test_session_with_a_server_decides_like_the_engine(url):  # noqa: F811
    for tier in ("e1", "e2", "e3"):
        listed = json.load(urllib.request.urlopen(f"{url}/v1/library/patterns?tier={tier}&limit=1000"))
        for pattern in listed:
            delete = urllib.request.Request(
                f"{url}/v1/library/patterns/{tier}/{pattern['pattern_id']}", method="DELETE"
            )
            urllib.request.urlopen(delete).close()
    rb = ReasonBlocks(api_key="rb_test_x", base_url=url)
    with rb.session(run_id="equality", task=TRACE["task"]) as session:
        check(results(session))
    assert session.failures == 0
    # The same steps as stored: the first row is the first call, and the last one is sent at the end.
    rows = rb.server.get_run("equality")["steps"][1:]
    assert [row["intervention_texts"] for row in rows] == [step["texts"] for step in STEERED]
