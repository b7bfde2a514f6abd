"""ReasonBlocks monitors an LLM agent step by step and steers it while it is running.

Importing the package imports no framework. Names that need one are loaded on first access.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from reasonblocks._engine import (
    VERSION,
    Rules,
    Run,
    Step,
    StepLogEntry,
    compress_tool_output,
    embed,
    render_pattern,
    similarity,
)
from reasonblocks.client import ReasonBlocks
from reasonblocks.codebase_memory import CodebaseMemory
from reasonblocks.config import ReasonBlocksConfig, build_middleware
from reasonblocks.experiments import assign_arm, sdk_version
from reasonblocks.lookup import LocalLibrary
from reasonblocks.server import MonitorClient, ReasonBlocksAPI, Server
from reasonblocks.steering import SteeringSession, StepDecision
from reasonblocks.types import FSMState

if TYPE_CHECKING:
    from reasonblocks.middleware import ReasonBlocksMiddleware
    from reasonblocks.token_saving import TokenSavingMiddleware, TokenSavingStats

__version__ = VERSION

__all__ = [
    "CodebaseMemory",
    "FSMState",
    "LocalLibrary",
    "MonitorClient",
    "ReasonBlocks",
    "ReasonBlocksAPI",
    "ReasonBlocksConfig",
    "ReasonBlocksMiddleware",
    "Rules",
    "Run",
    "Server",
    "SteeringSession",
    "Step",
    "StepDecision",
    "StepLogEntry",
    "TokenSavingMiddleware",
    "TokenSavingStats",
    "assign_arm",
    "build_middleware",
    "compress_tool_output",
    "embed",
    "render_pattern",
    "sdk_version",
    "similarity",
]

_LAZY = {
    "ReasonBlocksMiddleware": "reasonblocks.middleware",
    "TokenSavingMiddleware": "reasonblocks.token_saving",
    "TokenSavingStats": "reasonblocks.token_saving",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'reasonblocks' has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)
