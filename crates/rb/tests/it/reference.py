"""Answers with what the first public package says about every prefix of every run.

Reads runs (one a line) from the file named by the first argument; writes, a line for each, a list with one
entry a step: [scores in order, total, fired, difficulty, state]. Needs `reasonblocks==0.1.0`, installed with
or without its dependencies: only the files that need none are loaded.
"""

import ast
import importlib.metadata
import json
import math
import re
import sys
import types

root = importlib.metadata.distribution("reasonblocks").locate_file("reasonblocks")
package = types.ModuleType("reasonblocks")
package.__path__ = [str(root)]
sys.modules["reasonblocks"] = package
monitors = types.ModuleType("reasonblocks.monitors")
monitors.__path__ = [str(root / "monitors")]
sys.modules["reasonblocks.monitors"] = monitors

from reasonblocks.fsm import DifficultyFSM  # noqa: E402
from reasonblocks.monitors.suite import evaluate_all  # noqa: E402
from reasonblocks.types import FSMState  # noqa: E402


def score_step_of_the_client():
    """The function stands in a module that imports frameworks: take it and its constants out of the source."""
    wanted = []
    for node in ast.parse((root / "client.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id in ("_HEDGING_WORDS", "_ERROR_WORDS", "_ENTITY_RE"):
            wanted.append(node)
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and inner.name == "score_step":
                    inner.decorator_list = []
                    wanted.append(inner)
    names = {"re": re, "math": math}
    exec(compile(ast.Module(wanted, []), "client.py", "exec"), names)
    return names["score_step"]


score_step = score_step_of_the_client()


def walk(steps):
    fsm, state, history, answers = DifficultyFSM(), FSMState.INIT, [], []
    for at, step in enumerate(steps):
        thought = step.get("thought")
        difficulty = None
        if isinstance(thought, str) and thought.strip():
            difficulty = score_step(thought)
            history.append(difficulty)
            state = fsm.transition(state, difficulty, history)
        out = evaluate_all(steps[: at + 1])
        answers.append([list(out["scores"].values()), out["total"], out["fired"], difficulty, state.value])
    return answers


with open(sys.argv[1], encoding="utf-8") as runs:
    for line in runs:
        print(json.dumps(walk(json.loads(line)["steps"])))
