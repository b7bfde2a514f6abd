"""OpenAI Agents SDK with a steered model."""

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
    """Repeats the same search five times, then gives up. Replace it with any model of the SDK."""

    model = "gpt-5"
    calls = 0

    async def get_response(self, *_args: Any, **_kwargs: Any) -> ModelResponse:
        """Return the next response."""
        at, self.calls = self.calls, self.calls + 1
        text = f"Let me search again, attempt {at}." if at < 5 else "It is not set anywhere."
        part = ResponseOutputText(type="output_text", text=text, annotations=[])
        output: list[Any] = [
            ResponseOutputMessage(id=f"m{at}", type="message", role="assistant", status="completed", content=[part])
        ]
        if at < 5:
            arguments = json.dumps({"query": "session expiry"})
            output.append(
                ResponseFunctionToolCall(type="function_call", call_id=f"c{at}", name="search", arguments=arguments)
            )
        return ModelResponse(output=output, usage=Usage(total_tokens=100), response_id=None)

    def stream_response(self, *_args: Any, **_kwargs: Any) -> AsyncIterator[Any]:
        """Not used by this example."""
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
