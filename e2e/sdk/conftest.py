"""`rb serve` for the tests of the public SDK."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import rb_server


class Server(rb_server.Server):
    """A server with a key of the organisation `acme`."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir, REASONBLOCKS_KEYS="operator")
        self.operator_key = self.key
        create = [self.program, "keys", "create", "--org", "acme", "--data-dir", str(data_dir)]
        self.key = subprocess.run(create, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("data"))
    server.start()
    yield server
    server.stop()
    assert server.key not in server.log.read_text(), "no secret reaches the log"
