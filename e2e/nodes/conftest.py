"""Fixtures of the multi-node tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster import Postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.stop()
