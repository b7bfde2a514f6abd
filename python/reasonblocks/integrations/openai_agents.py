"""OpenAI Agents SDK: a steered model, hooks that monitor, and memory tools."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from agents import Agent, FunctionTool, Model, ModelResponse, RunContextWrapper, RunHooks, Tool
from openai.types.responses import ResponseCompletedEvent

from reasonblocks._engine import Step, Turn
from reasonblocks.codebase_memory import CodebaseMemory
from reasonblocks.integrations.fields import ToolResults, count, get, join_texts, strip_provider
from reasonblocks.integrations.memory_tools import MemoryTool, memory_tools
from reasonblocks.steering import SessionOwner, SteeringSession, StepDecision, TokenBudgetReached
from reasonblocks.types import Placement

logger = logging.getLogger("reasonblocks")


class ReasonBlocksModel(SessionOwner, Model):
    """A model for `Agent(model=...)`, monitored and steered for one run; a context manager."""

    def __init__(
        self,
        default_model: Model,
        *,
        session: SteeringSession,
        model_factory: Callable[[str], Model] | None = None,
        placement: Placement = "tail",
    ) -> None:
        self._default = default_model
        self.session = session
        self._factory = model_factory
        self._placement = placement
        self._models: dict[str, Model] = {}
        self._turn: Turn | None = None
        self._pinned: dict[int, str] = {}

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,
        *args: Any,
        **kwargs: Any,
    ) -> ModelResponse:
        """Make one model call; exceptions of the model propagate."""
        decision = await self._begin(input)
        model, instructions, items = self._apply_decision(system_instructions, input, decision, kwargs)
        decision.started = time.perf_counter()
        response = await model.get_response(instructions, items, *args, **kwargs)
        self._record_response(decision, model, input, response.output, response.usage)
        return response

    async def stream_response(
        self,
        system_instructions: str | None,
        input: Any,
        *args: Any,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """Stream one model call."""
        decision = await self._begin(input)
        model, instructions, items = self._apply_decision(system_instructions, input, decision, kwargs)
        decision.started = time.perf_counter()
        async for event in model.stream_response(instructions, items, *args, **kwargs):
            if isinstance(event, ResponseCompletedEvent):
                self._record_response(decision, model, input, event.response.output, event.response.usage)
            yield event

    async def close(self) -> None:
        """Close the wrapped models."""
        for model in {id(m): m for m in (self._default, *self._models.values())}.values():
            await model.close()

    def get_retry_advice(self, request: Any) -> Any:
        """Return the advice of the wrapped model."""
        return self._default.get_retry_advice(request)

    # One model call.

    async def _begin(self, given: Any) -> StepDecision:
        steps: list[Step] = []
        try:
            steps = self._turn.steps(_tool_results(given)) if self._turn is not None else []
        except Exception:
            logger.exception("failed to read the input; this step is not monitored")
        self._turn = None
        decision = await self.session.abegin(steps, model_id=_model_id_of(self._default))
        if decision.stop:
            raise TokenBudgetReached(decision.stop)
        return decision

    def _apply_decision(
        self, instructions: str | None, given: Any, decision: StepDecision, kwargs: dict[str, Any]
    ) -> tuple[Model, str | None, Any]:
        model = self._model_for(decision.model_override)
        if not self.session.is_steered:
            return model, instructions, given
        # If the provider stores the conversation, an inserted message would stay in it permanently.
        is_stored = kwargs.get("previous_response_id") or kwargs.get("conversation_id")
        if self._placement == "tail" and not is_stored:
            return model, instructions, self._with_tail(given, decision.fragment)
        if decision.fragment:
            return model, decision.compose_system_prompt(instructions), given
        return model, instructions, given

    def _with_tail(self, given: Any, fragment: str | None) -> Any:
        """Insert guidance at its original position in every later request, so that the prompt cache stays valid."""
        if not self._pinned and not fragment:
            return given
        items = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
        texts = dict(self._pinned)
        if fragment:
            texts[len(items)] = fragment
        with_guidance: list[Any] = []
        for at in range(len(items) + 1):
            if at in texts:
                with_guidance.append({"role": "user", "content": texts[at]})
            if at < len(items):
                with_guidance.append(items[at])
        return with_guidance

    def _record_response(self, decision: StepDecision, model: Model, given: Any, output: Any, usage: Any) -> None:
        try:
            self._turn = turn = parse_turn(output)
            if self._placement == "tail" and decision.fragment:
                self._pinned[1 if isinstance(given, str) else len(given)] = decision.fragment
            self.session.end_step(
                decision,
                model_id=_model_id_of(model),
                tool_calls=turn.tools,
                answer=turn.text,
                **_token_counts(usage),
            )
        except Exception:
            logger.exception("failed to record the call")

    def _model_for(self, model_id: str | None) -> Model:
        if model_id is None or self._factory is None:
            return self._default
        if model_id not in self._models:
            try:
                self._models[model_id] = self._factory(strip_provider(model_id))
            except Exception:
                logger.exception("failed to create model %s; the agent keeps its own model", model_id)
                self._models[model_id] = self._default
        return self._models[model_id]


class ReasonBlocksHooks(SessionOwner, RunHooks[Any]):
    """Hooks for `Runner.run(hooks=...)` that monitor runs; a context manager.

    `session` is the current run. An agent that starts after the end of a run starts the next one.
    """

    def __init__(self, sessions: Iterator[SteeringSession]) -> None:
        self._sessions = sessions
        self.session = next(sessions)
        self._turn: Turn | None = None
        self._results: ToolResults = {}
        self._decision: StepDecision | None = None

    async def on_agent_start(self, context: Any, agent: Agent[Any]) -> None:
        """Start a run, unless one is active."""
        if self.session.is_finished:
            self.session = next(self._sessions)
        self.session.start()

    async def on_llm_start(
        self,
        context: RunContextWrapper[Any],
        agent: Agent[Any],
        system_prompt: str | None,
        input_items: list[Any],
    ) -> None:
        """Observe the steps since the last call."""
        results = {**_tool_results(input_items), **self._results}
        steps = self._turn.steps(results) if self._turn is not None else []
        self._turn, self._results = None, {}
        self._decision = await self.session.abegin(steps, model_id=_model_id_of(agent.model))

    async def on_llm_end(
        self,
        context: RunContextWrapper[Any],
        agent: Agent[Any],
        response: ModelResponse,
    ) -> None:
        """Record the call."""
        self._turn = turn = parse_turn(response.output)
        if self._decision is not None:
            self.session.end_step(
                self._decision,
                model_id=_model_id_of(agent.model),
                tool_calls=turn.tools,
                answer=turn.text,
                **_token_counts(response.usage),
            )
            self._decision = None

    async def on_tool_end(
        self,
        context: RunContextWrapper[Any],
        agent: Agent[Any],
        tool: Tool,
        result: object,
    ) -> None:
        """Store the result of a tool."""
        call_id = getattr(context, "tool_call_id", "")
        if call_id:
            self._results[call_id] = (str(result), False)

    async def on_agent_end(self, context: Any, agent: Agent[Any], output: Any) -> None:
        """End the run."""
        self.session.finish()


def make_openai_tools(memory: CodebaseMemory, **options: Any) -> list[FunctionTool]:
    """Create the tools `recall_findings` and `store_finding` for `Agent(tools=...)`."""
    return [_tool(tool) for tool in memory_tools(memory, **options)]


def _tool(tool: MemoryTool) -> FunctionTool:
    async def run(_context: Any, arguments: str) -> str:
        try:
            given = json.loads(arguments or "{}")
        except ValueError:
            return "invalid arguments: not JSON"
        return tool.call(given if isinstance(given, dict) else {})

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema={**tool.schema, "additionalProperties": False},
        on_invoke_tool=run,
        strict_json_schema=False,
    )


def parse_turn(output: Any) -> Turn:
    """Read the output items of a response. Reasoning summaries are part of the thought."""
    texts: list[str] = []
    calls: list[tuple[str, str, Any]] = []
    for item in output:
        kind = get(item, "type")
        if kind == "message":
            texts += [get(part, "text") for part in get(item, "content") or []]
        elif kind == "reasoning":
            texts += [get(part, "text") for name in ("summary", "content") for part in get(item, name) or []]
        elif kind == "function_call":
            calls.append((str(get(item, "call_id")), str(get(item, "name")), get(item, "arguments")))
    return Turn("\n\n".join(text for text in texts if text), calls)


def _tool_results(given: Any) -> ToolResults:
    """Return the tool results since the last response of the model."""
    results: ToolResults = {}
    for item in reversed(given if isinstance(given, list) else []):
        kind = get(item, "type")
        if kind == "function_call_output":
            output = get(item, "output")
            text = join_texts(output) if isinstance(output, list) else str(output)
            results[str(get(item, "call_id"))] = (text, False)
        elif results and kind in {"function_call", "message"}:
            break
    return results


def _token_counts(usage: Any) -> dict[str, int]:
    return {
        "tokens": count(usage, "total_tokens"),
        "input_tokens": count(usage, "input_tokens"),
        "output_tokens": count(usage, "output_tokens"),
        "cache_read_tokens": count(get(usage, "input_tokens_details"), "cached_tokens"),
    }


def _model_id_of(model: Any) -> str:
    if isinstance(model, str):
        return model
    name = getattr(model, "model", None)
    return name if isinstance(name, str) else ""
