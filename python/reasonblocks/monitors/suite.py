"""The heuristic suite over a list of steps, without any server.

Each step is a dictionary; `action`, `tool_calls`, `action_input`, `thought`, `observation` and `is_error` are read, and
all of them may be missing. Scores go from 0 (healthy) to 1 (worst).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from reasonblocks._engine import DEFAULT_FIRE_THRESHOLD, heuristic_scores, profile_weights

__all__ = [
    "DEFAULT_FIRE_THRESHOLD",
    "DEFAULT_WEIGHTS",
    "Evaluation",
    "evaluate_all",
    "score_call_count",
    "score_diversity",
    "score_edit_revert",
    "score_hedge",
    "score_streak",
    "score_test_repeat",
]

Steps = Sequence[Mapping[str, Any]]

_NAMES = ("streak", "call_count", "edit_revert", "test_repeat", "diversity", "hedge")

DEFAULT_WEIGHTS: dict[str, float] = {name: w for name, w in profile_weights("coding") if name in _NAMES}
"""How much each monitor counts in `total`."""


class Evaluation(TypedDict):
    """What `evaluate_all` says."""

    scores: dict[str, float]
    total: float
    fired: list[str]
    weights: dict[str, float]


def evaluate_all(
    steps: Steps,
    *,
    weights: Mapping[str, float] | None = None,
    fire_threshold: float = DEFAULT_FIRE_THRESHOLD,
) -> Evaluation:
    """Read every monitor of the suite after the last of these steps."""
    used = {**DEFAULT_WEIGHTS, **weights} if weights else dict(DEFAULT_WEIGHTS)
    scores = dict(zip(_NAMES, heuristic_scores(steps), strict=True))
    # Added up by Python, so that the sum is rounded as Python of this version rounds it.
    total = round(sum([used[name] * score for name, score in scores.items()]), 4)
    fired = [name for name, score in scores.items() if score >= fire_threshold]
    return {"scores": scores, "total": total, "fired": fired, "weights": used}


def score_streak(steps: Steps, *, cap: int = 5) -> float:
    """Read how often the same tool was called in a row; `cap` calls read 1."""
    return heuristic_scores(steps, cap=cap)[0]


def score_call_count(steps: Steps, *, budget: int = 20) -> float:
    """Read how many calls were made; `budget` calls read 1."""
    return heuristic_scores(steps, budget=budget)[1]


def score_edit_revert(steps: Steps) -> float:
    """Read whether edits undo each other, or fail and are tried again."""
    return heuristic_scores(steps)[2]


def score_test_repeat(steps: Steps) -> float:
    """Read whether the same test failure came twice in a row."""
    return heuristic_scores(steps)[3]


def score_diversity(steps: Steps, *, window: int = 5, min_total: int = 8) -> float:
    """Read whether few tools are used again and again."""
    return heuristic_scores(steps, window=window, min_total=min_total)[4]


def score_hedge(steps: Steps) -> float:
    """Read whether doubt grows, or something was taken back."""
    return heuristic_scores(steps)[5]
