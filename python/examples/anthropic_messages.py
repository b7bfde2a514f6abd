"""Anthropic Messages API with the built-in agent loop."""

from __future__ import annotations

from typing import Any

from anthropic.types import Message

from reasonblocks import CodebaseMemory, ReasonBlocks
from reasonblocks.integrations.claude_tools import make_claude_tools, run_messages_agent_loop


class ScriptedMessages:
    """Queries the memory five times, then gives up. Replace it with `anthropic.Anthropic().messages`."""

    def create(self, **request: Any) -> Message:
        """Return the next response."""
        at = sum(message["role"] == "assistant" for message in request["messages"])
        content: list[dict[str, Any]] = [{"type": "text", "text": f"Attempt {at}: what is known of the session?"}]
        if at < 5:
            query = {"query": "session expiry"}
            content.append({"type": "tool_use", "id": f"tu_{at}", "name": "recall_findings", "input": query})
        return Message.model_validate(
            {
                "id": f"msg_{at}",
                "type": "message",
                "role": "assistant",
                "model": request["model"],
                "content": content,
                "stop_reason": "tool_use" if at < 5 else "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 90, "output_tokens": 10},
            }
        )


class ScriptedClient:
    """Replacement of `anthropic.Anthropic()`."""

    messages = ScriptedMessages()


tools, dispatch = make_claude_tools(CodebaseMemory("org/repo"))
rb = ReasonBlocks()
with rb.claude_messages_session(task="Find where the session expiry is set.") as session:
    outcome = run_messages_agent_loop(
        ScriptedClient(),
        model="claude-haiku-4-5",
        messages=[{"role": "user", "content": "Where is the session expiry set?"}],
        tool_specs=tools,
        dispatch=dispatch,
        system="You fix bugs.",
        session=session,
    )

print(outcome["stop_reason"], "-", outcome["final_text"])
for entry in session.step_log:
    print(entry.step, entry.fsm_state, entry.monitors_fired, *entry.intervention_texts)
