"""Fills a server with realistic runs: some succeed, some loop, some make false claims."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

from rb_server import Server

SAMPLE = Path(__file__).parents[2] / "docs" / "sample.jsonl"
DAY_MS = 86_400_000
MODELS = ["claude-sonnet-4-5", "claude-haiku-4-5", "gpt-5-mini"]
AGENTS = ["fixer", "reviewer", "migrator"]

TASKS = [
    "The invoice export drops the last line item when a discount is applied. Find out why and fix it.",
    "Upgrade the HTTP client to the current major version and adapt the callers.",
    "Nightly builds fail on ARM since Tuesday. Make them pass again.",
    "Add pagination to the audit log endpoint without breaking existing clients.",
    "The search page takes four seconds for long queries. Bring it under one.",
    "Replace the home-grown retry loop in the payment worker with the shared one.",
    "Users report that exported CSV files open with broken umlauts in spreadsheets.",
    "Write a regression test for the race in the session store, then fix the race.",
]


def good(rng: random.Random) -> list[dict[str, Any]]:
    """Steps that read, edit and test."""
    names = rng.sample(["orders", "billing", "session", "export", "client", "search"], 3)
    steps = [
        (
            "I read the code that the report points to.",
            "read_file",
            {"path": f"src/{names[0]}.py"},
            "def total(lines):\n    return sum(line.net for line in lines[:-1])\n",
        ),
        (
            "The slice leaves out the last line. The callers tell whether that is meant.",
            "search",
            {"query": "total("},
            f"src/{names[1]}.py:41: total(order.lines)\nsrc/{names[2]}.py:12: total(lines)\n",
        ),
        (
            "Nobody relies on it. I change it.",
            "edit_file",
            {"path": f"src/{names[0]}.py", "old": "lines[:-1]", "new": "lines"},
            "ok",
        ),
        ("Now the tests.", "bash", {"command": f"pytest tests/test_{names[0]}.py"}, "14 passed in 0.41s"),
        ("The whole suite, since two callers are affected.", "bash", {"command": "pytest -q"}, "312 passed in 18.20s"),
        ("The total includes the last line again, and all tests pass.", "", None, ""),
    ]
    return [dict(thought=t, action=a, action_input=i, observation=o) for t, a, i, o in steps]


def loops(rng: random.Random) -> list[dict[str, Any]]:
    """Steps that repeat a search, then finish without a check."""
    word = rng.choice(["timeout", "encoding", "retry", "cursor"])
    asked = [word, f"{word} setting", f"{word} config", f"{word} default", f"set {word}", f"where is {word}"]
    steps = [
        dict(
            thought="Perhaps it is called differently, I am not sure. I try again.",
            action="search",
            action_input={"query": query},
            observation="No results found.",
        )
        for query in asked[: rng.randint(4, 6)]
    ]
    for turn in range(rng.randint(2, 4)):
        old, new = ("30", "60") if turn % 2 == 0 else ("60", "30")
        steps.append(
            dict(
                thought="Maybe this value is wrong. I change it and see.",
                action="edit_file",
                action_input={"path": "app/settings.py", "old": f"LIMIT = {old}", "new": f"LIMIT = {new}"},
                observation="ok",
            )
        )
        steps.append(
            dict(
                thought="Let me run the tests again.",
                action="bash",
                action_input={"command": "pytest -q"},
                observation="E   assert 30 == 60\n1 failed, 11 passed in 0.31s",
                is_error=True,
            )
        )
    steps.append(dict(thought="Done. The fix works and all tests pass.", action="", action_input=None, observation=""))
    return steps


def report(
    server: Server, run_id: str, steps: list[dict[str, Any]], rng: random.Random, first: int = 0, **about: Any
) -> None:
    """Posts a run through the telemetry routes."""
    server.post("/monitor/runs", run_id=run_id, **about)
    for at, step in enumerate(steps, first):
        used = rng.randint(1_800, 9_000)
        server.post(f"/monitor/runs/{run_id}/steps", step_index=at, input_tokens=used, output_tokens=used // 12, **step)


def walk(server: Server, run_id: str, steps: list[dict[str, Any]], rng: random.Random, **about: Any) -> None:
    """Posts a run through the walk route, which steers it."""
    server.post("/monitor/runs", run_id=run_id, **about)
    server.post(f"/monitor/runs/{run_id}/walk", step_index=0)
    for at, step in enumerate(steps, 1):
        used = rng.randint(1_800, 9_000)
        server.post(f"/monitor/runs/{run_id}/walk", step_index=at, input_tokens=used, output_tokens=used // 12, **step)


def samples(server: Server, rng: random.Random) -> None:
    for line in SAMPLE.read_text().splitlines():
        run = json.loads(line)
        report(
            server,
            run["run_id"],
            run["steps"],
            rng,
            task=run.get("task", ""),
            agent_name="fixer",
            model=MODELS[0],
            codebase_id="acme/shop",
        )
        if run.get("outcome"):
            server.post(f"/monitor/runs/{run['run_id']}/finish", outcome=run["outcome"])


def runs(server: Server, rng: random.Random, count: int) -> None:
    for at in range(count):
        is_good = rng.random() < 0.62
        run_id = f"{rng.choice(['fix', 'task', 'job'])}-{4100 + at}"
        about = dict(
            task=TASKS[at % len(TASKS)],
            agent_name=AGENTS[at % 3],
            model=MODELS[at % 2],
            framework="langchain",
            codebase_id="acme/shop",
        )
        (walk if at % 2 else report)(server, run_id, (good if is_good else loops)(rng), rng, **about)
        outcome = "success" if is_good and rng.random() < 0.9 else "failure: tests fail"
        server.post(f"/monitor/runs/{run_id}/finish", outcome=outcome)


def experiment(server: Server, rng: random.Random, name: str, each: int) -> None:
    for arm, share in [("on", 0.76), ("off", 0.52)]:
        for at in range(each):
            is_good = rng.random() < share
            run_id = f"{name}-{arm}-{at:02}"
            report(
                server,
                run_id,
                (good if is_good else loops)(rng),
                rng,
                task=TASKS[at % len(TASKS)],
                agent_name="fixer",
                model=MODELS[1],
                task_profile="coding" if at % 3 else "qa",
                metadata={"experiment_id": name, "arm": arm},
            )
            server.post(f"/monitor/runs/{run_id}/finish", outcome="success" if is_good else "failure")


def rest(server: Server) -> None:
    for path, kind, words in [
        ("app/settings.py", "gotcha", "Session lifetimes are read twice: settings.py wins over auth.py. Change both."),
        ("src/export.py", "note", "CSV files carry a byte order mark on purpose; spreadsheets need it to see UTF-8."),
        (
            "tests/conftest.py",
            "convention",
            "Database tests need the `db` fixture; without it they run against memory and pass for the wrong reason.",
        ),
    ]:
        server.post("/findings/acme/shop", content=words, file_path=path, finding_type=kind)
    server.post(
        "/monitor/profiles",
        profile_id="migrations",
        description="Long mechanical changes: repetition is normal, unverified ends are not.",
        weights={"streak": 0.15, "verification_skip": 0.5},
    )
    server.post(
        "/library/patterns",
        tier="e1",
        context="tests fail after changing a setting back and forth",
        fields={
            "situation": "A setting is changed back and forth while the same test fails.",
            "dead_ends": "Trying further values.",
            "unlock": "Read the test: it says which file the value comes from.",
        },
    )


def live(server: Server, rng: random.Random) -> str:
    """Posts an unfinished run."""
    walk(
        server,
        "live-now",
        loops(rng)[:5],
        rng,
        task="Make the flaky checkout test pass reliably.",
        agent_name="fixer",
        model=MODELS[0],
    )
    return "live-now"


def fill(server: Server, count: int = 12, each: int = 12) -> None:
    rng = random.Random(7)
    samples(server, rng)
    experiment(server, rng, "steering-autumn", each)
    runs(server, rng, count)
    rest(server)
    live(server, rng)


def age(database: Path, days: int) -> None:
    """Spreads the runs over several days. Writes to the database directly, so the server must be stopped."""
    rng = random.Random(11)
    with sqlite3.connect(database) as connection:
        for (run,) in connection.execute("SELECT id FROM runs WHERE finished_ms IS NOT NULL ORDER BY id").fetchall():
            by = int(rng.random() ** 1.6 * days * DAY_MS)
            for table, name in [("runs", "id"), ("fired_runs", "run"), ("pattern_runs", "run")]:
                connection.execute(f"UPDATE {table} SET started_ms = started_ms - ? WHERE {name} = ?", (by, run))
            connection.execute(
                "UPDATE runs SET seen_ms = seen_ms - ?, finished_ms = finished_ms - ? WHERE id = ?", (by, by, run)
            )
