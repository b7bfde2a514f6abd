"""`rb serve`, or any server with the same contract. No method raises; a call that failed gives nothing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from reasonblocks._engine import Query, Step
from reasonblocks._http import Http, HttpError, segment
from reasonblocks.settings import checked_key, masked_key, resolved_base_url, resolved_timeout

logger = logging.getLogger("reasonblocks")

STEPS_MAX = 2_000
TEXT_CHARS_MAX = 64_000
REST_S = 5.0
REST_S_MAX = 60.0
CONFLICT = 409

Json = dict[str, Any]


class Patience:
    """Leaves a server alone for a while after it has failed, so that an agent does not wait for it at every step."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rest_s = REST_S
        self._until = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the server is being left alone."""
        return time.monotonic() < self._until

    def succeeded(self) -> None:
        """Take the server at its word again."""
        with self._lock:
            self._rest_s, self._until = REST_S, 0.0

    def failed(self) -> None:
        """Rest, and longer each time."""
        with self._lock:
            self._until = time.monotonic() + self._rest_s
            self._rest_s = min(self._rest_s * 2, REST_S_MAX)


class Server:
    """A client for evaluation, retrieval, telemetry and the reading routes."""

    def __init__(self, api_key: str = "", base_url: str | None = None, *, timeout: float | None = None) -> None:
        url = resolved_base_url(base_url)
        if url is None:
            raise ValueError("a server needs `base_url` or the environment variable `REASONBLOCKS_BASE_URL`")
        self._key = checked_key(api_key)
        self._http = Http(url, self._key, resolved_timeout(timeout))
        self._patience = Patience()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._http.base_url!r}, api_key={masked_key(self._key)})"

    def __getstate__(self) -> Json:
        raise TypeError("a server client holds a key and open connections; make a new one instead of pickling it")

    @property
    def base_url(self) -> str:
        """Where the server is."""
        return self._http.base_url

    # What the agent waits for.

    def evaluate(
        self,
        steps: Sequence[Step],
        *,
        model: str = "",
        task_profile: str = "coding",
        weights: Mapping[str, float] | None = None,
        run_id: str = "",
        after_mark: str = "",
    ) -> Json | None:
        """Ask what the monitors of the server say of a run so far.

        With the `mark` of an earlier reply, `steps` are those since; nothing is said where the server knows it no more.
        """
        body: Json = {"model": model[:128], "task_profile": task_profile}
        body["steps"] = [_sent(step) for step in steps[-STEPS_MAX:]]
        if weights:
            body["weights"] = dict(weights)
        if run_id:
            body["run_id"] = run_id
        if after_mark:
            body["after_mark"] = after_mark
        reply = self._inline("POST", "/monitors/evaluate", body)
        return reply if isinstance(reply, dict) and "inject" in reply else None

    def retrieve(self, query: Query, *, model: str = "", customer_id: str | None = None) -> list[Json] | None:
        """Look up patterns; `None` means that the server could not say."""
        body: Json = {"context": query.context[:TEXT_CHARS_MAX], "tier": query.tier, "level": query.tier}
        body |= {"top_k": query.top_k, "model": model[:128]}
        if query.failure_type:
            body["failure_type"] = query.failure_type
        if customer_id:
            body["customer_id"] = customer_id
        reply = self._inline("POST", "/traces/retrieve", body)
        traces = reply.get("traces") if isinstance(reply, dict) else None
        return traces if isinstance(traces, list) else None

    def score_step(self, text: str, context: str = "") -> float | None:
        """Ask how hard a thought looks."""
        reply = self._inline("POST", "/score", {"text": text[:TEXT_CHARS_MAX], "context": context[:TEXT_CHARS_MAX]})
        difficulty = reply.get("difficulty", 0.5) if isinstance(reply, dict) else None
        return float(difficulty) if isinstance(difficulty, (int, float)) else None

    # What is told to the server, mostly from a thread of its own.

    def tell(self, path: str, body: Json) -> None:
        """Post something; raises `HttpError`, because the caller tries again."""
        self._http.call("POST", path, body)

    def start_run(self, *, run_id: str, **about: Any) -> Json | None:
        """Say that a run begins."""
        return self._said("POST", "/monitor/runs", {"run_id": run_id, **about})

    def log_step(self, *, run_id: str, step_index: int, **about: Any) -> Json | None:
        """Say what happened in one step."""
        path = f"/monitor/runs/{segment(run_id)}/steps"
        return self._said("POST", path, {"step_index": step_index, **about})

    def finish_run(self, *, run_id: str, outcome: str = "") -> Json | None:
        """Say how a run ended."""
        return self._said("POST", f"/monitor/runs/{segment(run_id)}/finish", {"outcome": outcome})

    # What one may read.

    def list_runs(self, *, limit: int = 200) -> list[Json]:
        """Give the newest runs."""
        reply = self._quietly("GET", f"/monitor/runs?limit={limit}")
        return reply if isinstance(reply, list) else []

    def get_run(self, run_id: str) -> Json | None:
        """Give one run with its steps."""
        return self._said("GET", f"/monitor/runs/{segment(run_id)}")

    def health_summary(self) -> Json | None:
        """Give the figures over all runs."""
        return self._said("GET", "/monitor/health-summary")

    def findings(self, method: str, codebase_id: str, action: str = "", body: Json | None = None) -> Any:
        """Speak to the findings of a codebase; `None` if that failed."""
        return self._quietly(method, f"/findings/{segment(codebase_id)}{action}", body)

    def close(self) -> None:
        """Close the connection of this thread; others close with their threads."""
        self._http.close()

    def _said(self, method: str, path: str, body: Json | None = None) -> Json | None:
        reply = self._quietly(method, path, body)
        return reply if isinstance(reply, dict) else None

    def _quietly(self, method: str, path: str, body: Json | None = None) -> Any:
        try:
            return self._http.call(method, path, body)
        except HttpError as error:
            logger.warning("the server did not answer: %s", error)
            return None

    def _inline(self, method: str, path: str, body: Json) -> Any:
        if self._patience.is_over:
            return None
        try:
            reply = self._http.call(method, path, body)
        except HttpError as error:
            if error.status == CONFLICT:
                return None  # it is there, and has forgotten what came before
            self._patience.failed()
            logger.warning("the server did not answer, going on without it: %s", error)
            return None
        self._patience.succeeded()
        return reply


def _sent(step: Step) -> Json:
    return {
        "thought": step.thought[:TEXT_CHARS_MAX],
        "action": step.action[:256] if step.action else None,
        "action_input": step.action_input[:TEXT_CHARS_MAX] or None,
        "observation": step.observation[:TEXT_CHARS_MAX],
        "observation_is_error": step.is_error,
    }


ReasonBlocksAPI = Server
"""The name this client has in the public package."""
MonitorClient = Server
"""The name this client has in the public package."""
