"""Client of `rb serve`, or of any server with the same API. No method raises; a failed request returns `None`."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from reasonblocks._engine import Query, Step
from reasonblocks._http import Http, HttpError, segment
from reasonblocks.settings import checked_key, masked_key, resolved_base_url, resolved_timeout

logger = logging.getLogger("reasonblocks")

MAX_STEPS = 2_000
MAX_TEXT_CHARS = 64_000
MAX_TOOL_NAME_CHARS = 256
MIN_PAUSE_S = 5.0
MAX_PAUSE_S = 60.0
CONFLICT = 409

Json = dict[str, Any]


class CircuitBreaker:
    """Pauses requests to a server that failed, so that an agent does not wait for it at every step."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pause_s = MIN_PAUSE_S
        self._open_until = 0.0

    @property
    def is_open(self) -> bool:
        """True while requests are paused."""
        return time.monotonic() < self._open_until

    def record_success(self) -> None:
        """Resume requests."""
        with self._lock:
            self._pause_s, self._open_until = MIN_PAUSE_S, 0.0

    def record_failure(self) -> None:
        """Pause requests; each consecutive failure doubles the pause."""
        with self._lock:
            self._open_until = time.monotonic() + self._pause_s
            self._pause_s = min(self._pause_s * 2, MAX_PAUSE_S)


class Server:
    """Client for evaluation, pattern retrieval, telemetry and reading runs."""

    def __init__(self, api_key: str = "", base_url: str | None = None, *, timeout: float | None = None) -> None:
        url = resolved_base_url(base_url)
        if url is None:
            raise ValueError("missing server URL: pass `base_url` or set `REASONBLOCKS_BASE_URL`")
        self._key = checked_key(api_key)
        self._http = Http(url, self._key, resolved_timeout(timeout))
        self._breaker = CircuitBreaker()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._http.base_url!r}, api_key={masked_key(self._key)})"

    def __getstate__(self) -> Json:
        raise TypeError("a server client holds a key and open connections; create a new one instead of pickling it")

    @property
    def base_url(self) -> str:
        """URL of the server."""
        return self._http.base_url

    # Requests that the agent waits for.

    def evaluate(
        self,
        steps: Sequence[Step],
        *,
        model: str = "",
        task_profile: str = "coding",
        weights: Mapping[str, float] | None = None,
        suite: str | None = None,
        task: str = "",
        run_id: str = "",
        after_mark: str = "",
    ) -> Json | None:
        """Evaluate a run so far with the monitors of the server.

        With the `mark` of an earlier reply as `after_mark`, `steps` are only those since; the result is `None` if the
        server no longer knows the mark.
        """
        rows = [evaluation_row(step) for step in steps[-MAX_STEPS:]]
        return self.evaluate_rows(
            rows,
            model=model,
            task_profile=task_profile,
            weights=weights,
            suite=suite,
            task=task,
            run_id=run_id,
            after_mark=after_mark,
        )

    def evaluate_rows(
        self,
        rows: Sequence[Json],
        *,
        model: str = "",
        task_profile: str = "coding",
        weights: Mapping[str, float] | None = None,
        suite: str | None = None,
        task: str = "",
        run_id: str = "",
        after_mark: str = "",
        first_step_index: int = 0,
    ) -> Json | None:
        """Variant of `evaluate` for steps in the format of the request."""
        body: Json = {"model": model[:128], "task_profile": task_profile, "steps": list(rows)}
        optional = {
            "weights": dict(weights or {}),
            "suite": suite,
            "task": task[:MAX_TEXT_CHARS],
            "run_id": run_id,
            "after_mark": after_mark,
            "first_step_index": first_step_index,
        }
        body |= {name: value for name, value in optional.items() if value}
        reply = self._blocking_call("POST", "/monitors/evaluate", body)
        return reply if isinstance(reply, dict) and "inject" in reply else None

    def retrieve(self, query: Query, *, model: str = "", customer_id: str | None = None) -> list[Json] | None:
        """Look up patterns; `None` means that the lookup failed."""
        body: Json = {"context": query.context[:MAX_TEXT_CHARS], "tier": query.tier, "level": query.tier}
        body |= {"top_k": query.top_k, "model": model[:128]}
        if query.failure_type:
            body["failure_type"] = query.failure_type
        if customer_id:
            body["customer_id"] = customer_id
        reply = self._blocking_call("POST", "/traces/retrieve", body)
        traces = reply.get("traces") if isinstance(reply, dict) else None
        return traces if isinstance(traces, list) else None

    def score_step(self, text: str, context: str = "") -> float | None:
        """Return the difficulty of a thought."""
        body = {"text": text[:MAX_TEXT_CHARS], "context": context[:MAX_TEXT_CHARS]}
        reply = self._blocking_call("POST", "/score", body)
        difficulty = reply.get("difficulty", 0.5) if isinstance(reply, dict) else None
        return float(difficulty) if isinstance(difficulty, (int, float)) else None

    # Telemetry.

    def post(self, path: str, body: Json) -> None:
        """Send a request; raises `HttpError`, so that the caller can retry."""
        self._http.call("POST", path, body)

    def start_run(self, *, run_id: str, **fields: Any) -> Json | None:
        """Report the start of a run."""
        return self._object("POST", "/monitor/runs", {"run_id": run_id, **fields})

    def log_step(self, *, run_id: str, step_index: int, **fields: Any) -> Json | None:
        """Report a step."""
        path = f"/monitor/runs/{segment(run_id)}/steps"
        return self._object("POST", path, {"step_index": step_index, **fields})

    def finish_run(self, *, run_id: str, outcome: str = "") -> Json | None:
        """Report the end of a run."""
        return self._object("POST", f"/monitor/runs/{segment(run_id)}/finish", {"outcome": outcome})

    # Reading.

    def list_runs(self, *, limit: int = 200) -> list[Json]:
        """Return the newest runs."""
        reply = self._call("GET", f"/monitor/runs?limit={limit}")
        return reply if isinstance(reply, list) else []

    def get_run(self, run_id: str) -> Json | None:
        """Return a run with its steps."""
        return self._object("GET", f"/monitor/runs/{segment(run_id)}")

    def health_summary(self) -> Json | None:
        """Return the totals of all runs."""
        return self._object("GET", "/monitor/health-summary")

    def findings(self, method: str, codebase_id: str, action: str = "", body: Json | None = None) -> Any:
        """Send a request to the findings of a codebase."""
        return self._call(method, f"/findings/{segment(codebase_id)}{action}", body)

    def close(self) -> None:
        """Close the connection of this thread; other threads close theirs when they end."""
        self._http.close()

    def _object(self, method: str, path: str, body: Json | None = None) -> Json | None:
        reply = self._call(method, path, body)
        return reply if isinstance(reply, dict) else None

    def _call(self, method: str, path: str, body: Json | None = None) -> Any:
        try:
            return self._http.call(method, path, body)
        except HttpError as error:
            logger.warning("server request failed: %s", error)
            return None

    def _blocking_call(self, method: str, path: str, body: Json) -> Any:
        if self._breaker.is_open:
            return None
        try:
            reply = self._http.call(method, path, body)
        except HttpError as error:
            if error.status == CONFLICT:
                return None  # the server is up, but no longer knows the mark
            self._breaker.record_failure()
            logger.warning("server request failed, continuing in-process: %s", error)
            return None
        self._breaker.record_success()
        return reply


def telemetry_row(step: Step) -> Json:
    """Return a step in the format of `/monitor/runs/{id}/steps`."""
    row: Json = {
        "thought": step.thought[:MAX_TEXT_CHARS] or None,
        "action": step.action[:MAX_TOOL_NAME_CHARS] if step.action else None,
        "action_input": step.action_input[:MAX_TEXT_CHARS] or None,
        "observation": step.observation[:MAX_TEXT_CHARS] or None,
        "is_error": step.is_error,
    }
    if step.user_input:
        row["user_input"] = step.user_input[:MAX_TEXT_CHARS]
    return row


def evaluation_row(step: Step) -> Json:
    """Return a step in the format of `/monitors/evaluate`."""
    row = telemetry_row(step)
    row["observation_is_error"] = row.pop("is_error")
    if step.is_structured and len(step.action_input) <= MAX_TEXT_CHARS:
        row["action_input"] = json.loads(step.action_input)
    return row


ReasonBlocksAPI = Server
"""Name of this client in the public package."""
MonitorClient = Server
"""Name of this client in the public package."""
