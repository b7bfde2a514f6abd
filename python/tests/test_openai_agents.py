"""OpenAI Agents SDK with a scripted model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseUsage,
)
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from reasonblocks import ReasonBlocks

set_tracing_disabled(True)


@function_tool
def search(query: str) -> str:
    """Search the code."""
    return f"nothing found for {query}"


class Scripted(Model):
    """Searches `count` times, then gives up."""

    def __init__(self, count: int, *, words: bool = True, model: str = "gpt-5") -> None:
        self.model = model
        self.count = count
        self.words = words
        self.requests: list[tuple[Any, Any]] = []
        self.fails_at: int | None = None

    def _output(self, given: Any) -> list[Any]:
        at = len(self.requests) - 1
        if self.fails_at == at:
            self.fails_at = None
            raise RuntimeError("overloaded")
        done = at >= self.count
        text = "I could not find it." if done else f"Let me search again {at}"
        output: list[Any] = []
        if self.words or done:
            part = ResponseOutputText(type="output_text", text=text, annotations=[])
            output.append(
                ResponseOutputMessage(id=f"m{at}", type="message", role="assistant", status="completed", content=[part])
            )
        if not done:
            arguments = json.dumps({"query": "session"})
            output.append(
                ResponseFunctionToolCall(type="function_call", call_id=f"c{at}", name="search", arguments=arguments)
            )
        return output

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        self.requests.append((system_instructions, input if isinstance(input, str) else list(input)))
        usage = Usage(requests=1, input_tokens=90, output_tokens=10, total_tokens=100)
        return ModelResponse(output=self._output(input), usage=usage, response_id=None)

    async def stream_response(self, system_instructions: Any, input: Any, *a: Any, **k: Any) -> AsyncIterator[Any]:
        self.requests.append((system_instructions, input if isinstance(input, str) else list(input)))
        usage = ResponseUsage(
            input_tokens=90,
            output_tokens=10,
            total_tokens=100,
            input_tokens_details=InputTokensDetails(cached_tokens=30, cache_write_tokens=0),
            output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
        )
        response = Response(
            id="r", created_at=0, model=self.model, object="response", output=self._output(input), tool_choice="auto",
            tools=[], parallel_tool_calls=False, usage=usage,
        )  # fmt: skip
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=0)


def steered(model: Scripted) -> list[int]:
    return [at for at, asked in enumerate(model.requests) if "[REASONBLOCKS]" in json.dumps(asked, default=str)]


def agent(model: Any) -> Agent[Any]:
    return Agent(name="fixer", instructions="You fix bugs.", model=model, tools=[search])


async def test_agent_accepts_the_model_and_is_steered():
    inner = Scripted(8)
    async with ReasonBlocks(suite="both").openai_model(inner, task="find it") as model:
        result = await Runner.run(agent(model), "Where is it?", max_turns=20)
    assert result.final_output == "I could not find it."
    assert 3 in steered(inner)
    assert "REASONBLOCKS" not in json.dumps(result.to_input_list(), default=str)
    for shorter, longer in zip(inner.requests[3:], inner.requests[4:], strict=False):
        assert longer[1][: len(shorter[1])] == shorter[1]
    assert model.step_log[3].monitors_fired == ["streak"]
    assert (model.step_log[1].tokens, model.step_log[1].model_id) == (100, "gpt-5")


async def test_guidance_in_the_instructions():
    inner = Scripted(4)
    model = ReasonBlocks(suite="both").openai_model(inner, placement="system")
    await Runner.run(agent(model), "Where is it?", max_turns=20)
    assert steered(inner) == [3]
    assert inner.requests[3][0].startswith("You fix bugs.\n\n[REASONBLOCKS]\n")


async def test_streamed_calls_are_steered():
    inner = Scripted(4, words=False)
    model = ReasonBlocks(suite="both").openai_model(inner)
    result = Runner.run_streamed(agent(model), "Where is it?", max_turns=20)
    async for _event in result.stream_events():
        pass
    assert steered(inner) == [3, 4]
    assert len(model.step_log) == 5
    assert model.step_log[1].cache_read_tokens == 30


async def test_model_routing_selects_models_by_state():
    inner, small = Scripted(8), Scripted(0, model="small")
    rb = ReasonBlocks(suite="both", model_routing={"FAST": "openai:small"})
    model = rb.openai_model(inner, model_factory=lambda name: small if name == "small" else inner)
    await Runner.run(agent(model), "Where is it?", max_turns=20)
    assert (len(inner.requests), len(small.requests)) == (6, 1)
    assert model.step_log[-1].model_id == "small"


async def test_model_errors_propagate_without_retry():
    inner = Scripted(4)
    inner.fails_at = 1
    model = ReasonBlocks(suite="both").openai_model(inner)
    with pytest.raises(RuntimeError, match="overloaded"):
        async with model:
            await Runner.run(agent(model), "Where is it?", max_turns=20)
    assert len(inner.requests) == 2
    assert len(model.step_log) == 1


async def test_hooks_record_arguments_and_results():
    inner = Scripted(4)
    hooks = ReasonBlocks(suite="both").openai_hooks(task="find it")
    async with hooks:
        await Runner.run(agent(inner), "Where is it?", hooks=hooks, max_turns=20)
    assert steered(inner) == []
    assert [entry.tool_calls for entry in hooks.step_log] == [["search"]] * 4 + [[]]
    assert "streak" in hooks.step_log[3].monitors_fired
    assert hooks.session.tokens == 500
    assert hooks.session.is_finished


async def test_hooks_serve_several_runs():
    hooks = ReasonBlocks(suite="both").openai_hooks(run_id="r")
    for expected in ("r", "r-2"):
        await Runner.run(agent(Scripted(2)), "Where is it?", hooks=hooks)
        assert (hooks.session.run_id, len(hooks.step_log)) == (expected, 3)


async def test_documented_model_constructor():
    from agents import OpenAIChatCompletionsModel
    from openai import AsyncOpenAI

    inner = OpenAIChatCompletionsModel("gpt-4o", AsyncOpenAI(api_key="x"))
    assert isinstance(ReasonBlocks(suite="both").openai_model(inner), Model)


def test_reasoning_is_part_of_the_thought():
    from openai.types.responses import ResponseReasoningItem
    from openai.types.responses.response_reasoning_item import Summary

    from reasonblocks.integrations.openai_agents import parse_turn

    summary = Summary(type="summary_text", text="Let me search for the setting.")
    call = ResponseFunctionToolCall(type="function_call", call_id="c", name="search", arguments="{}")
    output = [ResponseReasoningItem(id="r", type="reasoning", summary=[summary]), call]
    (step,) = parse_turn(output).steps({"c": ("nothing found", False)})
    assert (step.thought, step.action, step.observation) == (
        "Let me search for the setting.",
        "search",
        "nothing found",
    )
