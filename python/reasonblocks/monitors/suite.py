"""Evaluation of the heuristic suite over a list of steps, without a server.

Each step is a dictionary with the optional keys `action`, `tool_calls`, `action_input`, `thought`, `observation` and
`is_error`. Scores range from 0 (healthy) to 1 (worst).
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
"""Weight of each monitor in `total`."""


class Evaluation(TypedDict):
    """Result of `evaluate_all`."""

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
    """Return the score of every monitor of the suite after the last step."""
    effective = {**DEFAULT_WEIGHTS, **weights} if weights else dict(DEFAULT_WEIGHTS)
    scores = dict(zip(_NAMES, heuristic_scores(steps), strict=True))
    # Summed in Python: the rounding of `sum` depends on the Python version, as in the public package.
    total = round(sum([effective[name] * score for name, score in scores.items()]), 4)
    fired = [name for name, score in scores.items() if score >= fire_threshold]
    return {"scores": scores, "total": total, "fired": fired, "weights": effective}


def score_streak(steps: Steps, *, cap: int = 5) -> float:
    """Score consecutive calls of the same tool; `cap` calls score 1."""
    return heuristic_scores(steps, cap=cap)[0]


def score_call_count(steps: Steps, *, budget: int = 20) -> float:
    """Score the number of calls; `budget` calls score 1."""
    return heuristic_scores(steps, budget=budget)[1]


def score_edit_revert(steps: Steps) -> float:
    """Score edits that undo each other, or fail and are retried."""
    return heuristic_scores(steps)[2]


def score_test_repeat(steps: Steps) -> float:
    """Score consecutive identical test failures."""
    return heuristic_scores(steps)[3]


def score_diversity(steps: Steps, *, window: int = 5, min_total: int = 8) -> float:
    """Score a low diversity of tools."""
    return heuristic_scores(steps, window=window, min_total=min_total)[4]


def score_hedge(steps: Steps) -> float:
    """Score growing doubt and retracted statements."""
    return heuristic_scores(steps)[5]
