"""Debian's Chromium and servers with sample runs. `RB_CHROMIUM` selects another browser."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import seed
from rb_server import Server

CHROMIUM = os.environ.get("RB_CHROMIUM", "/usr/bin/chromium")
KEY = "operators-key-for-the-pages"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without keys, with standing rules."""
    data_dir = tmp_path_factory.mktemp("open") / "data"
    data_dir.mkdir()
    (data_dir / "config.toml").write_text("standing_rules = true\n")
    server = Server(data_dir, MAX_BODY_BYTES="30000000").start()
    seed.fill(server)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that requires a key."""
    server = Server(tmp_path_factory.mktemp("closed") / "data", REASONBLOCKS_KEYS=KEY).start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that must not write to the console."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(5_000)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    yield page
    context.close()
    assert said == [], said
