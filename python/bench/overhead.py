"""Overhead of the middleware per model call, compared with the public package.

Arguments: the folder of this package, the folder of the public package, and the `rb` binary. Both packages are imported
as `reasonblocks`, so each is measured in its own process, with the same scripted LangChain agent. The public package
needs a server; it is measured with `rb serve` and with an idle server that answers every request at once. This package
is measured without a server and with both.

Two figures per package: *in the hooks* is the time inside the hooks without the model call, each hook at its fastest of
all rounds, divided by the number of calls. *The whole agent* is the time of a call with the middleware minus the time
without it, at the fastest round; it includes LangGraph's overhead of the added nodes and is noisier.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LENGTHS = (40, 200)
ROUNDS = 3
PASSES = 6
TEXT = "Let me look at the handler in src/app/session.py again, the expiry may be wrong there. " * 10
HOOKS = ("before_agent", "before_model", "wrap_model_call", "after_agent")


class Quick(BaseHTTPRequestHandler):
    """Responds to every request at once."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Return an evaluation without fired monitors."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = b'{"inject": false, "fired": [], "scores": {}, "composite": 0.0, "traces": []}'
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode()
        self.wfile.write(head + data)

    def log_message(self, *_args: Any) -> None:
        """Disable the request log."""


def serve() -> None:
    """Run the server until the input ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Quick)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


def timed(middleware: Any) -> list[float]:
    """Record the time inside each hook of a middleware, without the model call."""
    spent: list[float] = []
    kind = type(middleware)
    changed: dict[str, Any] = {}
    for name in HOOKS[:2] + HOOKS[3:]:
        hook = getattr(kind, name)
        if hook.__module__.startswith("langchain"):
            continue

        def counted(self: Any, state: Any, runtime: Any, hook: Any = hook) -> Any:
            begun = time.perf_counter()
            try:
                return hook(self, state, runtime)
            finally:
                spent.append(time.perf_counter() - begun)

        changed[name] = counted

    def wrapped(self: Any, request: Any, handler: Any) -> Any:
        inside = 0.0

        def call(given: Any) -> Any:
            nonlocal inside
            begun = time.perf_counter()
            try:
                return handler(given)
            finally:
                inside += time.perf_counter() - begun

        begun = time.perf_counter()
        try:
            return kind.wrap_model_call(self, request, call)
        finally:
            spent.append(time.perf_counter() - begun - inside)

    changed["wrap_model_call"] = wrapped
    middleware.__class__ = type(kind.__name__, (kind,), changed)
    return spent


def fastest(rounds: list[list[float]]) -> list[float]:
    """Return the fastest time of each position."""
    return [min(times) for times in zip(*rounds, strict=True)]


def measure(url: str, calls: int) -> None:
    """Run the agent with the package on the path; print the seconds per call and per hook."""
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool

    from reasonblocks import ReasonBlocks

    @tool
    def look(query: str) -> str:
        """Look."""
        return f"nothing of note in {query} " * 20

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **_kwargs: Any) -> Any:
            return self

    def run(middleware: list[Any]) -> float:
        script = [
            AIMessage(
                content=f"{at} {TEXT}", tool_calls=[{"name": "look", "args": {"query": str(at)}, "id": f"call-{at}"}]
            )
            for at in range(calls - 1)
        ]
        model = Scripted(messages=iter([*script, AIMessage(content="done")]))
        agent = create_agent(model=model, tools=[look], system_prompt="You fix bugs.", middleware=middleware)
        begun = time.perf_counter()
        agent.invoke({"messages": [("user", "go")]}, {"recursion_limit": 10 * calls})
        return (time.perf_counter() - begun) / calls

    options = {"base_url": url} if url else {}
    bare, whole, hooks = [], [], []
    for _ in range(ROUNDS):
        bare.append([run([])])
        whole.append([run([ReasonBlocks(api_key="rb_live_x", **options).middleware()])])
        middleware = ReasonBlocks(api_key="rb_live_x", **options).middleware()
        hooks.append(timed(middleware))
        run([middleware])
    print(json.dumps({"bare": fastest(bare), "whole": fastest(whole), "hooks": fastest(hooks)}))


def start_rb(rb: str, data: str) -> tuple[subprocess.Popen[bytes], str]:
    """Start `rb serve`; return the process and its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [rb, "serve", "--listen", f"127.0.0.1:{port}", "--data-dir", data]
    many = {"RATE_LIMIT_PER_SEC": "1000000000", "RATE_LIMIT_BURST": "1000000000"}
    server = subprocess.Popen(command, env={**os.environ, **many}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return server, f"http://127.0.0.1:{port}"
        time.sleep(0.05)
    raise RuntimeError("rb serve does not answer")


def main(ours: str, public: str, rb: str) -> None:
    """Run the benchmark and print a table."""
    with tempfile.TemporaryDirectory() as data:
        real, real_url = start_rb(rb, data)
        try:
            compare(ours, public, real_url)
        finally:
            real.terminate()
            real.wait()


def measured(path: str, where: str, calls: int) -> dict[str, list[float]]:
    """Measure a package in a subprocess."""
    command = [sys.executable, __file__, "measure", where, str(calls)]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=True)
    figures: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return figures


def times(theirs: float, ours: float) -> str:
    """Return the ratio of both packages as text."""
    return f"{theirs / ours:.1f} times" if ours > 0 else "in the noise"


def compare(ours: str, public: str, real_url: str) -> None:
    """Measure each package with each server."""
    server = subprocess.Popen([sys.executable, __file__, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    port = server.stdout.readline().decode().strip() if server.stdout else ""
    url = f"http://127.0.0.1:{port}"
    rows = [
        ("public 0.2.5, rb serve", public, real_url),
        ("public 0.2.5, idle server", public, url),
        ("this package, in-process", ours, ""),
        ("this package, rb serve", ours, real_url),
        ("this package, idle server", ours, url),
    ]
    rounds = PASSES * ROUNDS
    print("the same agent under each package; added to a model call, each hook at its fastest of", rounds, "rounds:\n")
    ratios = "ratio, rb serve | ratio, idle server"
    print(f"| model calls | package | in the hooks | {ratios} | the whole agent | {ratios} |")
    print("| --: | :-- | --: | --: | --: | --: | --: | --: |")
    for calls in LENGTHS:
        passes = [[measured(path, where, calls) for _, path, where in rows] for _ in range(PASSES)]
        public_ones: list[tuple[float, float]] = []
        for (name, path, _), *tried in zip(rows, *passes, strict=True):
            figures = {what: sum(fastest([figure[what] for figure in tried])) for what in tried[0]}
            added = (figures["hooks"] / calls, max(figures["whole"] - figures["bare"], 0.0))
            if path == public:
                public_ones.append(added)
            cells = [f"{calls}", name]
            for at, figure in enumerate(added):
                against = ["", ""] if path == public else [times(theirs[at], figure) for theirs in public_ones]
                cells += [f"{figure * 1e6:,.0f} µs", *against]
            print(f"| {' | '.join(cells)} |", flush=True)
    server.kill()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    elif sys.argv[1] == "measure":
        measure(sys.argv[2], int(sys.argv[3]))
    else:
        main(*sys.argv[1:])
