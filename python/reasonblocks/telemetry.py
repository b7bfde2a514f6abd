"""Background delivery of run data to the server, through a bounded queue."""

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

QUEUE_CAPACITY = 1_000
MAX_RETRIES = 3
RETRY_DELAY_S = 0.2
EXIT_TIMEOUT_S = 2.0
IDLE_TIMEOUT_S = 30.0


@dataclass
class TelemetryStats:
    """Delivery counts."""

    enqueued: int = 0
    sent: int = 0
    dropped_full: int = 0
    dropped_failed: int = 0


class Telemetry:
    """One queue and one sender thread for all runs of a client. A full queue drops its oldest event.

    The thread ends when idle, so that a discarded client leaves no thread behind.
    """

    def __init__(
        self, server: Server, *, queue_capacity: int = QUEUE_CAPACITY, retry_delay_s: float = RETRY_DELAY_S
    ) -> None:
        self.stats = TelemetryStats()
        self._server = server
        self._retry_delay_s = retry_delay_s
        self._events: deque[tuple[str, dict[str, Any]]] = deque()
        self._capacity = queue_capacity
        self._changed = threading.Condition()
        self._busy = False
        self._closed = False
        self._thread: threading.Thread | None = None
        _INSTANCES.add(self)

    def send_start(self, run_id: str, fields: dict[str, Any]) -> None:
        """Enqueue the start of a run."""
        self._enqueue("/monitor/runs", {"run_id": run_id, **fields})

    def send_step(self, run_id: str, row: dict[str, Any]) -> None:
        """Enqueue a step."""
        self._enqueue(f"/monitor/runs/{segment(run_id)}/steps", row)

    def send_finish(self, run_id: str, outcome: str) -> None:
        """Enqueue the end of a run."""
        self._enqueue(f"/monitor/runs/{segment(run_id)}/finish", {"outcome": outcome[:64]})

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until the queue is empty; return false on timeout."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while self._events or self._busy:
                remaining = deadline - time.monotonic()
                if remaining <= 0 or self._thread is None or not self._thread.is_alive():
                    return not self._events and not self._busy
                self._changed.wait(remaining)
        return True

    def close(self, timeout: float = 5.0) -> None:
        """Flush the queue and stop the thread."""
        self.flush(timeout)
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _enqueue(self, path: str, body: dict[str, Any]) -> None:
        with self._changed:
            if self._closed:
                return
            if len(self._events) >= self._capacity:
                self._events.popleft()
                self.stats.dropped_full += 1
            self._events.append((path, body))
            self.stats.enqueued += 1
            # The thread does not exist before the first event, after an idle timeout, and in a forked process.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="reasonblocks-telemetry", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._events and not self._closed:
                    self._changed.wait(IDLE_TIMEOUT_S)
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
        for attempt in range(MAX_RETRIES + 1):
            try:
                self._server.post(path, body)
            except HttpError as error:
                if error.is_final or attempt == MAX_RETRIES or self._closed:
                    logger.warning("telemetry event dropped: %s", error)
                    return False
                time.sleep(self._retry_delay_s * 2**attempt * random.uniform(0.5, 1.5))  # noqa: S311 -- not a secret
            except Exception:
                logger.exception("telemetry event dropped")
                return False
            else:
                return True
        return False


_INSTANCES: weakref.WeakSet[Telemetry] = weakref.WeakSet()


@atexit.register
def _flush_at_exit() -> None:
    deadline = time.monotonic() + EXIT_TIMEOUT_S
    for telemetry in list(_INSTANCES):
        telemetry.flush(max(0.0, deadline - time.monotonic()))
