"""A real `rb serve` on data of its own. `RB_BIN` names the program."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

STARTS_WITHIN_S = 20


class Server:
    """A server that can be stopped and started again on the same data."""

    def __init__(self, data_dir: Path, **environment: str) -> None:
        self.data_dir = data_dir
        self.environment = environment
        self.key = environment.get("REASONBLOCKS_KEYS", "")
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    @property
    def printed(self) -> str:
        return (self.data_dir / "printed").read_text()

    def start(self) -> None:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        out = (self.data_dir / "printed").open("w")
        self.process = subprocess.Popen(
            [os.environ["RB_BIN"], "serve", "--listen", f"127.0.0.1:{self.port}", "--data-dir", str(self.data_dir)],
            env={**os.environ, **self.environment}, stdout=out, stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + STARTS_WITHIN_S
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(self.printed) from None
                time.sleep(0.05)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("content-type", "application/json")
        if self.key:
            request.add_header("authorization", f"Bearer {self.key}")
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(request, data, timeout=30) as reply:
            return json.load(reply)

    def post(self, path: str, **body: Any) -> Any:
        return self.ask("POST", "/v1" + path, body)
