"""`rb watch` on a real terminal: what is drawn, and that the terminal is given back. `RB_BIN` names the program."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import termios
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

KEY = "e2e-key"
WITHIN_S = 20
RUN = "runs/with a slash"

ENTERED, LEFT, SHOWN, WRAPS = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?7h"


class Server:
    def __init__(self, data_dir: Path) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{listener.getsockname()[1]}"
        command = [os.environ["RB_BIN"], "serve", "--listen", self.address, "--data-dir", str(data_dir)]
        environment = {**os.environ, "REASONBLOCKS_KEYS": KEY}
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + WITHIN_S
        while True:
            try:
                urllib.request.urlopen(f"http://{self.address}/health", timeout=1).close()
                return
            except OSError:
                assert self.process.poll() is None and time.monotonic() < deadline, "the server does not start"
                time.sleep(0.05)

    def post(self, path: str, body: dict[str, Any]) -> None:
        headers = {"authorization": f"Bearer {KEY}"}
        request = urllib.request.Request(f"http://{self.address}{path}", json.dumps(body).encode(), headers)
        urllib.request.urlopen(request, timeout=10).close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("data"))
    server.post("/v1/monitor/runs", {"run_id": RUN, "agent_name": "coder\x1b[2J", "model": "claude-sonnet-4-5"})
    yield server
    server.process.terminate()
    server.process.wait(timeout=30)


class Screen:
    """The program on a terminal of its own."""

    def __init__(self, server: Server) -> None:
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ["REASONBLOCKS_API_KEY"] = KEY
            os.execv(os.environ["RB_BIN"], ["rb", "watch", "--url", f"http://{server.address}"])
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 120, 0, 0))

    def until(self, wanted: bytes) -> bytes:
        """Everything that was drawn until this was."""
        drawn, deadline = b"", time.monotonic() + WITHIN_S
        while wanted not in drawn:
            assert time.monotonic() < deadline, (wanted, drawn)
            if select.select([self.terminal], [], [], 0.1)[0]:
                drawn += os.read(self.terminal, 65_536)
        return drawn

    def type(self, keys: bytes) -> None:
        os.write(self.terminal, keys)


def by_key(screen: Screen) -> None:
    screen.type(b"q")


def by_interrupt(screen: Screen) -> None:
    screen.type(b"\x03")


def by_signal(screen: Screen) -> None:
    os.kill(screen.pid, signal.SIGTERM)


@pytest.mark.parametrize("end", [by_key, by_interrupt, by_signal])
def test_runs_are_drawn_and_the_terminal_is_given_back(server: Server, end: Any) -> None:
    screen = Screen(server)
    drawn = screen.until(b"coder")
    assert ENTERED in drawn and b"coder\x1b[2J" not in drawn
    for at in range(10):
        step = {"step_index": at, "thought": "Let me run it again.", "action": "bash", "action_input": "pytest", "observation": "1 failed"}
        server.post("/v1/monitor/runs/runs%2Fwith%20a%20slash/steps", step)
    screen.until(b"diversity")
    screen.type(b"\r")
    screen.until(b"Let me run it again.")
    end(screen)
    left = screen.until(LEFT)
    assert SHOWN in left and WRAPS in left, "the cursor and the wrapping of lines are back"
    _, status = os.waitpid(screen.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
