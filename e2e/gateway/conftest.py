"""A real `rb serve` in front of the scripted provider. `RB_BIN` names the program."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import upstream as scripted

STARTS_WITHIN_S = 20
ARRIVES_WITHIN_S = 10


class Gateway:
    """A gateway that can be stopped and started again on the same data."""

    def __init__(self, upstream: scripted.Upstream, data_dir: Path) -> None:
        self.upstream = upstream
        self.data_dir = data_dir
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.anthropic = f"{self.url}/anthropic"
        self.openai = f"{self.url}/openai/v1"
        self.start()

    def start(self) -> None:
        environment = {
            **os.environ,
            "RB_UPSTREAM_ANTHROPIC": self.upstream.url,
            "RB_UPSTREAM_OPENAI": self.upstream.url,
        }
        self.log = (self.data_dir / "log").open("a")
        self.process = subprocess.Popen(
            [os.environ["RB_BIN"], "serve", "--listen", f"127.0.0.1:{self.port}", "--data-dir", str(self.data_dir)],
            env=environment, stdout=self.log, stderr=self.log,
        )
        deadline = time.monotonic() + STARTS_WITHIN_S
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError((self.data_dir / "log").read_text()) from None
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(timeout=30)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=10) as reply:
            return json.load(reply)

    def run(self, run_id: str, steps: int) -> dict[str, Any]:
        """The stored run, once that many steps have arrived."""
        deadline = time.monotonic() + ARRIVES_WITHIN_S
        while True:
            try:
                run = self.get(f"/v1/monitor/runs/{run_id}")
                if len(run["steps"]) >= steps:
                    return run
            except OSError as error:
                run = error
            assert time.monotonic() < deadline, f"the run {run_id} did not arrive whole: {run}"
            time.sleep(0.05)


@pytest.fixture(scope="session")
def upstream() -> Iterator[scripted.Upstream]:
    upstream, server = scripted.start()
    yield upstream
    server.shutdown()


@pytest.fixture(scope="session")
def gateway(upstream: scripted.Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(upstream, tmp_path_factory.mktemp("data"))
    yield gateway
    gateway.stop()
    assert gateway.process.returncode == 0, "the gateway ends cleanly when asked"
    assert "sk-secret" not in (gateway.data_dir / "log").read_text(), "no secret reaches the log"
