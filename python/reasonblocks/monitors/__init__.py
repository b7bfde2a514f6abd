"""The monitors: which there are, and the heuristic suite as one function."""

from __future__ import annotations

from reasonblocks._engine import monitors as _monitors

ALL_MONITOR_NAMES: list[str] = [name for name, _, _ in _monitors()]
"""Every monitor of both suites, in the order of the engine's table."""

__all__ = ["ALL_MONITOR_NAMES"]
