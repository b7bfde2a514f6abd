"""Unmodified agents from npm: they are steered, and only their work becomes steps."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from pathlib import Path
from typing import Any

from conftest import Gateway
from loops import TASK
from upstream import FINAL, SIGN, TURNS_MAX, Seen

KEY = "sk-secret-of-the-provider"
ENDS_WITHIN_S = 180


def play(command: list[str], home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program with a temporary home folder."""
    work = home / "work"
    work.mkdir()
    (work / "notes.txt").write_text("nothing about sessions\n")
    given = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", **environment}
    ended = subprocess.run(command, cwd=work, env=given, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           timeout=ENDS_WITHIN_S)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended


def program(name: str) -> str:
    return str(Path(os.environ["RB_PROGRAMS"]) / name)


def items(seen: Seen) -> list[Any]:
    """The conversation without cache markers."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: bare(inner) for key, inner in value.items() if key != "cache_control"}
        return [bare(inner) for inner in value] if isinstance(value, list) else value

    body = seen.json
    return bare(body.get("messages") or body["input"])


def check_steered(requests: list[Seen]) -> None:
    assert 3 < len(requests) < TURNS_MAX, "guidance ended the loop"
    assert SIGN in json.dumps(items(requests[-1]))
    for before, after in zip(requests, requests[1:]):
        earlier = items(before)
        assert items(after)[: len(earlier)] == earlier, "earlier messages are unchanged"


CODEX = ["exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"]


def test_codex(gateway: Gateway, tmp_path: Path) -> None:
    model = f"codex-{uuid.uuid4()}"
    settings = tmp_path / "codex"
    settings.mkdir()
    (settings / "config.toml").write_text(f"""
        model = "{model}"
        model_provider = "reasonblocks"
        [model_providers.reasonblocks]
        name = "ReasonBlocks"
        base_url = "{gateway.openai}"
        wire_api = "responses"
        env_key = "OPENAI_API_KEY"
        supports_websockets = false
    """)
    ended = play([program("codex"), *CODEX, TASK], tmp_path, CODEX_HOME=str(settings), OPENAI_API_KEY=KEY)
    assert FINAL in ended.stdout
    requests = gateway.upstream.of_model(model)
    check_steered(requests)
    run = gateway.run("codex:" + requests[0].headers["thread-id"], steps=len(requests) + 1)
    assert run["task"] == TASK and len(run["steps"]) == len(requests) + 1, "the final answer is the closing step"
    assert all(request.headers["authorization"] == f"Bearer {KEY}" for request in requests)


def test_codex_by_rb_run(gateway: Gateway, tmp_path: Path) -> None:
    model = f"codex-run-{uuid.uuid4()}"
    run = [os.environ["RB_BIN"], "run", "--color", "never", "--data-dir", str(tmp_path / "data"), "--"]
    ended = play([*run, program("codex"), *CODEX, "--model", model, TASK], tmp_path,
                 CODEX_HOME=str(tmp_path), OPENAI_API_KEY=KEY, RB_UPSTREAM_OPENAI=gateway.upstream.url)
    assert FINAL in ended.stdout
    check_steered(gateway.upstream.of_model(model))
    assert "semantic_loop" in ended.stderr, "the summary lists the fired monitors"


def test_claude_code(gateway: Gateway, tmp_path: Path) -> None:
    session = str(uuid.uuid4())
    command = [program("claude"), "-p", TASK, "--session-id", session, "--allowedTools", "Bash"]
    ended = play(command, tmp_path, ANTHROPIC_BASE_URL=gateway.anthropic, ANTHROPIC_API_KEY=KEY,
                 CLAUDE_CONFIG_DIR=str(tmp_path / "claude"), DISABLE_AUTOUPDATER="1", DISABLE_TELEMETRY="1")
    assert FINAL in ended.stdout
    requests = [seen for seen in gateway.upstream.seen
                if seen.headers.get("x-claude-code-session-id") == session and seen.path.startswith("/v1/messages")
                and "count_tokens" not in seen.path]
    work = [request for request in requests if request.json.get("tools")]
    auxiliary_requests = [request for request in requests if not request.json.get("tools")]
    check_steered(work)
    assert auxiliary_requests, "the agent requests a title"
    assert all(SIGN not in json.dumps(items(request)) for request in auxiliary_requests), "auxiliary requests are unchanged"
    run = gateway.run(f"claude-code:{session}", steps=len(work) + 1)
    assert run["task"] == TASK and len(run["steps"]) == len(work) + 1, "auxiliary requests are not steps"
