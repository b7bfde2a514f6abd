"""Scripted models, tools and servers shared by the tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool


@tool
def search(query: str) -> str:
    """Search the code."""
    return f"nothing found for {query}"


def turn(text: str, at: int, query: str = "session", name: str = "search") -> AIMessage:
    """A response with a tool call."""
    call = {"name": name, "args": {"query": query}, "id": f"call-{at}"}
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    return AIMessage(content=text, tool_calls=[call], usage_metadata=usage)


def looping(count: int, text: str = "Let me search again") -> list[AIMessage]:
    """An agent that repeats the same search, then gives up."""
    return [
        *(turn(f"{text} {at}" if text else "", at) for at in range(count)),
        AIMessage(content="I could not find it."),
    ]


class ScriptedChat(BaseChatModel):
    """A chat model that replays a script and records its requests."""

    script: list[Any]
    model_name: str = "claude-sonnet-4-5"
    requests: list[list[BaseMessage]] = []
    calls: int = 0

    def model_post_init(self, _context: Any) -> None:
        self.requests = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        self.requests.append(list(messages))
        answer = self.script[self.calls % len(self.script)]
        self.calls += 1
        if isinstance(answer, Exception):
            raise answer
        return answer.model_copy()

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        answer = self._next(messages)
        for word in str(answer.content).split(" "):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=word + " "))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk
        calls = [
            {"name": c["name"], "args": json.dumps(c["args"]), "id": c["id"], "index": i, "type": "tool_call_chunk"}
            for i, c in enumerate(answer.tool_calls)
        ]
        yield ChatGenerationChunk(
            message=AIMessageChunk(content="", tool_call_chunks=calls, usage_metadata=answer.usage_metadata)
        )


Answer = Callable[[str, str, Any], tuple[int, Any]]


class ScriptedServer:
    """An HTTP server with scripted responses that records its requests."""

    def __init__(self, answer: Answer) -> None:
        self.requests: list[tuple[str, str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answer = answer
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                raw = self.rfile.read(length)
                body = json.loads(raw) if raw else None
                outer.requests.append((self.command, self.path, body))
                outer.headers.append(dict(self.headers))
                status, reply = outer.answer(self.command, self.path, body)
                data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                self.send_response(status)
                kind = "text/event-stream" if data.startswith(b"event:") else "application/json"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_DELETE = do_PATCH = _serve

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def bodies(self, path: str) -> list[Any]:
        return [body for _, asked, body in self.requests if asked == path]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], ScriptedServer]]:
    made: list[ScriptedServer] = []

    def make(answer: Answer) -> ScriptedServer:
        made.append(ScriptedServer(answer))
        return made[-1]

    yield make
    for server in made:
        server.close()


def healthy(method: str, path: str, body: Any) -> tuple[int, Any]:
    """A server whose monitors never fire."""
    if path == "/monitors/evaluate":
        return 200, {"inject": False, "fired": [], "scores": {}, "composite": 0.0}
    if path == "/traces/retrieve":
        return 200, {"traces": []}
    return 200, {"status": "ok"}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REASONBLOCKS_BASE_URL", "REASONBLOCKS_API_TIMEOUT", "REASONBLOCKS_API_KEY"):
        monkeypatch.delenv(name, raising=False)
