"""Every example runs and prints the expected text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent
EXAMPLES = PACKAGE / "examples"
SHOWS = {
    "anthropic_messages.py": "the same act (`recall_findings`) gave the same answer 4 times",
    "claude_agent.py": "the same act (`Grep`) gave the same answer 4 times",
    "evaluate_locally.py": "fired ['streak', 'hedge']",
    "langchain_agent.py": "the same act (`search`) gave the same answer 4 times",
    "openai_agent.py": "the same act (`search`) gave the same answer 4 times",
    "own_loop.py": "['read_file']",
}


@pytest.mark.parametrize("name", sorted(SHOWS))
def test_example_runs(name):
    done = subprocess.run([sys.executable, str(EXAMPLES / name)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert SHOWS[name] in done.stdout


def test_all_examples_are_listed():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*SHOWS, "scripted_claude.py"}


def test_pgo_training_run_is_partly_steered():
    script = str(PACKAGE / "bench" / "train.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    runs, steered = (int(word) for word in done.stdout.split() if word.isdigit())
    assert 0 < steered < runs
