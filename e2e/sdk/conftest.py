"""A real `rb serve` for the public SDK, unmodified. `RB_BIN` names the program."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

STARTS_WITHIN_S = 20
ARRIVES_WITHIN_S = 10


@dataclass
class Server:
    """A running server, and a key of the organisation `acme`."""

    url: str
    key: str
    operator_key: str
    data_dir: Path
    program: str

    def call(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"Bearer {key or self.key}", "content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)

    def run(self, run_id: str, steps: int, finished: bool = True) -> dict[str, Any]:
        """The stored run, once that many steps (and the end) have arrived: telemetry comes in the background."""
        deadline = time.monotonic() + ARRIVES_WITHIN_S
        while True:
            try:
                run = self.call("GET", f"/v1/monitor/runs/{run_id}")
                if len(run["steps"]) >= steps and (run["outcome"] or not finished):
                    return run
            except urllib.error.HTTPError as error:
                run = error
            if time.monotonic() > deadline:
                raise AssertionError(f"the run {run_id} did not arrive whole: {run}")
            time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    program = os.environ["RB_BIN"]
    data_dir = tmp_path_factory.mktemp("data")
    made = subprocess.run(
        [program, "keys", "create", "--org", "acme", "--data-dir", str(data_dir)],
        check=True, capture_output=True, text=True,
    )
    key = made.stdout.strip()
    port = free_port()
    log = (data_dir / "log").open("w")
    process = subprocess.Popen(
        [program, "serve", "--listen", f"127.0.0.1:{port}", "--data-dir", str(data_dir)],
        env={**os.environ, "REASONBLOCKS_KEYS": "operator"}, stdout=log, stderr=log,
    )
    server = Server(f"http://127.0.0.1:{port}", key, "operator", data_dir, program)
    deadline = time.monotonic() + STARTS_WITHIN_S
    while True:
        try:
            server.call("GET", "/health")
            break
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError((data_dir / "log").read_text()) from None
            time.sleep(0.05)
    yield server
    process.terminate()
    assert process.wait(timeout=30) == 0, "the server ends cleanly when asked"
    assert key not in (data_dir / "log").read_text(), "no secret reaches the log"
