"""What a run tells the server: from a thread of its own, through a bounded queue, never in the agent's way."""

from __future__ import annotations

import atexit
import logging
import random
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass
from typing import Any

from reasonblocks._http import HttpError, segment
from reasonblocks.server import Server

logger = logging.getLogger("reasonblocks")

QUEUE_MAX = 1_000
RETRIES = 3
RETRY_S = 0.2
EXIT_S = 2.0
IDLE_S = 30.0


@dataclass
class TelemetryStats:
    """What became of the events."""

    enqueued: int = 0
    sent: int = 0
    dropped_full: int = 0
    dropped_failed: int = 0


class Telemetry:
    """One queue and one thread for all runs of a client. When the queue is full, the oldest event goes.

    A thread with nothing to tell ends after a while, so that clients which are dropped leave nothing behind.
    """

    def __init__(self, server: Server, *, queue_max: int = QUEUE_MAX, retry_s: float = RETRY_S) -> None:
        self.stats = TelemetryStats()
        self._server = server
        self._retry_s = retry_s
        self._events: deque[tuple[str, dict[str, Any]]] = deque()
        self._queue_max = queue_max
        self._changed = threading.Condition()
        self._busy = False
        self._closed = False
        self._thread: threading.Thread | None = None
        _LIVE.add(self)

    def run_started(self, run_id: str, about: dict[str, Any]) -> None:
        """Tell that a run begins."""
        self._put("/monitor/runs", {"run_id": run_id, **about})

    def step_taken(self, run_id: str, row: dict[str, Any]) -> None:
        """Tell what happened in a step."""
        self._put(f"/monitor/runs/{segment(run_id)}/steps", row)

    def run_finished(self, run_id: str, outcome: str) -> None:
        """Tell how a run ended."""
        self._put(f"/monitor/runs/{segment(run_id)}/finish", {"outcome": outcome[:64]})

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until everything is told; false if the time was too short."""
        until = time.monotonic() + timeout
        with self._changed:
            while self._events or self._busy:
                left = until - time.monotonic()
                if left <= 0 or self._thread is None or not self._thread.is_alive():
                    return not self._events and not self._busy
                self._changed.wait(left)
        return True

    def close(self, timeout: float = 5.0) -> None:
        """Tell what is left, then stop the thread."""
        self.flush(timeout)
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _put(self, path: str, body: dict[str, Any]) -> None:
        with self._changed:
            if self._closed:
                return
            if len(self._events) >= self._queue_max:
                self._events.popleft()
                self.stats.dropped_full += 1
            self._events.append((path, body))
            self.stats.enqueued += 1
            if self._thread is None or not self._thread.is_alive():  # none yet, or it ended, or we are a fork
                self._thread = threading.Thread(target=self._work, name="reasonblocks-telemetry", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._events and not self._closed:
                    self._changed.wait(IDLE_S)
                if not self._events:
                    self._thread = None
                    return
                path, body = self._events.popleft()
                self._busy = True
            delivered = self._deliver(path, body)
            with self._changed:
                self._busy = False
                if delivered:
                    self.stats.sent += 1
                else:
                    self.stats.dropped_failed += 1
                self._changed.notify_all()

    def _deliver(self, path: str, body: dict[str, Any]) -> bool:
        for attempt in range(RETRIES + 1):
            try:
                self._server.tell(path, body)
            except HttpError as error:
                if error.is_final or attempt == RETRIES or self._closed:
                    logger.warning("telemetry was lost: %s", error)
                    return False
                time.sleep(self._retry_s * 2**attempt * random.uniform(0.5, 1.5))  # noqa: S311 -- no secret
            except Exception:
                logger.exception("telemetry was lost")
                return False
            else:
                return True
        return False


_LIVE: weakref.WeakSet[Telemetry] = weakref.WeakSet()


@atexit.register
def _drain() -> None:
    until = time.monotonic() + EXIT_S
    for telemetry in list(_LIVE):
        telemetry.flush(max(0.0, until - time.monotonic()))
