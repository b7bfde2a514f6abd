"""Where guidance is looked up: on a server, or among patterns kept in this process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from reasonblocks._engine import Query, TextIndex, render_pattern
from reasonblocks.server import Server

Found = dict[str, list[dict[str, Any]] | None]
"""Patterns by tier; `None` where the look-up could not be made, so that its allowance is not used up."""

SIMILARITY_MIN = {"e1": 0.80, "e2": 0.70}
"""How alike a situation must be, per tier. E3 is for every run."""


class Library(Protocol):
    """Answers the engine's look-ups."""

    waits: bool
    """Whether an answer may take long, so that an event loop should not wait for it."""

    def find(self, queries: list[Query], model_id: str) -> Found:
        """Give the patterns for each query."""


class ServerLibrary:
    """The patterns of a server."""

    waits = True

    def __init__(self, server: Server, customer_id: str | None = None) -> None:
        self._server = server
        self._customer_id = customer_id

    def find(self, queries: list[Query], model_id: str) -> Found:
        """Ask the server, tier by tier."""
        ask, customer = self._server.retrieve, self._customer_id
        return {query.tier: ask(query, model=model_id, customer_id=customer) for query in queries}


class SomeTiers:
    """A library of which only some tiers are asked."""

    def __init__(self, library: Library, tiers: set[str]) -> None:
        self._library = library
        self._tiers = tiers
        self.waits = library.waits

    def find(self, queries: list[Query], model_id: str) -> Found:
        """Ask for the tiers that are wanted."""
        wanted = [query for query in queries if query.tier in self._tiers]
        return self._library.find(wanted, model_id) if wanted else {}


class LocalLibrary:
    """Patterns kept in this process, found by meaning.

    A pattern is `{"tier": "e1" | "e2" | "e3", "pattern_id": ..., "fields": {...}}`, with `failure_type` where it helps
    against one kind of failure only.
    """

    waits = False

    def __init__(self, patterns: Iterable[Mapping[str, Any]] = ()) -> None:
        self._patterns: list[dict[str, Any]] = []
        self._indexes = {tier: TextIndex() for tier in SIMILARITY_MIN}
        for pattern in patterns:
            self.add(pattern)

    @classmethod
    def from_file(cls, path: str | Path) -> LocalLibrary:
        """Read one pattern a line, as JSON."""
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return cls(json.loads(line) for line in lines if line.strip())

    def __len__(self) -> int:
        return len(self._patterns)

    def add(self, pattern: Mapping[str, Any]) -> None:
        """Add a pattern; one that could not be rendered is refused."""
        tier, fields = str(pattern.get("tier", "")).lower(), dict(pattern.get("fields") or {})
        render_pattern(tier, "", fields)
        if tier in self._indexes:
            self._indexes[tier].insert(len(self._patterns), _situation(tier, fields))
        self._patterns.append({**pattern, "tier": tier, "fields": fields})

    def find(self, queries: list[Query], model_id: str) -> Found:
        """Give the nearest patterns of each tier, within the gates."""
        return {query.tier: self._nearest(query) for query in queries}

    def _nearest(self, query: Query) -> list[dict[str, Any]]:
        if query.tier == "e3":
            return [pattern for pattern in self._patterns if pattern["tier"] == "e3"][: query.top_k]
        hits = self._indexes[query.tier].search(
            query.context, top_k=len(self._patterns), score_threshold=SIMILARITY_MIN[query.tier]
        )
        found = [self._patterns[at] for at, _ in hits]
        if query.tier == "e2" and query.failure_type:
            # A pattern against this very kind of failure fits whatever the words; others must be alike.
            against = [p for p in self._patterns if p["tier"] == "e2" and p.get("failure_type") == query.failure_type]
            found = against + [p for p in found if not p.get("failure_type")]
        return found[: query.top_k]


def _situation(tier: str, fields: Mapping[str, Any]) -> str:
    if tier == "e1":
        return str(fields.get("task_context_embedding_text") or fields.get("situation"))
    trigger = fields.get("trigger_state")
    inside = trigger.get("trajectory_description") if isinstance(trigger, Mapping) else None
    return str(inside or fields.get("trajectory_description"))
