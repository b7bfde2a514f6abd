"""Names of the monitors, and the heuristic suite as a function."""

from __future__ import annotations

from reasonblocks._engine import monitors as _monitors

ALL_MONITOR_NAMES: list[str] = [name for name, _, _ in _monitors()]
"""All monitors of both suites."""

__all__ = ["ALL_MONITOR_NAMES"]
