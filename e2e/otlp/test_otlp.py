"""The OpenTelemetry SDK against `rb serve`: spans in, findings out. `RB_BIN` is the path of the binary."""

from __future__ import annotations

import gzip
import http.server
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.trace import format_trace_id

from rb_server import Server

KEY = "e2e-key"
ARRIVES_WITHIN_S = 20


class Collector:
    """An OTLP collector that records findings."""

    def __init__(self) -> None:
        self.records: list[Any] = []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                assert self.path == "/v1/logs" and self.headers["x-team"] == "blue team"
                request = ExportLogsServiceRequest.FromString(body)
                for resource in request.resource_logs:
                    for scope in resource.scope_logs:
                        collector.records.extend(scope.log_records)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(scope="session")
def collector() -> Collector:
    return Collector()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Server]:
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_HEADERS": "x-team=blue%20team"}
    server = Server(tmp_path_factory.mktemp("data"), REASONBLOCKS_KEYS=KEY, **environment).start()
    yield server
    server.stop()
    assert KEY not in server.log.read_text(), "no secret reaches the log"


def exporter(server: Server, **settings: Any) -> OTLPSpanExporter:
    headers = {"authorization": f"Bearer {KEY}"}
    return OTLPSpanExporter(endpoint=f"{server.url}/otlp/v1/traces", headers=headers, **settings)


def messages(role: str, *parts: dict[str, Any]) -> str:
    return json.dumps([{"role": role, "parts": list(parts)}])


class Agent:
    """An agent that exports each span as soon as it ends, innermost first."""

    def __init__(self, sink: OTLPSpanExporter) -> None:
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(sink))
        self.tracer = provider.get_tracer("e2e")

    def think(self, text: str, call: str | None = None, command: str = "") -> None:
        parts: list[dict[str, Any]] = [{"type": "text", "content": text}]
        if call:
            parts.append({"type": "tool_call", "id": call, "name": "bash", "arguments": {"command": command}})
        with self.tracer.start_as_current_span(
            "chat m-1",
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "anthropic",
                "gen_ai.request.model": "claude-sonnet-4-5",
                "gen_ai.usage.input_tokens": 100,
                "gen_ai.usage.output_tokens": 10,
                "gen_ai.input.messages": messages("user", {"type": "text", "content": "Mend the parser."}),
                "gen_ai.output.messages": messages("assistant", *parts),
            },
        ):
            pass

    def act(self, call: str, result: str) -> None:
        with self.tracer.start_as_current_span(
            "execute_tool bash",
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "bash",
                "gen_ai.tool.call.id": call,
                "gen_ai.tool.call.result": result,
            },
        ):
            pass


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_partial_traces_become_one_monitored_run(server: Server, compression: Compression) -> None:
    agent = Agent(exporter(server, compression=compression))
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "mender",
        "gen_ai.conversation.id": "c-1",
    }
    with agent.tracer.start_as_current_span("invoke_agent mender", attributes=attributes) as root:
        run_id = format_trace_id(root.get_span_context().trace_id)
        for at in range(8):
            agent.think("Let me run the tests again.", f"t{at}", "pytest -q")
            agent.act(f"t{at}", "1 failed, 3 passed")
            steps = server.run(run_id)["steps"]
            assert len(steps) == at + 1, "each export extends the run"
    run = server.run(run_id)
    assert (run["agent_name"], run["model"], run["framework"]) == ("mender", "claude-sonnet-4-5", "otlp")
    assert run["task"] == "Mend the parser."
    assert run["tokens"] == 8 * 110 and run["cost_usd"] > 0
    assert run["fires_by_monitor"], "the loop is detected"
    assert [step["observation"] for step in run["steps"]] == ["1 failed, 3 passed"] * 8
    assert all(not step["injections"] for step in run["steps"]), "OTLP runs are not steered"
    runs = server.ask("GET", "/v1/monitor/runs?limit=1000")
    assert sum(listed["run_id"].startswith(run_id) for listed in runs) == 1


def test_run_continues_after_a_restart(server: Server) -> None:
    agent = Agent(exporter(server))
    with agent.tracer.start_as_current_span(
        "invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent"}
    ) as root:
        run_id = format_trace_id(root.get_span_context().trace_id)
        agent.think("First I look.", "a", "ls")
        agent.act("a", "parser.py")
        server.stop()
        server.start()
        agent.think("Then I read.", "b", "cat parser.py")
        agent.act("b", "def parse(): ...")
    steps = server.run(run_id)["steps"]
    assert [step["thought"] for step in steps] == ["First I look.", "Then I read."]
    assert [step["observation"] for step in steps] == ["parser.py", "def parse(): ..."]


def test_findings_are_exported_as_events(server: Server, collector: Collector) -> None:
    deadline = time.monotonic() + ARRIVES_WITHIN_S
    while not collector.records and time.monotonic() < deadline:
        time.sleep(0.1)
    record = next(it for it in collector.records if it.event_name == "gen_ai.evaluation.result")
    said = {pair.key: pair.value for pair in record.attributes}
    assert said["reasonblocks.run.id"].string_value and said["gen_ai.evaluation.name"].string_value
    assert 0 < said["gen_ai.evaluation.score.value"].double_value <= 1
    assert said["gen_ai.evaluation.explanation"].string_value == record.body.string_value


def test_response_format_matches_the_request(server: Server) -> None:
    path = "/otlp/v1/traces"
    status, body, headers = server.send("POST", path, b"{}", content_type="application/json")
    assert (status, body, headers["content-type"]) == (200, b"{}", "application/json")
    nameless = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "x"}]}]}]}).encode()
    packed = gzip.compress(nameless)
    status, body, _ = server.send("POST", path, packed, content_type="application/json", content_encoding="gzip")
    assert status == 200 and json.loads(body)["partialSuccess"]["rejectedSpans"] == "1"
    status, body, headers = server.send("POST", path, b"", content_type="application/x-protobuf")
    assert status == 200 and not ExportTraceServiceResponse.FromString(body).HasField("partial_success")
    assert headers["content-type"] == "application/x-protobuf"
    status, body, _ = server.send("POST", path, b"\xff\xff", content_type="application/x-protobuf")
    assert status == 400 and b"protobuf" in body
    status, _, _ = server.send("POST", path, b"x", content_type="text/plain")
    assert status == 415
    status, _, _ = server.send("POST", path, b"{}", content_type="application/json", authorization="Bearer wrong")
    assert status == 401


def test_key_is_required(server: Server) -> None:
    sink = OTLPSpanExporter(endpoint=f"{server.url}/otlp/v1/traces", timeout=2)
    provider = TracerProvider()
    span = provider.get_tracer("e2e").start_span("chat")
    span.end()
    assert sink.export([span]) is SpanExportResult.FAILURE
