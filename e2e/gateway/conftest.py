"""`rb serve` in front of the scripted provider. `RB_BIN` is the path of the binary."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import upstream as scripted
from rb_server import Server


class Gateway(Server):
    """A server between clients and the scripted provider."""

    def __init__(self, upstream: scripted.Upstream, data_dir: Path) -> None:
        super().__init__(data_dir, RB_UPSTREAM_ANTHROPIC=upstream.url, RB_UPSTREAM_OPENAI=upstream.url)
        self.upstream = upstream
        self.anthropic = f"{self.url}/anthropic"
        self.openai = f"{self.url}/openai/v1"

    def get(self, path: str) -> Any:
        return self.ask("GET", path)


@pytest.fixture(scope="session")
def upstream() -> Iterator[scripted.Upstream]:
    upstream, server = scripted.start()
    yield upstream
    server.shutdown()


@pytest.fixture(scope="session")
def gateway(upstream: scripted.Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(upstream, tmp_path_factory.mktemp("data"))
    gateway.start()
    yield gateway
    gateway.stop()
    assert "sk-secret" not in gateway.log.read_text(), "no secret reaches the log"
