"""The walk of one step for any agent loop: `begin_step` before the model call, `end_step` after it.

What is decided is decided by the engine. A session does the looking-up between the stages, keeps the log, tells the
server, and sees to it that nothing of this can break the agent.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol

from reasonblocks._engine import Answer, Ask, Plan, Rules, Run, Step, StepLogEntry
from reasonblocks.lookup import Library
from reasonblocks.telemetry import Telemetry
from reasonblocks.types import STATES, FSMState

logger = logging.getLogger("reasonblocks")

MARK = "[REASONBLOCKS]"


class TokenBudgetReached(RuntimeError):  # noqa: N818 -- a limit that was asked for, not an error
    """The run should end: an enforced token budget is used up."""


class Judge(Protocol):
    """Says what the monitors of another engine think of a run."""

    def judge(self, new: list[Step], model_id: str) -> dict[str, Any] | None:
        """Give a verdict on the run so far, of which these steps are new, or nothing."""


@dataclass(slots=True)
class StepDecision:
    """What to do with the next model call."""

    state: FSMState
    """How the run is going."""
    fragment: str | None = None
    """The text to put into the request, beginning with `[REASONBLOCKS]`."""
    model_override: str | None = None
    """The model that should take the call, where routing names one."""
    stop: str | None = None
    """Why the run should end now, if it should."""
    plan: Plan | None = field(default=None, repr=False)
    entry: StepLogEntry | None = None
    """The entry of the log, once `end_step` was called."""
    begun: float = field(default_factory=time.perf_counter, repr=False)

    @property
    def rendered_injection_text(self) -> str:
        """The guidance without its mark; empty when there is none."""
        return (self.fragment or "").removeprefix(MARK).lstrip("\n")

    def compose_system_prompt(self, base_system: str | None) -> str:
        """Give a plain system prompt with the guidance at its end."""
        parts = [(base_system or "").rstrip(), self.fragment or ""]
        return "\n\n".join(part for part in parts if part)

    def system_blocks(self, base_system: str | list[dict[str, Any]] | None) -> list[dict[str, Any]]:
        """Give a system prompt as Anthropic takes it: the base marked for the cache, the guidance after it unmarked."""
        if isinstance(base_system, list):
            blocks = [dict(block) for block in base_system]
            if blocks and not any("cache_control" in block for block in blocks):
                blocks[-1]["cache_control"] = {"type": "ephemeral"}
        elif base_system:
            blocks = [{"type": "text", "text": base_system, "cache_control": {"type": "ephemeral"}}]
        else:
            blocks = []
        return [*blocks, {"type": "text", "text": self.fragment}] if self.fragment else blocks


class SteeringSession:
    """One watched run of an agent. One session a run; for runs at the same time, make one each."""

    def __init__(
        self,
        rules: Rules | None = None,
        *,
        task: str = "",
        run_id: str | None = None,
        run_metadata: dict[str, Any] | None = None,
        library: Library | None = None,
        judge: Judge | None = None,
        telemetry: Telemetry | None = None,
        is_steered: bool = True,
    ) -> None:
        self.run_id = run_id or str(uuid.uuid4())
        self.step_log: list[StepLogEntry] = []
        self.is_steered = is_steered
        """Whether requests may be touched; in the `off` arm of an experiment they are not."""
        self.failures = 0
        """How often steering failed; the agent went on unsteered."""
        self._run = Run(rules or Rules(), task)
        self._metadata = run_metadata or {}
        self._library = library
        self._judge = judge
        self._telemetry = telemetry
        self._untold: list[Step] = []
        self._rows = 0
        self._answer: Answer | None = None
        self._started = False
        self._outcome: str | None = None
        self._finished: str | None = None

    # The life of a run.

    def start(self) -> None:
        """Tell the server that the run begins; once."""
        if self._started:
            return
        self._started = True
        if self._telemetry is not None:
            self._telemetry.run_started(self.run_id, self._metadata)

    def finish(self, *, outcome_status: str = "success") -> None:
        """End the run. A second call counts only if it says something else."""
        outcome = self._outcome or outcome_status
        if self._finished == outcome:
            return
        first, self._finished = self._finished is None, outcome
        try:
            if first and self._started:
                self._tell_rest()
            self._run.finish()
        except Exception:
            self._failed("the end of the run")
        if self._started and self._telemetry is not None:
            self._telemetry.run_finished(self.run_id, outcome)

    def close(self, *, timeout: float = 5.0) -> None:
        """Wait until the server was told everything."""
        if self._telemetry is not None:
            self._telemetry.flush(timeout)

    def mark_failure(self, *, reason: str = "failure") -> None:
        """Say that the run failed, whatever else it looks like."""
        self._outcome = reason
        if self._finished is not None:
            self.finish()

    @property
    def is_finished(self) -> bool:
        """Whether the run is over."""
        return self._finished is not None

    @property
    def state(self) -> FSMState:
        """How the run is going."""
        return FSMState(self._run.state)

    @property
    def tokens(self) -> int:
        """Tokens recorded so far."""
        return self._run.tokens

    def get_budget_used(self) -> float:
        """Give the share of the token budget that is used; 0 without a budget."""
        return self._run.budget_used

    def __enter__(self) -> SteeringSession:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.finish(outcome_status="success" if kind is None else f"failure: {kind.__name__}")
        self.close()

    async def __aenter__(self) -> SteeringSession:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.finish(outcome_status="success" if kind is None else f"failure: {kind.__name__}")
        await asyncio.to_thread(self.close)

    # One step.

    def begin(self, steps: list[Step], *, model_id: str = "") -> StepDecision:
        """Say what to do with the next model call, given what happened since the last one. Never raises."""
        try:
            if not self._started:
                self.start()
            if self._telemetry is not None:
                self._untold += steps
            if self._judge is None and self._library is None:
                plan = self._run.decide(steps, model_id)
            else:
                ask = self._run.before_model(steps, self._verdict(steps, model_id))
                plan = self._run.plan(ask, self._found(ask, model_id), model_id)
            return StepDecision(STATES[plan.state], plan.fragment, plan.route, plan.stop, plan)
        except Exception:
            self._failed("a step")
            return StepDecision(state=FSMState.INIT)

    async def abegin(self, steps: list[Step], *, model_id: str = "") -> StepDecision:
        """Do the same without holding up an event loop while a server answers."""
        waits = self._judge is not None or (self._library is not None and self._library.waits)
        if waits:
            return await asyncio.to_thread(self.begin, steps, model_id=model_id)
        return self.begin(steps, model_id=model_id)

    def begin_step(
        self,
        *,
        thought: str | None = None,
        action: str | None = None,
        action_input: Any = None,
        observation: str | None = None,
        is_error: bool = False,
        user_input: str | None = None,
        model_id: str = "",
    ) -> StepDecision:
        """Take one step, or nothing before the first model call, and say what to do with the next call."""
        return self.begin(
            _one_step(thought, action, action_input, observation, is_error, user_input), model_id=model_id
        )

    async def abegin_step(
        self,
        *,
        thought: str | None = None,
        action: str | None = None,
        action_input: Any = None,
        observation: str | None = None,
        is_error: bool = False,
        user_input: str | None = None,
        model_id: str = "",
    ) -> StepDecision:
        """Do the same in an event loop."""
        steps = _one_step(thought, action, action_input, observation, is_error, user_input)
        return await self.abegin(steps, model_id=model_id)

    def end_step(
        self,
        decision: StepDecision,
        *,
        model_id: str = "",
        tokens: int = 0,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cache_read_tokens: int = 0,
        tool_calls: list[str] | None = None,
        latency_ms: float | None = None,
        answer: str | None = None,
    ) -> StepLogEntry | None:
        """Tell that the model has answered: only now does the guidance count as given. Never raises.

        `answer` is what the model said; where it asked for no tool, that is the last step of the run.
        """
        words = answer if answer and not tool_calls else None
        counts = (tokens, input_tokens, output_tokens, cache_read_tokens)
        try:
            answered = Answer(tool_calls or [], words, *counts)
        except Exception:
            self._failed("a record")
            return None
        return self.end(decision, answered, model_id=model_id, latency_ms=latency_ms)

    def end(
        self, decision: StepDecision, answer: Answer | None, *, model_id: str = "", latency_ms: float | None = None
    ) -> StepLogEntry | None:
        """Do the same for an answer that was read already."""
        if decision.plan is None:
            return None
        if latency_ms is None:
            latency_ms = (time.perf_counter() - decision.begun) * 1e3
        try:
            entry = self._run.record(decision.plan, answer, time.time(), model_id, latency_ms)
        except Exception:
            self._failed("a record")
            return None
        self._answer = answer
        self.step_log.append(entry)
        decision.entry, decision.plan = entry, None
        if self._telemetry is not None:
            self._tell(entry)
        return entry

    # Between the stages.

    def _verdict(self, steps: list[Step], model_id: str) -> dict[str, Any] | None:
        return self._judge.judge(steps, model_id) if self._judge is not None and steps else None

    def _found(self, ask: Ask, model_id: str) -> Any:
        queries = ask.queries if self._library is not None else []
        return self._library.find(queries, model_id) if self._library is not None and queries else None

    def _failed(self, what: str) -> None:
        self.failures += 1
        if self.failures == 1:
            logger.exception("steering failed at %s; the agent goes on unsteered", what)

    # What the server is told: a row a step, and what belongs to the call on the last of them.

    def _tell(self, entry: StepLogEntry) -> None:
        steps, self._untold = self._untold, []
        first = {"thought": entry.thought_preview} if entry.step == 0 else {}
        rows = [_row(step) for step in steps] or [first]
        rows[-1] |= {
            "tokens": entry.tokens,
            "input_tokens": entry.input_tokens,
            "output_tokens": entry.output_tokens,
            "cache_read_tokens": entry.cache_read_tokens,
            "step_model": entry.model_id[:128],
            "injections": entry.injections,
            "injection_sources": entry.injection_sources,
            "intervention_texts": entry.intervention_texts,
            "monitors_fired": entry.monitors_fired,
            "failure_type": entry.failure_type,
            "metadata": _about_call(entry),
        }
        for row in rows:
            self._tell_row(row)

    def _tell_rest(self) -> None:
        """Steps whose call did not come back, and the last word of the agent, which is a step without a call."""
        steps, self._untold = self._untold, []
        if self._telemetry is None:
            return
        words = self._answer.words if self._answer is not None else None
        if steps and steps[-1].thought == words:
            steps.pop()
        for step in steps:
            self._tell_row(_row(step))
        if words:
            step = Step(words)
            ask = self._run.before_model([step])
            self._tell_row(
                _row(step) | {"monitors_fired": ask.fired, "metadata": {"fsm_state": ask.state, "is_answer": True}}
            )

    def _tell_row(self, row: dict[str, Any]) -> None:
        if self._telemetry is not None:
            self._telemetry.step_taken(self.run_id, {"step_index": self._rows} | row)
            self._rows += 1


def _one_step(
    thought: str | None,
    action: str | None,
    action_input: Any,
    observation: str | None,
    is_error: bool,
    user_input: str | None,
) -> list[Step]:
    said = (thought, action, observation, user_input)
    return [Step(thought, action, action_input, observation, is_error, user_input)] if any(said) else []


def _row(step: Step) -> dict[str, Any]:
    return {
        "thought": step.thought[:64_000] or None,
        "action": step.action[:256] if step.action else None,
        "action_input": step.action_input[:64_000] or None,
        "observation": step.observation[:64_000] or None,
        "is_error": step.is_error,
    }


def _about_call(entry: StepLogEntry) -> dict[str, Any]:
    about: dict[str, Any] = {
        "fsm_state": entry.fsm_state,
        "difficulty": entry.difficulty,
        "latency_ms": round(entry.latency_ms, 2),
        "composite": entry.composite,
    }
    if entry.model_id:
        about["model_id"] = entry.model_id
    if entry.skipped_reason:
        about["skipped_reason"] = entry.skipped_reason
    return about
