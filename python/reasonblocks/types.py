"""Types shared by all modules."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Literal, TypedDict, cast

from reasonblocks import _engine

Placement = Literal["system", "tail"]
"""Position of guidance in a request: in the system prompt, or after the last message."""

DEFAULT_PLACEMENT = cast("Placement", _engine.DEFAULT_PLACEMENT)
"""Default of a middleware."""


class FSMState(str, enum.Enum):
    """State of a run."""

    INIT = "INIT"
    FAST = "FAST"
    NORMAL = "NORMAL"
    SLOW = "SLOW"
    SKIP = "SKIP"
    END = "END"


STATES = {state.value: state for state in FSMState}
"""States by name. A dictionary lookup is faster than `FSMState(name)`, and every call makes one."""


class RunFields(TypedDict, total=False):
    """Description of a run, stored by the server."""

    run_id: str | None
    agent_name: str
    task: str
    framework: str
    model: str
    codebase_id: str
    org_id: str
    project_id: str
    metadata: Mapping[str, Any] | None
    is_steered: bool


class StepFields(TypedDict, total=False):
    """One step of an agent, and the model about to be called."""

    thought: str | None
    action: str | None
    action_input: Any
    observation: str | None
    is_error: bool
    user_input: str | None
    model_id: str
