"""Requests made from the OpenAPI document: no fault of ours, and no reply that the document does not describe."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

STARTS_WITHIN_S = 20
EXAMPLES = os.environ.get("RB_SCHEMA_EXAMPLES", "10")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [os.environ["RB_BIN"], "serve", "--listen", f"127.0.0.1:{port}", "--data-dir", str(tmp_path)],
        env={**os.environ, "REASONBLOCKS_KEYS": "operator",
             "RATE_LIMIT_PER_SEC": "100000", "RATE_LIMIT_BURST": "100000"},
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + STARTS_WITHIN_S
    while True:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=1).close()
            break
        except OSError:
            assert process.poll() is None and time.monotonic() < deadline, "the server does not start"
            time.sleep(0.05)
    yield url
    assert process.poll() is None, "the server is still there"
    process.terminate()
    assert process.wait(timeout=30) == 0


def test_every_reply_is_described(url: str, tmp_path: Path) -> None:
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "run", f"{url}/openapi.json",
        "--url", url, "--header", "Authorization: Bearer operator",
        "--max-examples", EXAMPLES, "--seed", "1", "--no-color",
        # Methods are not tried: an id may hold slashes, so the address of one route is an id of another.
        # Streams have no end, so nothing can wait for it.
        "--exclude-path", "/v1/monitor/stream",
        "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,"
                    "response_headers_conformance,response_schema_conformance,ignored_auth",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout[-8000:] + ended.stderr[-2000:]
