"""Runs `rb serve` in a temporary data folder, for the tests in all subfolders. `RB_BIN` is the path of the binary."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from email.message import Message
from pathlib import Path
from typing import Any, Self

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60
RESPONSE_TIMEOUT_S = 30
ARRIVAL_TIMEOUT_S = 10

UNLIMITED = {"RATE_LIMIT_PER_SEC": "1000000", "RATE_LIMIT_BURST": "1000000"}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """A server process that can be stopped and restarted on the same data. The constructor does not start it."""

    def __init__(self, data_dir: Path, **environment: str) -> None:
        self.data_dir = data_dir
        self.environment = environment
        self.key = environment.get("REASONBLOCKS_KEYS", "")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.program = os.environ["RB_BIN"]
        self.log = data_dir / "log"

    def start(self) -> Self:
        return self.spawn().ready()

    def spawn(self) -> Self:
        """Starts the process without waiting for it."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.printed_from = self.log.stat().st_size if self.log.exists() else 0
        command = [self.program, "serve", "--listen", f"127.0.0.1:{self.port}", "--data-dir", str(self.data_dir)]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(command, env={**os.environ, **self.environment}, stdout=log, stderr=log)
        return self

    def ready(self) -> Self:
        """Waits until the server responds."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=1).close()
                return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(f"the server did not start: {self.printed}") from None
                time.sleep(0.02)

    @property
    def printed(self) -> str:
        """Log output since the last start."""
        return self.log.read_bytes()[self.printed_from:].decode()

    def stop(self) -> None:
        """Stops the server and checks its exit code."""
        assert self.process.poll() is None, f"the server exited unexpectedly: {self.printed}"
        self.process.terminate()
        assert self.process.wait(timeout=STOP_TIMEOUT_S) == 0, self.printed

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes, Message]:
        """Sends a request and returns status, body and headers."""
        if self.key:
            headers.setdefault("authorization", f"Bearer {self.key}")
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=RESPONSE_TIMEOUT_S) as reply:
                return reply.status, reply.read(), reply.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(), error.headers

    def ask(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        """Sends a request and returns the JSON body; fails on an error status."""
        raw = None if body is None else json.dumps(body).encode()
        headers = {"content_type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
        status, raw_reply, _ = self.send(method, path, raw, **headers)
        assert 200 <= status < 300, f"{method} {path}: {status} {raw_reply.decode()}"
        return json.loads(raw_reply)

    def post(self, path: str, **body: Any) -> Any:
        return self.ask("POST", "/v1" + path, body)

    def run(self, run_id: str, steps: int = 0, is_over: bool = False) -> dict[str, Any]:
        """Returns the stored run. Waits until it has this many steps and, with `is_over`, an outcome."""
        deadline = time.monotonic() + ARRIVAL_TIMEOUT_S
        while True:
            status, raw_reply, _ = self.send("GET", f"/v1/monitor/runs/{run_id}")
            if status == 200:
                run = json.loads(raw_reply)
                if len(run["steps"]) >= steps and (run["outcome"] or not is_over):
                    return run
            assert time.monotonic() < deadline, f"the run {run_id} is incomplete: {status} {raw_reply.decode()}"
            time.sleep(0.05)
