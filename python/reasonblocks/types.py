"""Names that are the same everywhere."""

from __future__ import annotations

import enum


class FSMState(str, enum.Enum):
    """How the run is going."""

    INIT = "INIT"
    FAST = "FAST"
    NORMAL = "NORMAL"
    SLOW = "SLOW"
    SKIP = "SKIP"
    END = "END"


STATES = {state.value: state for state in FSMState}
"""Each state by its name: looked up with every call."""
