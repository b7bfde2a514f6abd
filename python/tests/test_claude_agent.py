"""Claude Agent SDK with a scripted transport."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

from reasonblocks import ReasonBlocks

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from scripted_claude import ScriptedClaude

RULE = {"tier": "e3", "pattern_id": "r1", "fields": {"instruction": "Cite."}}


async def run(watch: Any, claude: ScriptedClaude) -> list[Any]:
    options = ClaudeAgentOptions(hooks=watch.hooks)
    async with ClaudeSDKClient(options, transport=claude) as client:
        await client.query("Where is the session expiry set?")
        return [message async for message in watch.wrap(client.receive_response())]


def contexts(claude: ScriptedClaude) -> dict[int, str]:
    said = {}
    for at, (_, answer) in enumerate(claude.hook_replies):
        text = answer.get("hookSpecificOutput", {}).get("additionalContext")
        if text:
            said[at] = text
    return said


async def test_hooks_steer_the_agent():
    claude = ScriptedClaude(5)
    async with ReasonBlocks(suite="both", patterns=[RULE]).claude_hooks(task="find it") as watch:
        messages = await run(watch, claude)
    said = contexts(claude)
    assert "ALWAYS: Cite." in said[0]
    assert "`Grep` was called 3 times in a row" in said[3]
    assert claude.hook_replies[3][1]["hookSpecificOutput"]["hookEventName"] == "PostToolUse"
    assert type(messages[-1]).__name__ == "ResultMessage"
    log = watch.step_log
    assert [entry.tool_calls for entry in log] == [["Grep"]] * 5 + [[]]
    assert log[3].monitors_fired == ["streak"]
    assert log[1].thought_preview.startswith("Let me search again")
    assert sum(entry.tokens for entry in log) > 0
    assert log[2].model_id == "claude-sonnet-4-5"
    assert watch.session.is_finished


async def test_enforced_budget_ends_the_agent():
    claude = ScriptedClaude(30)
    rb = ReasonBlocks(suite="both", token_budget=500, enforce_token_budget=True)
    watch = rb.claude_hooks()
    await run(watch, claude)
    stopped = [answer for _, answer in claude.hook_replies if answer.get("continue") is False]
    assert stopped[0]["stopReason"].endswith("tokens of this run are used")
    assert len(claude.hook_replies) < 12


async def test_second_prompt_starts_another_run():
    watch = ReasonBlocks(suite="both").claude_hooks(run_id="chat")
    await run(watch, ScriptedClaude(4))
    assert (watch.session.run_id, watch.session.is_finished) == ("chat", True)
    claude = ScriptedClaude(4)
    await run(watch, claude)
    assert watch.session.run_id == "chat-2"
    assert 3 in contexts(claude)


async def test_failed_tool_is_an_error_and_broken_event_is_ignored(serve):
    from conftest import healthy

    server = serve(healthy)
    watch = ReasonBlocks(suite="both", base_url=server.url).claude_hooks(run_id="r")
    await watch.on_event({"hook_event_name": "UserPromptSubmit", "prompt": "x"}, None, None)
    failed = {"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_input": {}, "error": "exit 1"}
    assert await watch.on_event(failed, "t", None) == {}
    assert await watch.on_event({"hook_event_name": "PostToolUse"}, "t", None) == {}
    watch.session.finish()
    watch.session.close()
    rows = server.bodies("/monitor/runs/r/steps")
    assert [row["is_error"] for row in rows if row.get("action") == "Bash"] == [True]


async def test_telemetry_has_one_row_per_step(serve):
    from conftest import healthy

    server = serve(healthy)
    rb = ReasonBlocks(suite="both", base_url=server.url)
    async with rb.claude_hooks(run_id="r", model="claude-sonnet-4-5") as watch:
        await run(watch, ScriptedClaude(2))
    assert server.bodies("/monitor/runs")[0]["framework"] == "claude-agent-sdk"
    rows = server.bodies("/monitor/runs/r/steps")
    assert [row.get("action") for row in rows] == [None, "Grep", "Grep", None]
    assert rows[1]["action_input"] == '{"pattern": "session"}'
    assert rows[1]["observation"] == "No matches found"
    assert rows[3]["thought"] == "All done, it is fixed."
    assert server.bodies("/monitor/runs/r/finish") == [{"outcome": "completed"}]
