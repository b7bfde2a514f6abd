"""Findings of agents about a codebase, stored for later runs: on a server, or in this process."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from reasonblocks._engine import TextIndex
from reasonblocks.server import Server
from reasonblocks.settings import resolved_base_url

MAX_CONTENT_CHARS = 8_000
MAX_QUERY_CHARS = 2_000
MAX_PATHS = 1_024

Finding = dict[str, Any]


class _Store(Protocol):
    def store(self, finding: Finding) -> str | None: ...
    def search(self, query: str, top_k: int, score_threshold: float) -> list[Finding]: ...
    def list_all(self) -> list[Finding]: ...
    def invalidate(self, paths: list[str]) -> int: ...
    def clear(self) -> bool: ...


class CodebaseMemory:
    """Findings about one codebase, with similarity search.

    With `base_url` they are stored on a server; otherwise in memory, or in a file of JSON lines at `path`.
    """

    def __init__(
        self,
        codebase_id: str,
        *,
        api_key: str = "",
        base_url: str | None = None,
        timeout: float | None = None,
        path: str | Path | None = None,
    ) -> None:
        if not codebase_id:
            raise ValueError("`codebase_id` must not be empty")
        self.codebase_id = codebase_id
        url = None if path is not None else resolved_base_url(base_url)
        self._server = Server(api_key, url, timeout=timeout) if url else None
        self._store: _Store
        if self._server is not None:
            self._store = _ServerStore(self._server, codebase_id)
        else:
            self._store = _LocalStore(Path(path) if path is not None else None)

    def __repr__(self) -> str:
        return f"CodebaseMemory({self.codebase_id!r}, {self._server or 'in-process'})"

    def __enter__(self) -> CodebaseMemory:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def store(
        self,
        content: str,
        *,
        file_path: str = "",
        finding_type: str = "note",
        metadata: Mapping[str, Any] | None = None,
    ) -> str | None:
        """Store a finding and return its id; `None` for a blank one or on failure."""
        if not content.strip():
            return None
        finding: Finding = {
            "content": content[:MAX_CONTENT_CHARS],
            "file_path": file_path[:512],
            "finding_type": finding_type[:64],
        }
        if metadata:
            finding["metadata"] = dict(metadata)
        return self._store.store(finding)

    def store_many(self, findings: Iterable[Mapping[str, Any]]) -> int:
        """Store several findings and return the number of stored ones."""
        allowed = ("file_path", "finding_type", "metadata")
        stored = (
            self.store(str(finding.get("content", "")), **{name: finding[name] for name in allowed if name in finding})
            for finding in findings
        )
        return sum(finding_id is not None for finding_id in stored)

    def recall(self, query: str, *, top_k: int = 5, score_threshold: float = 0.25) -> list[Finding]:
        """Return the most similar findings, best first, each with its `score`."""
        if not query.strip():
            return []
        top_k, score_threshold = min(max(top_k, 1), 50), min(max(score_threshold, 0.0), 1.0)
        return self._store.search(query[:MAX_QUERY_CHARS], top_k, score_threshold)

    def format_recall(self, query: str, *, top_k: int = 5, score_threshold: float = 0.25, max_len: int = 300) -> str:
        """Return the most similar findings as a text for a model."""
        found = self.recall(query, top_k=top_k, score_threshold=score_threshold)
        if not found:
            return "No stored findings are close to this."
        lines = [f"{len(found)} stored findings, the closest first:"]
        for finding in found:
            content = " ".join(str(finding.get("content", "")).split())
            where = finding.get("file_path") or "the codebase"
            score, kind = float(finding.get("score") or 0.0), finding.get("finding_type", "note")
            lines.append(f"- [{score:.2f}] {kind}, {where}: {content[:max_len]}")
        return "\n".join(lines)

    def list_all(self) -> list[Finding]:
        """Return every finding."""
        return self._store.list_all()

    def invalidate(self, file_paths: Sequence[str]) -> int:
        """Delete the findings about these files and return their number."""
        paths = [path for path in file_paths if path]
        chunks = [paths[at : at + MAX_PATHS] for at in range(0, len(paths), MAX_PATHS)]
        return sum(self._store.invalidate(chunk) for chunk in chunks)

    def clear(self) -> bool:
        """Delete all findings."""
        return self._store.clear()

    def coverage_for(self, file_paths: Sequence[str]) -> float:
        """Return the share of these files with at least one finding."""
        if not file_paths:
            return 1.0
        known = {str(finding.get("file_path") or "") for finding in self.list_all()} - {""}
        covered = sum(any(_same_file(path, stored) for stored in known) for path in file_paths)
        return covered / len(file_paths)

    def close(self) -> None:
        """Close the connection to the server."""
        if self._server is not None:
            self._server.close()


class _ServerStore:
    def __init__(self, server: Server, codebase_id: str) -> None:
        self._server, self._id = server, codebase_id

    def store(self, finding: Finding) -> str | None:
        reply = self._server.findings("POST", self._id, body=finding)
        finding_id = reply.get("finding_id") if isinstance(reply, dict) else None
        return finding_id if isinstance(finding_id, str) else None

    def search(self, query: str, top_k: int, score_threshold: float) -> list[Finding]:
        body = {"query": query, "top_k": top_k, "score_threshold": score_threshold}
        return _list_in(self._server.findings("POST", self._id, "/search", body), "results")

    def list_all(self) -> list[Finding]:
        return _list_in(self._server.findings("GET", self._id), "findings")

    def invalidate(self, paths: list[str]) -> int:
        reply = self._server.findings("POST", self._id, "/invalidate", {"file_paths": paths})
        count = reply.get("invalidated") if isinstance(reply, dict) else 0
        return count if isinstance(count, int) else 0

    def clear(self) -> bool:
        reply = self._server.findings("DELETE", self._id)
        return isinstance(reply, dict) and reply.get("status") == "cleared"


class _LocalStore:
    """Findings in memory, optionally backed by a file of JSON lines."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._findings: dict[int, Finding] = {}
        self._index = TextIndex()
        self._next = 0
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                if line.strip():
                    self._add(json.loads(line))

    def _add(self, finding: Finding) -> None:
        self._index.insert(self._next, f"{finding.get('file_path', '')} {finding['content']}".strip())
        self._findings[self._next] = finding
        self._next += 1

    def store(self, finding: Finding) -> str | None:
        finding = {"finding_id": uuid.uuid4().hex, **finding}
        with self._lock:
            self._add(finding)
            if self._path is not None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(finding, ensure_ascii=False, default=str) + "\n")
        return str(finding["finding_id"])

    def search(self, query: str, top_k: int, score_threshold: float) -> list[Finding]:
        with self._lock:
            hits = self._index.search(query, top_k=top_k, score_threshold=score_threshold)
            return [{**self._findings[at], "score": round(score, 4)} for at, score in hits]

    def list_all(self) -> list[Finding]:
        with self._lock:
            return [dict(finding) for finding in self._findings.values()]

    def invalidate(self, paths: list[str]) -> int:
        return self._delete(lambda finding: finding.get("file_path") in paths)

    def clear(self) -> bool:
        self._delete(lambda _finding: True)
        return True

    def _delete(self, matches: Any) -> int:
        with self._lock:
            gone = [at for at, finding in self._findings.items() if matches(finding)]
            for at in gone:
                self._index.remove(at)
                del self._findings[at]
            if self._path is not None and gone:
                lines = [json.dumps(f, ensure_ascii=False, default=str) + "\n" for f in self._findings.values()]
                new_file = self._path.with_suffix(".new")
                new_file.write_text("".join(lines), encoding="utf-8")
                new_file.replace(self._path)
            return len(gone)


def _list_in(reply: Any, name: str) -> list[Finding]:
    found = reply.get(name) if isinstance(reply, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _same_file(path: str, stored: str) -> bool:
    return path == stored or path.endswith("/" + stored) or stored.endswith("/" + path)
