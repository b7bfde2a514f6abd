"""`rb watch` on a pseudo-terminal: drawing, keys and restoring the terminal. `RB_BIN` is the path of the binary."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator
from typing import Any

import pytest

from rb_server import Server

KEY = "e2e-key"
TIMEOUT_S = 20
RUN = "runs/with a slash"

ENTERED, LEFT, SHOWN, WRAPS = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?7h"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("data"), REASONBLOCKS_KEYS=KEY).start()
    server.post("/monitor/runs", run_id=RUN, agent_name="coder\x1b[2J", model="claude-sonnet-4-5")
    yield server
    server.stop()


class Screen:
    """A process on a pseudo-terminal."""

    def __init__(self, server: Server) -> None:
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ["REASONBLOCKS_API_KEY"] = KEY
            os.execv(os.environ["RB_BIN"], ["rb", "watch", "--url", server.url])
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 120, 0, 0))

    def until(self, wanted: bytes) -> bytes:
        """Returns the output up to and including the wanted bytes."""
        drawn, deadline = b"", time.monotonic() + TIMEOUT_S
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
def test_runs_are_drawn_and_the_terminal_is_restored(server: Server, end: Any) -> None:
    screen = Screen(server)
    drawn = screen.until(b"coder")
    assert ENTERED in drawn and b"coder\x1b[2J" not in drawn
    for at in range(10):
        server.post("/monitor/runs/runs%2Fwith%20a%20slash/steps", step_index=at, thought="Let me run it again.",
                    action="bash", action_input="pytest", observation="1 failed")
    screen.until(b"semantic_loop")
    screen.type(b"\r")
    screen.until(b"Let me run it again.")
    end(screen)
    left = screen.until(LEFT)
    assert SHOWN in left and WRAPS in left, "the cursor and line wrapping are restored"
    _, status = os.waitpid(screen.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
