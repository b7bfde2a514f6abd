"""Code snippets of the product documents run unchanged."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SEEDS = Path(os.environ.get("RB_SEEDS") or ROOT.parent / "shared" / "seeds")
BEGINS = re.compile(r"^(from reasonblocks|import reasonblocks|config = |rb = )")
LINES_MAX = 40

pytestmark = pytest.mark.skipif(not SEEDS.is_dir(), reason="the documents are not beside this checkout")


def snippets(text: str) -> list[str]:
    """Returns the longest valid Python snippets that begin with a known line."""
    lines, found, at = text.splitlines(), [], 0
    while at < len(lines):
        longest = 0
        if BEGINS.match(lines[at]):
            for length in range(1, LINES_MAX):
                piece = "\n".join(lines[at : at + length])
                try:
                    ast.parse(piece)
                    longest = length
                except SyntaxError:
                    continue
        if longest:
            found.append("\n".join(lines[at : at + longest]))
        at += max(longest, 1)
    return found


def test_documented_snippets_run(capsys):
    ran = []
    for document in sorted(SEEDS.glob("*.txt")):
        names: dict[str, Any] = {}
        for snippet in snippets(document.read_text(encoding="utf-8")):
            exec(compile(snippet, document.name, "exec"), names)
            ran.append(snippet)
            if "evaluate_all" in snippet:
                result = names["result"]
                assert set(result) == {"scores", "total", "fired", "weights"}
                assert result["scores"]["streak"] == 0.6
    assert len(ran) >= 5
    assert any("evaluate_all(steps)" in snippet for snippet in ran)
    assert any("task_profile=" in snippet for snippet in ran)
    assert sum("ReasonBlocksConfig(" in snippet for snippet in ran) >= 3
    assert "streak" in capsys.readouterr().out


def test_documented_step_log():
    from conftest import ScriptedChat, looping, search
    from langchain.agents import create_agent

    from reasonblocks import ReasonBlocks

    text = "".join(document.read_text(encoding="utf-8") for document in SEEDS.glob("*.txt"))
    assert "mw.step_log[i].monitors_fired" in text
    rb = ReasonBlocks(api_key="rb_live_...", suite="both")
    mw = rb.middleware()
    agent = create_agent(model=ScriptedChat(script=looping(4)), tools=[search], middleware=[mw])
    agent.invoke({"messages": [("user", "find it")]}, {"recursion_limit": 100})
    assert [mw.step_log[i].monitors_fired for i in range(5)][2:4] == [[], ["streak"]]
