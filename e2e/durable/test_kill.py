"""`kill -9` under load, again and again: what was answered is there, and the database opens each time."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

KILLS = int(os.environ.get("RB_KILLS", "10"))
WRITERS = 8
STARTS_WITHIN_S = 20
LIVES_FOR_S = 0.25


class Server:
    def __init__(self, data_dir: Path) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        self.command = [os.environ["RB_BIN"], "serve", "--listen", f"127.0.0.1:{self.port}",
                        "--data-dir", str(data_dir)]

    def start(self) -> None:
        limits = {"RATE_LIMIT_PER_SEC": "1000000", "RATE_LIMIT_BURST": "1000000"}
        self.process = subprocess.Popen(self.command, env={**os.environ, **limits},
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + STARTS_WITHIN_S
        while True:
            try:
                status, _ = self.call("GET", "/health")
                assert status == 200
                return
            except OSError:
                assert self.process.poll() is None and time.monotonic() < deadline, "the server does not start"
                time.sleep(0.02)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def call(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            return self.on(connection, method, path, body)
        finally:
            connection.close()

    @staticmethod
    def on(connection: http.client.HTTPConnection, method: str, path: str, body: object) -> tuple[int, bytes]:
        raw = None if body is None else json.dumps(body)
        connection.request(method, path, raw, {"content-type": "application/json"})
        reply = connection.getresponse()
        return reply.status, reply.read()


def write(server: Server, run_id: str, answered: list[int], is_over: threading.Event) -> None:
    """Logs steps of one run, and notes each that was answered with 200."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    index = len(answered)
    while not is_over.is_set():
        step = {"step_index": index, "thought": f"Step {index}. " + "x" * 1000, "action": "ls", "observation": "a"}
        try:
            status, _ = server.on(connection, "POST", f"/monitor/runs/{run_id}/steps", step)
        except (OSError, http.client.HTTPException):
            return  # killed before it could answer
        assert status == 200
        answered.append(index)
        index += 1


def test_what_was_answered_is_there_after_every_kill(tmp_path: Path) -> None:
    server = Server(tmp_path)
    answered: dict[str, list[int]] = {f"run-{writer}": [] for writer in range(WRITERS)}
    for _ in range(KILLS):
        server.start()
        is_over = threading.Event()
        writers = [threading.Thread(target=write, args=(server, run_id, indexes, is_over))
                   for run_id, indexes in answered.items()]
        for writer in writers:
            writer.start()
        time.sleep(LIVES_FOR_S)
        server.kill()
        is_over.set()
        for writer in writers:
            writer.join()
    server.start()
    for run_id, indexes in answered.items():
        status, body = server.call("GET", f"/monitor/runs/{run_id}")
        assert status == 200
        stored = {step["step_index"] for step in json.loads(body)["steps"]}
        assert set(indexes) <= stored, f"{run_id} lost {sorted(set(indexes) - stored)}"
    total = sum(map(len, answered.values()))
    print(f"{KILLS} kills, {total} steps answered, none lost")
    assert total > KILLS
    server.process.terminate()
    assert server.process.wait(timeout=30) == 0
