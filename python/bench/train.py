"""Training workload for `maturin build --pgo`.

Runs typical agent steps through LangChain messages, a session and `evaluate_all`: successful, failing and repetitive
turns, and ends of runs. Nothing is measured.
"""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

from reasonblocks import SteeringSession
from reasonblocks._engine import ConversationCursor, parse_response
from reasonblocks.monitors.suite import evaluate_all

RUNS = 60
LENGTHS = (6, 40)

THOUGHTS = (
    "Let me look at the handler in src/app/session.py, the expiry may be wrong there. I will read it first.",
    "The test fails because `expires_at` is compared with a naive datetime. Maybe the parser drops the zone.",
    "I think the fix is to convert both to UTC. Wait, actually the bug is not in the parser but in the cache.",
    "That worked. Now I run the whole suite again to be sure that nothing else depends on the old behaviour.",
    "The same error again. Let me try the other module; perhaps the import there is broken.",
    "",
    "I am confident that the issue is in `Cache.get`. All tests pass, so I am done with this part.",
)
ACTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("read_file", {"path": "src/app/session.py", "start_line": 10, "end_line": 80}),
    ("grep", {"pattern": "expires_at", "path": "src"}),
    ("bash", {"command": "cd /repo && python -m pytest tests/test_session.py -x -q 2>&1 | tail -20"}),
    (
        "str_replace_editor",
        {"command": "str_replace", "path": "src/app/session.py", "old_str": "now()", "new_str": "utc()"},
    ),
    ("bash", {"command": "git diff --stat && ls -la src/app"}),
    ("look", {"query": "session expiry"}),
    ("web_search", {"query": "python naive datetime comparison"}),
    ("update_order", {"order_id": "1234", "items": ["a", "b"], "express": True}),
    ("python", {"code": "import json\nprint(json.load(open('data.json'))['total'])"}),
)
RESULTS = (
    "10: class Session:\n11:     def is_fresh(self):\n12:         return self.expires_at > now()\n" * 6,
    "src/app/session.py:12: return self.expires_at > now()\nsrc/app/cache.py:40: expires_at = None\n",
    "E   TypeError: can't compare offset-naive and offset-aware datetimes\n\n1 failed, 12 passed in 0.42s\n",
    "The file src/app/session.py has been edited successfully.",
    ".............\n13 passed in 0.31s\n",
    "nothing of note in the third place " * 15,
    "Error: no results found for this query",
    '{"status": "ok", "order": {"id": "1234", "items": 2}}',
    "Traceback (most recent call last):\n  File \"run.py\", line 3, in <module>\nKeyError: 'total'\n",
)


def turns(run: int) -> list[tuple[str, str, dict[str, Any], str]]:
    """Return one run, short or long. Every third long run repeats itself in its second half."""
    made = []
    for at in range(LENGTHS[run % 2]):
        step = at if at < LENGTHS[1] // 2 or run % 3 else at % 4
        tool, args = ACTIONS[(step * (run % 5 + 1)) % len(ACTIONS)]
        thought = f"{THOUGHTS[(step + run) % len(THOUGHTS)]} This is part {step}." * (1 + run % 8)
        answer = RESULTS[(step + run // 2) % len(RESULTS)].replace("12", str(step + 12))
        made.append((thought, tool, {**args, "note": str(step)}, answer))
    return made


def messages_of(run: int) -> list[Any]:
    """Return the run as objects with the attributes of LangChain messages."""
    made: list[Any] = [SimpleNamespace(type="human", content="Fix the session expiry.", id="u")]
    for at, (thought, tool, args, answer) in enumerate(turns(run)):
        call = {"name": tool, "args": args, "id": f"c{at}"}
        made += [
            SimpleNamespace(type="ai", content=thought, tool_calls=[call], id=f"t{at}", usage_metadata=None),
            SimpleNamespace(type="tool", content=answer, tool_call_id=f"c{at}", status="success", id=f"r{at}"),
        ]
    return made


def is_steered(run: int) -> bool:
    """Run a session as the middleware does; return true if it inserted guidance."""
    messages, cursor = messages_of(run), ConversationCursor()
    with SteeringSession(task="Fix the session expiry.") as session:
        for end in range(1, len(messages) + 1, 2):
            decision = session.begin(cursor.new_steps(messages[:end]), model_id="claude-sonnet-4-5")
            response = parse_response(SimpleNamespace(result=messages[end : end + 1]))
            session.end(decision, response, latency_ms=900.0)
    if session.failures:
        raise SystemExit("the session failed: the profile would be incomplete")
    return any(entry.injections for entry in session.step_log)


def main() -> None:
    """Run the workload."""
    steered = sum(is_steered(run) for run in range(RUNS))
    for run in range(0, RUNS, 6):
        rows = [
            {"thought": thought, "action": tool, "action_input": str(args), "observation": answer}
            for thought, tool, args, answer in turns(run)
        ]
        for steps in itertools.accumulate([row] for row in rows):
            evaluate_all(steps)
    print(f"{RUNS} runs, {steered} of them steered")


if __name__ == "__main__":
    main()
