"""Every example runs as it stands and shows what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SHOWS = {
    "anthropic_messages.py": "`recall_findings` was called 3 times in a row",
    "claude_agent.py": "`Grep` was called 3 times in a row",
    "evaluate_locally.py": "fired ['streak', 'hedge']",
    "langchain_agent.py": "`search` was called 3 times in a row",
    "openai_agent.py": "`search` was called 3 times in a row",
    "own_loop.py": "['read_file']",
}


@pytest.mark.parametrize("name", sorted(SHOWS))
def test_an_example_runs(name):
    done = subprocess.run([sys.executable, str(EXAMPLES / name)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert SHOWS[name] in done.stdout


def test_no_example_is_forgotten():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*SHOWS, "scripted_claude.py"}
