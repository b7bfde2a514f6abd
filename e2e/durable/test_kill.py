"""Repeated `kill -9` under load: acknowledged steps are stored, and the database opens each time."""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from pathlib import Path

from rb_server import UNLIMITED, Server

KILLS = int(os.environ.get("RB_KILLS", "10"))
WRITERS = 8
LIVES_FOR_S = 0.25


def logged(connection: http.client.HTTPConnection, run_id: str, step: dict[str, object]) -> int:
    """Logs a step on a keep-alive connection and returns the status."""
    raw = json.dumps(step)
    connection.request("POST", f"/monitor/runs/{run_id}/steps", raw, {"content-type": "application/json"})
    reply = connection.getresponse()
    reply.read()
    return reply.status


def write(server: Server, run_id: str, answered: list[int], is_over: threading.Event) -> None:
    """Logs steps of one run and records the acknowledged ones."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    index = len(answered)
    while not is_over.is_set():
        step = {"step_index": index, "thought": f"Step {index}. " + "x" * 1000, "action": "ls", "observation": "a"}
        try:
            status = logged(connection, run_id, step)
        except (OSError, http.client.HTTPException):
            return  # killed before it responded
        assert status == 200
        answered.append(index)
        index += 1


def test_acknowledged_steps_survive_kills(tmp_path: Path) -> None:
    server = Server(tmp_path, **UNLIMITED)
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
        stored = {step["step_index"] for step in server.ask("GET", f"/monitor/runs/{run_id}")["steps"]}
        assert set(indexes) <= stored, f"{run_id} lost {sorted(set(indexes) - stored)}"
    total = sum(map(len, answered.values()))
    print(f"{KILLS} kills, {total} steps answered, none lost")
    assert total > KILLS
    server.stop()
