"""LangChain middleware that monitors and steers every model call of an agent.

The work is done in `wrap_model_call`: it sees the messages after all other middleware and adds no node to the graph.
`before_agent` and `after_agent` mark the start and end of a run, so that one middleware can serve concurrent runs.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
)
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from typing_extensions import NotRequired

from reasonblocks._engine import ConversationCursor, Step, StepLogEntry, parse_response
from reasonblocks.steering import MARK, SteeringSession, StepDecision
from reasonblocks.types import Placement

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

logger = logging.getLogger("reasonblocks")

MAX_RUNS = 256
"""Maximum number of unfinished runs; a run whose model raised stays unfinished."""

_CLAUDE = ("claude", "anthropic", "sonnet", "opus", "haiku")


class MonitoredState(AgentState[Any]):
    """State of an agent with the key of its run."""

    reasonblocks_run: NotRequired[Annotated[str, PrivateStateAttr]]


class ReasonBlocksMiddleware(AgentMiddleware[MonitoredState, Any, Any]):
    """Monitors and steers the runs of one agent. Created by `ReasonBlocks.middleware()`."""

    state_schema = MonitoredState

    def __init__(
        self,
        make_session: Callable[[str, str], SteeringSession],
        *,
        run_id: str | None = None,
        placement: Placement = "system",
        model_factory: Callable[[str], Any] | None = None,
        arm: Literal["on", "off"] = "on",
    ) -> None:
        super().__init__()
        self.arm = arm
        """Arm of the experiment: `off` only monitors."""
        self._make_session = make_session
        self._run_id = run_id or str(uuid.uuid4())
        self._placement = placement
        self._models = _Models(model_factory)
        self._runs: OrderedDict[str, _MonitoredRun] = OrderedDict()
        self._run_count = 0

    # Inspection.

    @property
    def session(self) -> SteeringSession:
        """Session of the newest run."""
        if not self._runs:
            raise RuntimeError("no run has started; invoke the agent first")
        return next(reversed(self._runs.values())).session

    @property
    def step_log(self) -> list[StepLogEntry]:
        """One entry per completed model call of the newest run."""
        return self.session.step_log if self._runs else []

    @property
    def run_id(self) -> str:
        """Id of the newest run; before the first run, its future id."""
        return self.session.run_id if self._runs else self._run_id

    def mark_success(self) -> None:
        """Record that the newest run succeeded."""
        self.session.mark_success()

    def mark_failure(self, *, reason: str = "failure") -> None:
        """Record that the newest run failed."""
        self.session.mark_failure(reason=reason)

    def flush_session(self, *, success: bool | None = None, outcome_status: str | None = None) -> None:
        """End the newest run and wait until its telemetry is sent. Without a verdict the outcome is unknown."""
        self.session.finish(success=success, outcome_status=outcome_status)
        self.close()

    def close(self, timeout: float = 5.0) -> None:
        """Wait until all telemetry is sent."""
        if self._runs:
            self.session.close(timeout=timeout)

    def __enter__(self) -> ReasonBlocksMiddleware:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        # The newest run may have finished before the exception; the exception is its verdict.
        newest = self.session if self._runs else None
        for session in [run.session for run in self._runs.values()]:
            if not session.is_finished or (kind is not None and session is newest):
                session.finish_after(kind)
        self.close()

    async def __aenter__(self) -> ReasonBlocksMiddleware:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    # Hooks.

    def before_agent(self, state: MonitoredState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Start a run."""
        try:
            key = uuid.uuid4().hex
            self._start_run(key, state.get("messages", []))
        except Exception:
            logger.exception("failed to start the run; the agent continues unmonitored")
            return None
        return {"reasonblocks_run": key}

    def after_agent(self, state: MonitoredState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """End the run."""
        run = self._runs.get(state.get("reasonblocks_run", ""))
        if run is not None:
            run.session.finish()
        return None

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | AIMessage:
        """Make one model call. The model is called exactly once, and its exceptions propagate."""
        run = self._run_of(request)
        if run is None:
            return handler(request)
        steps, model_id = run.read_request(request)
        decision = run.session.begin(steps, model_id=model_id)
        if decision.stop:
            return _stop_message(decision.stop)
        steered = run.apply_decision(request, decision)
        started = time.perf_counter()
        response = handler(steered)
        run.record_response(decision, response, steered, started)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | AIMessage:
        """Async variant of `wrap_model_call`."""
        run = self._run_of(request)
        if run is None:
            return await handler(request)
        steps, model_id = run.read_request(request)
        decision = await run.session.abegin(steps, model_id=model_id)
        if decision.stop:
            return _stop_message(decision.stop)
        steered = run.apply_decision(request, decision)
        started = time.perf_counter()
        response = await handler(steered)
        run.record_response(decision, response, steered, started)
        return response

    # Runs.

    def _start_run(self, key: str, messages: list[Any]) -> _MonitoredRun:
        self._run_count += 1
        run_id = self._run_id if self._run_count == 1 else f"{self._run_id}-{self._run_count}"
        user_message = next((str(m.text) for m in reversed(messages) if isinstance(m, HumanMessage)), "")
        run = _MonitoredRun(self._make_session(run_id, user_message), self._placement, self._models)
        run.session.start()
        for old, other in list(self._runs.items()):
            if other.session.is_finished or len(self._runs) >= MAX_RUNS:
                self._runs.pop(old, None)
        self._runs[key] = run
        return run

    def _run_of(self, request: ModelRequest[Any]) -> _MonitoredRun | None:
        """Return the run of a request; starts one if `before_agent` ran in another process or not at all."""
        try:
            state: Any = request.state or {}
            key = state.get("reasonblocks_run", "")
            return self._runs.get(key) or self._start_run(key, request.messages)
        except Exception:
            logger.exception("failed to start the run; this call is not monitored")
            return None


class _MonitoredRun:
    """One run: its session, the read position in its messages, and the guidance inserted into them."""

    def __init__(self, session: SteeringSession, placement: Placement, models: _Models) -> None:
        self.session = session
        self._cursor = ConversationCursor()
        self._placement = placement
        self._models = models
        self._pinned: dict[str, list[HumanMessage]] = {}
        self._model: Any = None
        self._model_id = ""
        self._is_claude = False

    def read_request(self, request: ModelRequest[Any]) -> tuple[list[Step], str]:
        """Return the steps since the last call, and the name of the model about to be called."""
        try:
            if request.model is not self._model:
                self._model = request.model
                self._model_id = model_id_of(request.model)
                self._is_claude = _is_claude(self._model_id)
            return self._cursor.new_steps(request.messages), self._model_id
        except Exception:
            logger.exception("failed to read the messages; this step is not monitored")
            return [], ""

    def apply_decision(self, request: ModelRequest[Any], decision: StepDecision) -> ModelRequest[Any]:
        """Return the request with the decided model and guidance; unchanged on failure."""
        changes_request = decision.fragment or decision.model_override or self._pinned or self._is_claude
        if not changes_request or not self.session.is_steered:
            return request
        try:
            changes: dict[str, Any] = {}
            model = self._models.get(decision.model_override) if decision.model_override else None
            if model is not None:
                changes["model"] = model
            if self._placement == "tail":
                messages = self._with_tail(request.messages, decision.fragment)
                if messages is not request.messages:
                    changes["messages"] = messages
            else:
                is_claude = self._is_claude if model is None else _is_claude(model_id_of(model))
                system = _with_guidance(request, decision, is_claude)
                if system is not request.system_message:
                    changes["system_message"] = system
            return request.override(**changes) if changes else request
        except Exception:
            logger.exception("failed to insert guidance; the request is sent unchanged")
            return request

    def record_response(
        self, decision: StepDecision, response: Any, request: ModelRequest[Any], started: float
    ) -> None:
        """Record a completed call. Never raises."""
        latency_ms = (time.perf_counter() - started) * 1e3
        try:
            parsed = parse_response(response)
            model_id = self._model_id if request.model is self._model else model_id_of(request.model)
            self.session.end(decision, parsed, model_id=model_id, latency_ms=latency_ms)
            if self._placement == "tail" and decision.fragment and self.session.is_steered:
                self._pin(request.messages)
        except Exception:
            logger.exception("failed to record the call")

    def _with_tail(self, messages: list[Any], fragment: str | None) -> list[Any]:
        """Insert guidance at its original position in every later request, so that the prompt cache stays valid."""
        if not self._pinned and not fragment:
            return messages
        with_guidance: list[Any] = []
        for message in messages:
            with_guidance.append(message)
            with_guidance += self._pinned.get(_key(message), [])
        return [*with_guidance, HumanMessage(content=fragment)] if fragment else with_guidance

    def _pin(self, messages: list[Any]) -> None:
        if len(messages) >= 2:
            anchor = next((m for m in reversed(messages[:-1]) if not _is_guidance(m)), None)
            if anchor is not None:
                self._pinned.setdefault(_key(anchor), []).append(messages[-1])


class _Models:
    """Cache of the models that routing selects."""

    def __init__(self, factory: Callable[[str], Any] | None) -> None:
        self._factory = factory
        self._cache: dict[str, Any] = {}

    def get(self, model_id: str) -> Any | None:
        """Return the model, or `None` if it cannot be created; the agent then keeps its own model."""
        if model_id not in self._cache:
            try:
                if self._factory is None:
                    from langchain.chat_models import init_chat_model

                    self._cache[model_id] = init_chat_model(model_id)
                else:
                    self._cache[model_id] = self._factory(model_id)
            except Exception:
                logger.exception("failed to create model %s; the agent keeps its own model", model_id)
                self._cache[model_id] = None
        return self._cache[model_id]


def model_id_of(model: Any) -> str:
    """Return the name of a chat model."""
    for attribute in ("model_name", "model", "model_id"):
        name = getattr(model, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(model).__name__


def _is_claude(model_id: str) -> bool:
    """Return true for models that support cache markers in the system prompt."""
    name = model_id.lower()
    return any(part in name for part in _CLAUDE)


def _with_guidance(request: ModelRequest[Any], decision: StepDecision, is_claude: bool) -> SystemMessage | None:
    base = request.system_message
    content: Any = base.content if base is not None else None
    if is_claude:
        if isinstance(content, str) or content is None:
            blocks = decision.system_blocks(content)
        else:
            parts = [part if isinstance(part, dict) else {"type": "text", "text": part} for part in content]
            blocks = decision.system_blocks(parts)
        return SystemMessage(content=blocks) if blocks else base  # type: ignore[arg-type]
    if not decision.fragment:
        return base
    if isinstance(content, list):
        return SystemMessage(content=[*content, {"type": "text", "text": decision.fragment}])
    return SystemMessage(content=decision.compose_system_prompt(content))


def _stop_message(reason: str) -> AIMessage:
    return AIMessage(content=f"{MARK}\nThis run was ended: {reason}.")


def _key(message: BaseMessage) -> str:
    return message.id or str(id(message))


def _is_guidance(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage) and isinstance(message.content, str) and message.content.startswith(MARK)
