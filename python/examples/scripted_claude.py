"""Scripted transport of the Claude Agent SDK: plays an agent and calls its hooks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from claude_agent_sdk import Transport


class ScriptedClaude(Transport):
    """Calls a tool `count` times, then finishes. `hook_replies` records the replies of the hooks."""

    def __init__(self, count: int, *, thought: str = "Let me search again") -> None:
        self.count = count
        self.thought = thought
        self.hook_replies: list[tuple[str, dict[str, Any]]] = []
        self._out: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._hooks: dict[str, list[str]] = {}
        self._answers: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Do nothing."""

    def is_ready(self) -> bool:
        """Return true."""
        return True

    async def end_input(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """End the stream."""
        await self._out.put(None)

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the messages of the agent."""
        while (message := await self._out.get()) is not None:
            yield message

    async def write(self, data: str) -> None:
        """Handle a message of the SDK: hooks, hook replies and the prompt."""
        message = json.loads(data)
        if message["type"] == "control_request":
            for event, matchers in (message["request"].get("hooks") or {}).items():
                self._hooks[event] = [name for matcher in matchers for name in matcher["hookCallbackIds"]]
            reply = {"subtype": "success", "request_id": message["request_id"], "response": {"commands": []}}
            await self._out.put({"type": "control_response", "response": reply})
        elif message["type"] == "control_response":
            reply = message["response"]
            self._answers[reply["request_id"]].set_result(reply.get("response") or {})
        elif message["type"] == "user":
            self._task = asyncio.create_task(self._play(str(message["message"]["content"])))

    async def _ask(self, event: str, **about: Any) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        for name in self._hooks.get(event, []):
            request_id = f"{event}-{len(self._answers)}"
            self._answers[request_id] = asyncio.get_running_loop().create_future()
            given = {"hook_event_name": event, "session_id": "s", "transcript_path": "", "cwd": "/", **about}
            request: dict[str, Any] = {"subtype": "hook_callback", "callback_id": name, "input": given}
            request["tool_use_id"] = about.get("tool_use_id")
            await self._out.put({"type": "control_request", "request_id": request_id, "request": request})
            answer = await self._answers[request_id]
        self.hook_replies.append((event, answer))
        return answer

    async def _say(self, *content: dict[str, Any]) -> None:
        usage = {"input_tokens": 90, "output_tokens": 10}
        message = {"role": "assistant", "model": "claude-sonnet-4-5", "content": list(content), "usage": usage}
        await self._out.put({"type": "assistant", "message": message, "session_id": "s"})
        await asyncio.sleep(0.01)

    async def _play(self, prompt: str) -> None:
        await self._ask("UserPromptSubmit", prompt=prompt)
        for at in range(self.count):
            use = {"type": "tool_use", "id": f"tu_{at}", "name": "Grep", "input": {"pattern": "session"}}
            await self._say({"type": "text", "text": f"{self.thought} {at}"}, use)
            about = {"tool_name": "Grep", "tool_input": use["input"], "tool_use_id": use["id"]}
            answer = await self._ask("PostToolUse", tool_response="No matches found", **about)
            if answer.get("continue") is False:
                break
        last = "All done, it is fixed."
        await self._say({"type": "text", "text": last})
        for active in (False, True):
            answer = await self._ask("Stop", stop_hook_active=active, last_assistant_message=last)
            if "hookSpecificOutput" not in answer:
                break
            await self._say({"type": "text", "text": "Let me check that first."})
        result = {"type": "result", "subtype": "success", "duration_ms": 1, "duration_api_ms": 1, "is_error": False}
        await self._out.put({**result, "num_turns": self.count + 1, "session_id": "s", "result": last})
        await self._out.put(None)
