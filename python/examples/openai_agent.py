"""The OpenAI Agents SDK: wrap the model, keep the agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from reasonblocks import ReasonBlocks

set_tracing_disabled(True)


@function_tool
def search(query: str) -> str:
    """Search the code."""
    return f"nothing found for {query}"


class Scripted(Model):
    """Searches five times, then gives up; any model of the SDK may stand in its place."""

    model = "gpt-5"
    calls = 0

    async def get_response(self, *_args: Any, **_kwargs: Any) -> ModelResponse:
        """Answer one call."""
        at, self.calls = self.calls, self.calls + 1
        output: list[Any] = []
        if at < 5:
            arguments = json.dumps({"query": "session expiry"})
            output = [
                ResponseFunctionToolCall(type="function_call", call_id=f"c{at}", name="search", arguments=arguments)
            ]
        else:
            text = ResponseOutputText(type="output_text", text="It is not set anywhere.", annotations=[])
            output = [
                ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
            ]
        return ModelResponse(output=output, usage=Usage(total_tokens=100), response_id=None)

    def stream_response(self, *_args: Any, **_kwargs: Any) -> AsyncIterator[Any]:
        """Not part of this script."""
        raise NotImplementedError


async def main() -> None:
    """Run the agent."""
    async with ReasonBlocks().openai_model(Scripted(), task="Find where the session expiry is set.") as model:
        agent = Agent(name="fixer", instructions="You fix bugs.", model=model, tools=[search])
        result = await Runner.run(agent, "Where is the session expiry set?")
    print(result.final_output)
    for entry in model.step_log:
        print(entry.step, entry.fsm_state, entry.monitors_fired, *entry.intervention_texts)


asyncio.run(main())
