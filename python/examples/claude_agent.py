"""Claude Agent SDK with hooks that monitor and steer."""

from __future__ import annotations

import asyncio

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient
from scripted_claude import ScriptedClaude

from reasonblocks import ReasonBlocks


async def main() -> None:
    """Run the agent. Remove `transport=` to run the real one."""
    async with ReasonBlocks().claude_hooks(task="Find where the session expiry is set.") as watch:
        options = ClaudeAgentOptions(hooks=watch.hooks)
        async with ClaudeSDKClient(options, transport=ScriptedClaude(5)) as client:
            await client.query("Where is the session expiry set?")
            async for message in watch.wrap(client.receive_response()):
                print(type(message).__name__)
    for entry in watch.step_log:
        print(entry.step, entry.fsm_state, entry.monitors_fired, *entry.intervention_texts)


asyncio.run(main())
