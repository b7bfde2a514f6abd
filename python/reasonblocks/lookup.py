"""Pattern lookups: on a server, or in this process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from reasonblocks._engine import Query, TextIndex, render_pattern
from reasonblocks.server import Server

LookupResults = dict[str, list[dict[str, Any]] | None]
"""Patterns by tier; `None` for a failed lookup, which does not use up the allowance of the tier."""

MIN_SIMILARITY = {"e1": 0.80, "e2": 0.70}
"""Minimum similarity per tier. E3 patterns apply to every run."""


class Library(Protocol):
    """Source of guidance patterns."""

    is_blocking: bool
    """True if `find` waits for the network."""

    def find(self, queries: list[Query], model_id: str) -> LookupResults:
        """Return the patterns for each query."""


class ServerLibrary:
    """Patterns of a server."""

    is_blocking = True

    def __init__(self, server: Server, customer_id: str | None = None) -> None:
        self._server = server
        self._customer_id = customer_id

    def find(self, queries: list[Query], model_id: str) -> LookupResults:
        """Query the server, one request per tier."""
        retrieve, customer = self._server.retrieve, self._customer_id
        return {query.tier: retrieve(query, model=model_id, customer_id=customer) for query in queries}


class TierFilter:
    """A library restricted to some tiers."""

    def __init__(self, library: Library, tiers: set[str]) -> None:
        self._library = library
        self._tiers = tiers
        self.is_blocking = library.is_blocking

    def find(self, queries: list[Query], model_id: str) -> LookupResults:
        """Query the enabled tiers."""
        enabled = [query for query in queries if query.tier in self._tiers]
        return self._library.find(enabled, model_id) if enabled else {}


class LocalLibrary:
    """Patterns in this process, found by embedding similarity.

    A pattern is `{"tier": "e1" | "e2" | "e3", "pattern_id": ..., "fields": {...}}`, with an optional `failure_type` to
    match.
    """

    is_blocking = False

    def __init__(self, patterns: Iterable[Mapping[str, Any]] = ()) -> None:
        self._patterns: list[dict[str, Any]] = []
        self._indexes = {tier: TextIndex() for tier in MIN_SIMILARITY}
        for pattern in patterns:
            self.add(pattern)

    @classmethod
    def from_file(cls, path: str | Path) -> LocalLibrary:
        """Read a file of JSON lines, one pattern per line."""
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return cls(json.loads(line) for line in lines if line.strip())

    def __len__(self) -> int:
        return len(self._patterns)

    def add(self, pattern: Mapping[str, Any]) -> None:
        """Add a pattern; raises `ValueError` if a required field is missing."""
        tier, fields = str(pattern.get("tier", "")).lower(), dict(pattern.get("fields") or {})
        render_pattern(tier, "", fields)
        if tier in self._indexes:
            self._indexes[tier].insert(len(self._patterns), _situation(tier, fields))
        self._patterns.append({**pattern, "tier": tier, "fields": fields})

    def find(self, queries: list[Query], model_id: str) -> LookupResults:
        """Return the nearest patterns of each tier above its minimum similarity."""
        return {query.tier: self._nearest(query) for query in queries}

    def _nearest(self, query: Query) -> list[dict[str, Any]]:
        if query.tier == "e3":
            return [pattern for pattern in self._patterns if pattern["tier"] == "e3"][: query.top_k]
        hits = self._indexes[query.tier].search(
            query.context, top_k=len(self._patterns), score_threshold=MIN_SIMILARITY[query.tier]
        )
        found = [self._patterns[at] for at, _ in hits]
        if query.tier == "e2" and query.failure_type:
            # A pattern for this failure type matches regardless of similarity; untyped ones must be similar.
            typed = [p for p in self._patterns if p["tier"] == "e2" and p.get("failure_type") == query.failure_type]
            found = typed + [p for p in found if not p.get("failure_type")]
        return found[: query.top_k]


def _situation(tier: str, fields: Mapping[str, Any]) -> str:
    if tier == "e1":
        return str(fields.get("task_context_embedding_text") or fields.get("situation"))
    trigger = fields.get("trigger_state")
    nested = trigger.get("trajectory_description") if isinstance(trigger, Mapping) else None
    return str(nested or fields.get("trajectory_description"))
