"""Writes screenshots of the pages to `docs/pictures/` (`cargo xtask pictures`)."""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import seed
from conftest import CHROMIUM
from rb_server import Server

PICTURES = {
    "runs": ("/", 760),
    "run": ("/ui/run?id=sign-out", 1000),
    "experiments": ("/ui/experiments?id=made-up-example", 820),
}


def fill(server: Server) -> None:
    dice = random.Random(3)
    seed.experiment(server, dice, "made-up-example", 45)
    seed.runs(server, dice, 60)
    seed.samples(server, dice)
    seed.live(server, dice)


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as data, sync_playwright() as playwright:
        server = Server(Path(data) / "data").start()
        fill(server)
        server.stop()
        seed.age(next((Path(data) / "data").glob("*.db")), 24)
        server.start()
        try:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            for name, (path, height) in PICTURES.items():
                page = browser.new_page(viewport={"width": 1100, "height": height})
                page.goto(server.url + path)
                page.wait_for_timeout(300)
                page.screenshot(path=folder / f"{name}.png")
                page.close()
            browser.close()
        finally:
            server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
