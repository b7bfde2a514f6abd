"""A scripted LangChain agent that prints the guidance of each model call.

The migration test runs it with the server URL, once with the public `reasonblocks` on the path and once with this one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from conftest import ScriptedChat, looping, search
from langchain.agents import create_agent

from reasonblocks import ReasonBlocks


def guidance_in(message: object) -> str:
    content = message.content
    texts = [content] if isinstance(content, str) else [block["text"] for block in content]
    return "\n".join(text for text in texts if text.startswith("[REASONBLOCKS]"))


url, run_id = sys.argv[1:]
model = ScriptedChat(script=looping(12, text="Let me search for the session expiry once more"))
rb = ReasonBlocks(api_key="rb_test_migration", base_url=url)
mw = rb.middleware(run_id=run_id, agent_name="migration", task="Find where the session expiry is set.")
agent = create_agent(model=model, tools=[search], system_prompt="You fix bugs.", middleware=[mw])
with mw:
    agent.invoke({"messages": [("user", "Where is the session expiry set?")]}, {"recursion_limit": 200})
log = [{"state": e.fsm_state, "fired": e.monitors_fired, "difficulty": e.difficulty} for e in mw.step_log]
texts = ["\n".join(filter(None, map(guidance_in, request))) for request in model.requests]
print(json.dumps({"guidance": texts, "log": log}))
