"""LangChain agent with the ReasonBlocks middleware."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from reasonblocks import ReasonBlocks


@tool
def search(query: str) -> str:
    """Search the code."""
    return f"nothing found for {query}"


class Scripted(GenericFakeChatModel):
    """A scripted model. Replace it with any chat model."""

    def bind_tools(self, tools: Any, **_kwargs: Any) -> Scripted:
        """Return the model: the script contains the tool calls."""
        return self


def script() -> Iterator[AIMessage]:
    """Repeat the same search five times, then give up."""
    for at in range(5):
        call = {"name": "search", "args": {"query": "session expiry"}, "id": f"call-{at}"}
        yield AIMessage(content=f"Let me search again, attempt {at}.", tool_calls=[call])
    yield AIMessage(content="It is not set anywhere.")


rb = ReasonBlocks(api_key="rb_live_...")
with rb.middleware(agent_name="fixer", task="Find where the session expiry is set.") as mw:
    agent = create_agent(
        model=Scripted(messages=script()), tools=[search], system_prompt="You fix bugs.", middleware=[mw]
    )
    agent.invoke({"messages": [{"role": "user", "content": "Where is the session expiry set?"}]})
    mw.mark_failure(reason="failure: not found")  # without a verdict the outcome is unknown

for entry in mw.step_log:
    print(entry.step, entry.fsm_state, entry.monitors_fired, *entry.intervention_texts)
