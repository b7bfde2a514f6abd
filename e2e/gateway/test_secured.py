"""A provider over TLS with a certificate and HTTP/2."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import hypercorn.asyncio
import pytest
import trustme
from hypercorn.config import Config

from rb_server import RESPONSE_TIMEOUT_S, Server, free_port

AT_ONCE = 12
"""Number of agents with concurrent requests."""
STREAMS_MAX = 4
"""Maximum number of concurrent streams per HTTP/2 connection; real providers allow about 100."""


class Provider:
    """Responds only after all requests have arrived."""

    def __init__(self) -> None:
        self.asked = 0
        self.all_asked = asyncio.Event()

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            return
        while (await receive()).get("more_body"):
            pass
        self.asked += 1
        if self.asked == AT_ONCE:
            self.all_asked.set()
        await self.all_asked.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": json.dumps({"spoken": scope["http_version"]}).encode()})


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("secured")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(folder / "provider.pem")
    port = free_port()
    provider = serve(port, folder / "provider.pem")
    url = f"https://localhost:{port}"
    environment = {"SSL_CERT_FILE": str(folder / "ca.pem"), "RB_UPSTREAM_ANTHROPIC": url}
    gateway = Server(folder / "data", **environment).start()
    yield gateway
    gateway.stop()
    provider()


def serve(port: int, certificate: Path) -> Callable[[], None]:
    """Runs the provider in the background; returns a function that stops it."""
    config = Config()
    config.bind = [f"localhost:{port}"]
    config.certfile = config.keyfile = str(certificate)
    config.h2_max_concurrent_streams = STREAMS_MAX
    config.loglevel = "ERROR"
    loop, ends = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(
        target=lambda: loop.run_until_complete(
            hypercorn.asyncio.serve(Provider(), config, shutdown_trigger=ends.wait)
        )
    )
    thread.start()

    def end() -> None:
        loop.call_soon_threadsafe(ends.set)
        thread.join()

    return end


def ask(gateway: Server, number: int) -> Any:
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": f"go {number}"}]}
    headers = {"content-type": "application/json", "x-api-key": "sk-secret"}
    request = urllib.request.Request(f"{gateway.url}/anthropic/v1/messages", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=RESPONSE_TIMEOUT_S) as reply:
        return json.load(reply)


def test_requests_do_not_block_each_other(gateway: Server) -> None:
    with ThreadPoolExecutor(AT_ONCE) as agents:
        replies = list(agents.map(lambda number: ask(gateway, number), range(AT_ONCE)))
    assert replies == [{"spoken": "1.1"}] * AT_ONCE
