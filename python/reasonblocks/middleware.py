"""The LangChain middleware: every model call of an agent is watched and, where it helps, steered.

All of it happens in `wrap_model_call`, which sees the same messages as `before_model` would, after every other
middleware had its say, and costs no further node of the graph. `before_agent` and `after_agent` mark the ends of a run,
so that one middleware may serve any number of runs, also at the same time.
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

from reasonblocks._engine import Follower, Step, StepLogEntry, answer_of
from reasonblocks.steering import MARK, SteeringSession, StepDecision

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

logger = logging.getLogger("reasonblocks")

RUNS_MAX = 256
"""Runs that were begun and never ended, because their model raised, are forgotten beyond this many."""

_CLAUDE = ("claude", "anthropic", "sonnet", "opus", "haiku")


class WatchedState(AgentState[Any]):
    """The state of an agent, and which run of ours it belongs to."""

    reasonblocks_run: NotRequired[Annotated[str, PrivateStateAttr]]


class ReasonBlocksMiddleware(AgentMiddleware[WatchedState, Any, Any]):
    """Watches and steers the runs of one agent. `ReasonBlocks.middleware()` makes one."""

    state_schema = WatchedState

    def __init__(
        self,
        make_session: Callable[[str, str], SteeringSession],
        *,
        run_id: str | None = None,
        placement: Literal["system", "tail"] = "system",
        model_factory: Callable[[str], Any] | None = None,
        arm: Literal["on", "off"] = "on",
    ) -> None:
        super().__init__()
        self.arm = arm
        """`off` where an experiment only watches."""
        self._make_session = make_session
        self._run_id = run_id or str(uuid.uuid4())
        self._placement = placement
        self._models = _Models(model_factory)
        self._runs: OrderedDict[str, _WatchedRun] = OrderedDict()
        self._begun = 0

    # What one may look at.

    @property
    def session(self) -> SteeringSession:
        """The newest run."""
        if not self._runs:
            raise RuntimeError("no run has begun yet; a run begins when the agent is invoked")
        return next(reversed(self._runs.values())).session

    @property
    def step_log(self) -> list[StepLogEntry]:
        """One entry for every completed model call of the newest run."""
        return self.session.step_log if self._runs else []

    @property
    def run_id(self) -> str:
        """The id of the newest run, or of the first one if none has begun."""
        return self.session.run_id if self._runs else self._run_id

    def mark_failure(self, *, reason: str = "failure") -> None:
        """Say that the newest run failed."""
        self.session.mark_failure(reason=reason)

    def flush_session(self, *, outcome_status: str = "success") -> None:
        """End the newest run and wait until the server knows."""
        self.session.finish(outcome_status=outcome_status)
        self.close()

    def close(self, timeout: float = 5.0) -> None:
        """Wait until the server was told everything."""
        if self._runs:
            self.session.close(timeout=timeout)

    def __enter__(self) -> ReasonBlocksMiddleware:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        outcome = "success" if kind is None else f"failure: {kind.__name__}"
        for run in list(self._runs.values()):
            if not run.session.is_finished:
                run.session.finish(outcome_status=outcome)
        self.close()

    async def __aenter__(self) -> ReasonBlocksMiddleware:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    # The hooks.

    def before_agent(self, state: WatchedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Begin a run."""
        try:
            key = uuid.uuid4().hex
            self._begin(key, state.get("messages", []))
        except Exception:
            logger.exception("the run could not be begun; the agent goes on unwatched")
            return None
        return {"reasonblocks_run": key}

    def after_agent(self, state: WatchedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """End the run."""
        run = self._runs.get(state.get("reasonblocks_run", ""))
        if run is not None:
            run.session.finish()
        return None

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | AIMessage:
        """Steer one call. The model is called once, and what it raises passes through."""
        run = self._run_of(request)
        if run is None:
            return handler(request)
        steps, model_id = run.look(request)
        decision = run.session.begin(steps, model_id=model_id)
        if decision.stop:
            return _stopped(decision.stop)
        is_due = decision.fragment or decision.model_override or run.kept or run.is_claude
        steered = run.steered(request, decision) if is_due else request
        begun = time.perf_counter()
        response = handler(steered)
        run.took_place(decision, response, steered, begun)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | AIMessage:
        """Do the same in an event loop."""
        run = self._run_of(request)
        if run is None:
            return await handler(request)
        steps, model_id = run.look(request)
        decision = await run.session.abegin(steps, model_id=model_id)
        if decision.stop:
            return _stopped(decision.stop)
        is_due = decision.fragment or decision.model_override or run.kept or run.is_claude
        steered = run.steered(request, decision) if is_due else request
        begun = time.perf_counter()
        response = await handler(steered)
        run.took_place(decision, response, steered, begun)
        return response

    # Runs.

    def _begin(self, key: str, messages: list[Any]) -> _WatchedRun:
        self._begun += 1
        run_id = self._run_id if self._begun == 1 else f"{self._run_id}-{self._begun}"
        asked = next((str(m.text) for m in reversed(messages) if isinstance(m, HumanMessage)), "")
        run = _WatchedRun(self._make_session(run_id, asked), Follower(), self._placement, self._models)
        run.session.start()
        for old, other in list(self._runs.items()):
            if other.session.is_finished or len(self._runs) >= RUNS_MAX:
                self._runs.pop(old, None)
        self._runs[key] = run
        return run

    def _run_of(self, request: ModelRequest[Any]) -> _WatchedRun | None:
        """The run that the request belongs to: begun here, if it was begun in another process or not at all."""
        try:
            state: Any = request.state or {}
            key = state.get("reasonblocks_run", "")
            return self._runs.get(key) or self._begin(key, request.messages)
        except Exception:
            logger.exception("the run could not be begun; this call is not watched")
            return None


class _WatchedRun:
    """One run: its session, where we are in its messages, and what was put into them."""

    def __init__(
        self, session: SteeringSession, follower: Follower, placement: Literal["system", "tail"], models: _Models
    ) -> None:
        self.session = session
        self._follower = follower
        self._placement = placement
        self._models = models
        self.kept: dict[str, list[HumanMessage]] = {}
        self._model: Any = None
        self._model_id = ""
        self.is_claude = False

    def look(self, request: ModelRequest[Any]) -> tuple[list[Step], str]:
        """Give what happened since the last call, and which model is about to be called."""
        try:
            if request.model is not self._model:  # an agent mostly has one
                self._model = request.model
                self._model_id = model_id_of(request.model)
                self.is_claude = _is_claude(self._model_id)
            return self._follower.new_steps(request.messages), self._model_id
        except Exception:
            logger.exception("the messages could not be read; this step is not watched")
            return [], ""

    def steered(self, request: ModelRequest[Any], decision: StepDecision) -> ModelRequest[Any]:
        """Give the request with model and guidance as decided; as it came, if anything goes wrong."""
        if not self.session.is_steered:
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
                is_claude = self.is_claude if model is None else _is_claude(model_id_of(model))
                system = _with_guidance(request, decision, is_claude)
                if system is not request.system_message:
                    changes["system_message"] = system
            return request.override(**changes) if changes else request
        except Exception:
            logger.exception("the guidance could not be put into the request; it goes out as it came")
            return request

    def took_place(self, decision: StepDecision, response: Any, request: ModelRequest[Any], begun: float) -> None:
        """Record an answered call. Never raises."""
        latency_ms = (time.perf_counter() - begun) * 1e3
        try:
            answer = answer_of(response)
            model_id = self._model_id if request.model is self._model else model_id_of(request.model)
            self.session.end(decision, answer, model_id=model_id, latency_ms=latency_ms)
            if self._placement == "tail" and decision.fragment and self.session.is_steered:
                self._keep(request.messages)
        except Exception:
            logger.exception("the call could not be recorded")

    def _with_tail(self, messages: list[Any], fragment: str | None) -> list[Any]:
        """Guidance stays where it was first put, byte for byte, so that what was cached before it stays cached."""
        if not self.kept and not fragment:
            return messages
        woven: list[Any] = []
        for message in messages:
            woven.append(message)
            woven += self.kept.get(_key(message), [])
        return [*woven, HumanMessage(content=fragment)] if fragment else woven

    def _keep(self, messages: list[Any]) -> None:
        if len(messages) >= 2:
            before = next((m for m in reversed(messages[:-1]) if not _is_ours(m)), None)
            if before is not None:
                self.kept.setdefault(_key(before), []).append(messages[-1])


class _Models:
    """Models that routing names, made once."""

    def __init__(self, factory: Callable[[str], Any] | None) -> None:
        self._factory = factory
        self._made: dict[str, Any] = {}

    def get(self, model_id: str) -> Any | None:
        """Give the model, or nothing if it cannot be made: then the agent keeps its own."""
        if model_id not in self._made:
            try:
                if self._factory is None:
                    from langchain.chat_models import init_chat_model

                    self._made[model_id] = init_chat_model(model_id)
                else:
                    self._made[model_id] = self._factory(model_id)
            except Exception:
                logger.exception("the model %s could not be made; the agent keeps its own", model_id)
                self._made[model_id] = None
        return self._made[model_id]


def model_id_of(model: Any) -> str:
    """Give the name of a chat model."""
    for attribute in ("model_name", "model", "model_id"):
        name = getattr(model, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(model).__name__


def _is_claude(model_id: str) -> bool:
    """Whether the model reads marks for its cache in the system prompt."""
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


def _stopped(why: str) -> AIMessage:
    return AIMessage(content=f"{MARK}\nThis run was ended: {why}.")


def _key(message: BaseMessage) -> str:
    return message.id or str(id(message))


def _is_ours(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage) and isinstance(message.content, str) and message.content.startswith(MARK)
