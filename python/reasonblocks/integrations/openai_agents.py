"""The OpenAI Agents SDK: a model that is steered, hooks that watch, and a memory as tools."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any, Literal

from agents import Agent, FunctionTool, Model, ModelResponse, RunContextWrapper, RunHooks, Tool
from openai.types.responses import ResponseCompletedEvent

from reasonblocks._engine import Step, StepLogEntry
from reasonblocks.codebase_memory import CodebaseMemory
from reasonblocks.integrations.memory_tools import MemoryTool, memory_tools
from reasonblocks.integrations.turns import Call, Turn, steps_of, without_provider
from reasonblocks.steering import SteeringSession, StepDecision, TokenBudgetReached

logger = logging.getLogger("reasonblocks")


class ReasonBlocksModel(Model):
    """A model for `Agent(model=...)`, watched and steered for one run; a context manager."""

    def __init__(
        self,
        default_model: Model,
        *,
        session: SteeringSession,
        model_factory: Callable[[str], Model] | None = None,
        placement: Literal["system", "tail"] = "tail",
    ) -> None:
        self._default = default_model
        self.session = session
        """The watched run; its `step_log` says what happened."""
        self._factory = model_factory
        self._placement = placement
        self._made: dict[str, Model] = {}
        self._turn: Turn | None = None
        self._kept: dict[int, str] = {}

    @property
    def step_log(self) -> list[StepLogEntry]:
        """One entry for every completed model call."""
        return self.session.step_log

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,
        *args: Any,
        **kwargs: Any,
    ) -> ModelResponse:
        """Call the model once; what it raises passes through."""
        decision = await self._begin(input)
        model, instructions, items = self._steered(system_instructions, input, decision, kwargs)
        decision.begun = time.perf_counter()
        response = await model.get_response(instructions, items, *args, **kwargs)
        self._took_place(decision, model, input, response.output, response.usage)
        return response

    async def stream_response(
        self,
        system_instructions: str | None,
        input: Any,
        *args: Any,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """Stream one call."""
        decision = await self._begin(input)
        model, instructions, items = self._steered(system_instructions, input, decision, kwargs)
        decision.begun = time.perf_counter()
        async for event in model.stream_response(instructions, items, *args, **kwargs):
            if isinstance(event, ResponseCompletedEvent):
                self._took_place(decision, model, input, event.response.output, event.response.usage)
            yield event

    async def close(self) -> None:
        """Close the models underneath."""
        for model in {id(m): m for m in (self._default, *self._made.values())}.values():
            await model.close()

    def get_retry_advice(self, request: Any) -> Any:
        """Say what the model underneath says."""
        return self._default.get_retry_advice(request)

    def __enter__(self) -> ReasonBlocksModel:
        self.session.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.session.__exit__(kind, error, trace)

    async def __aenter__(self) -> ReasonBlocksModel:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.__aexit__(kind, error, trace)

    # One call.

    async def _begin(self, given: Any) -> StepDecision:
        steps: list[Step] = []
        try:
            steps = steps_of(self._turn, _results_in(given))
        except Exception:
            logger.exception("the input could not be read; this step is not watched")
        self._turn = None
        decision = await self.session.abegin(steps, model_id=_model_id_of(self._default))
        if decision.stop:
            raise TokenBudgetReached(decision.stop)
        return decision

    def _steered(
        self, instructions: str | None, given: Any, decision: StepDecision, kwargs: dict[str, Any]
    ) -> tuple[Model, str | None, Any]:
        model = self._model_for(decision.model_override)
        if not self.session.is_steered:
            return model, instructions, given
        # Where the provider keeps the conversation, what we add would stay in it for good.
        kept_elsewhere = kwargs.get("previous_response_id") or kwargs.get("conversation_id")
        if self._placement == "tail" and not kept_elsewhere:
            return model, instructions, self._with_tail(given, decision.fragment)
        if decision.fragment:
            return model, decision.compose_system_prompt(instructions), given
        return model, instructions, given

    def _with_tail(self, given: Any, fragment: str | None) -> Any:
        """Guidance stays where it was first put, byte for byte, so that what was cached before it stays cached."""
        if not self._kept and not fragment:
            return given
        items = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
        texts = dict(self._kept)
        if fragment:
            texts[len(items)] = fragment
        woven: list[Any] = []
        for at in range(len(items) + 1):
            if at in texts:
                woven.append({"role": "user", "content": texts[at]})
            if at < len(items):
                woven.append(items[at])
        return woven

    def _took_place(self, decision: StepDecision, model: Model, given: Any, output: Any, usage: Any) -> None:
        try:
            self._turn = turn = turn_of(output)
            if self._placement == "tail" and decision.fragment:
                self._kept[1 if isinstance(given, str) else len(given)] = decision.fragment
            details = getattr(usage, "input_tokens_details", None)
            self.session.end_step(
                decision,
                model_id=_model_id_of(model),
                tokens=getattr(usage, "total_tokens", 0) or 0,
                input_tokens=getattr(usage, "input_tokens", 0) or 0,
                output_tokens=getattr(usage, "output_tokens", 0) or 0,
                cache_read_tokens=getattr(details, "cached_tokens", 0) or 0,
                tool_calls=turn.tools,
                answer=turn.text,
            )
        except Exception:
            logger.exception("the call could not be recorded")

    def _model_for(self, model_id: str | None) -> Model:
        if model_id is None or self._factory is None:
            return self._default
        if model_id not in self._made:
            try:
                self._made[model_id] = self._factory(without_provider(model_id))
            except Exception:
                logger.exception("the model %s could not be made; the agent keeps its own", model_id)
                self._made[model_id] = self._default
        return self._made[model_id]


class ReasonBlocksHooks(RunHooks[Any]):
    """Hooks for `Runner.run(hooks=...)` that watch a run, log it and tell the server; a context manager."""

    def __init__(self, sessions: Iterator[SteeringSession]) -> None:
        self._sessions = sessions
        self.session = next(sessions)
        """The watched run; when it has ended, the next agent that starts begins another."""
        self._turn: Turn | None = None
        self._results: dict[str, tuple[str, bool]] = {}
        self._decision: StepDecision | None = None

    @property
    def step_log(self) -> list[StepLogEntry]:
        """One entry for every completed model call."""
        return self.session.step_log

    def mark_failure(self, *, reason: str = "failure") -> None:
        """Say that the run failed."""
        self.session.mark_failure(reason=reason)

    async def on_agent_start(self, context: Any, agent: Agent[Any]) -> None:
        """Begin a run, unless one is going on."""
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
        """Take the steps since the last call."""
        results = {**_results_in(input_items), **self._results}
        steps, self._turn, self._results = steps_of(self._turn, results), None, {}
        self._decision = await self.session.abegin(steps, model_id=_model_id_of(agent.model))

    async def on_llm_end(
        self,
        context: RunContextWrapper[Any],
        agent: Agent[Any],
        response: ModelResponse,
    ) -> None:
        """Record the call."""
        self._turn = turn = turn_of(response.output)
        if self._decision is not None:
            usage = response.usage
            self.session.end_step(
                self._decision,
                model_id=_model_id_of(agent.model),
                tokens=usage.total_tokens,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                tool_calls=turn.tools,
                answer=turn.text,
            )
            self._decision = None

    async def on_tool_end(
        self,
        context: RunContextWrapper[Any],
        agent: Agent[Any],
        tool: Tool,
        result: object,
    ) -> None:
        """Keep what came back."""
        call_id = getattr(context, "tool_call_id", "")
        if call_id:
            self._results[call_id] = (str(result), False)

    async def on_agent_end(self, context: Any, agent: Agent[Any], output: Any) -> None:
        """End the run."""
        self.session.finish()

    def __enter__(self) -> ReasonBlocksHooks:
        self.session.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.session.__exit__(kind, error, trace)

    async def __aenter__(self) -> ReasonBlocksHooks:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.__aexit__(kind, error, trace)


def make_openai_tools(memory: CodebaseMemory, **options: Any) -> list[FunctionTool]:
    """Make the tools `recall_findings` and `store_finding` for `Agent(tools=...)`."""
    return [_tool(tool) for tool in memory_tools(memory, **options)]


def _tool(tool: MemoryTool) -> FunctionTool:
    async def run(_context: Any, arguments: str) -> str:
        try:
            given = json.loads(arguments or "{}")
        except ValueError:
            return "the arguments are no JSON"
        return tool.call(given if isinstance(given, dict) else {})

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema={**tool.schema, "additionalProperties": False},
        on_invoke_tool=run,
        strict_json_schema=False,
    )


def turn_of(output: Any) -> Turn:
    """Read the output items of a response."""
    texts: list[str] = []
    calls: list[Call] = []
    for item in output:
        kind = _part(item, "type")
        if kind == "message":
            texts += [str(_part(part, "text")) for part in _part(item, "content") or [] if _part(part, "text")]
        elif kind == "function_call":
            calls.append(Call(str(_part(item, "call_id")), str(_part(item, "name")), _part(item, "arguments")))
    return Turn("\n".join(texts), calls)


def _results_in(given: Any) -> dict[str, tuple[str, bool]]:
    results: dict[str, tuple[str, bool]] = {}
    for item in reversed(given if isinstance(given, list) else []):
        kind = _part(item, "type")
        if kind == "function_call_output":
            results[str(_part(item, "call_id"))] = (_text_of(_part(item, "output")), False)
        elif results and kind in {"function_call", "message"}:
            break
    return results


def _text_of(output: Any) -> str:
    if isinstance(output, list):
        return "\n".join(str(_part(part, "text") or "") for part in output)
    return str(output)


def _part(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


def _model_id_of(model: Any) -> str:
    if isinstance(model, str):
        return model
    name = getattr(model, "model", None)
    return name if isinstance(name, str) else ""
