"""Assignment of A/B experiments: a hash of the unit selects the arm."""

from __future__ import annotations

import hashlib
from typing import Literal

from reasonblocks._engine import VERSION

Arm = Literal["on", "off"]


def assign_arm(experiment_id: str, unit_id: str, *, on_fraction: float = 0.5) -> Arm:
    """Return the arm of a unit: `on` is steered, `off` is only monitored."""
    if not 0.0 <= on_fraction <= 1.0:
        raise ValueError(f"invalid `on_fraction` ({on_fraction}): it must be between 0 and 1")
    digest = hashlib.sha256(f"{experiment_id}:{unit_id}".encode()).digest()
    draw = int.from_bytes(digest[:8], "big") / 2**64
    return "on" if draw < on_fraction else "off"


def sdk_version() -> str:
    """Return the version of this package."""
    return VERSION
