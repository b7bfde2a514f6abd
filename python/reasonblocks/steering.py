"""Steering of any agent loop: `begin_step` before the model call, `end_step` after it.

The engine makes every decision. A session runs the pattern lookups between the stages, keeps the step log, sends
telemetry, and keeps failures of all of this away from the agent.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from reasonblocks._engine import Plan, PreCall, Response, Rules, Run, Step, StepLogEntry
from reasonblocks.lookup import Library
from reasonblocks.server import telemetry_row
from reasonblocks.telemetry import Telemetry
from reasonblocks.types import STATES, FSMState, StepFields

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

logger = logging.getLogger("reasonblocks")

MARK = "[REASONBLOCKS]"

SUCCESS = "success"
FAILURE = "failure"
UNKNOWN = "completed"
"""Outcome of a run that ended without a verdict: neither a success nor a failure."""


class TokenBudgetReached(RuntimeError):  # noqa: N818 -- a limit that the user set, not an error
    """Ends the run: an enforced token budget is used up."""


class RemoteEvaluator(Protocol):
    """Evaluates the steps of a run outside this process."""

    def evaluate(
        self, new_steps: list[Step], model_id: str, *, advised: list[str], first_step_index: int
    ) -> dict[str, Any] | None:
        """Return the evaluation of the run so far, or `None` on failure.

        `advised` are the monitors whose advice the model read before these steps. `first_step_index` is the index of
        the first step of the run.
        """


@dataclass(slots=True)
class StepDecision:
    """Decision on the next model call."""

    state: FSMState
    """State of the run."""
    fragment: str | None = None
    """Guidance to insert into the request; it begins with `[REASONBLOCKS]`."""
    model_override: str | None = None
    """Model to call instead of the requested one, if model routing selects one."""
    stop: str | None = None
    """Reason for ending the run now, if it should end."""
    plan: Plan | None = field(default=None, repr=False)
    entry: StepLogEntry | None = None
    """Step log entry; set by `end_step`."""
    started: float = field(default_factory=time.perf_counter, repr=False)

    @property
    def rendered_injection_text(self) -> str:
        """Guidance without its first line; empty without guidance."""
        return (self.fragment or "").removeprefix(MARK).lstrip("\n")

    def compose_system_prompt(self, base_system: str | None) -> str:
        """Return a system prompt that ends with the guidance."""
        parts = [(base_system or "").rstrip(), self.fragment or ""]
        return "\n\n".join(part for part in parts if part)

    def system_blocks(self, base_system: str | list[dict[str, Any]] | None) -> list[dict[str, Any]]:
        """Return an Anthropic system prompt: the base with a cache marker, then the guidance without one."""
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
    """One monitored run of an agent. Concurrent runs need a session each."""

    def __init__(
        self,
        rules: Rules | None = None,
        *,
        task: str = "",
        run_id: str | None = None,
        run_metadata: dict[str, Any] | None = None,
        library: Library | None = None,
        evaluator: RemoteEvaluator | None = None,
        telemetry: Telemetry | None = None,
        is_steered: bool = True,
    ) -> None:
        self.run_id = run_id or str(uuid.uuid4())
        self.step_log: list[StepLogEntry] = []
        self.is_steered = is_steered
        """False in the `off` arm of an experiment: requests are not changed."""
        self.failures = 0
        """Number of internal errors. The agent continued without guidance on each of them."""
        self.summary: dict[str, Any] | None = None
        """Totals of the finished run: `steps`, `calls`, `tokens`, `injections`, and `fired` steps by monitor."""
        self._run = Run(rules or Rules(), task)
        self._metadata = run_metadata or {}
        self._library = library
        self._evaluator = evaluator
        self._telemetry = telemetry
        self._unsent: list[Step] = []
        self._first_step_index: int | None = None
        self._advised: list[str] = []
        """Monitors whose advice was shown since the evaluator was last called."""
        self._row_count = 0
        self._plan: Plan | None = None
        self._response: Response | None = None
        self._started = False
        self._verdict: str | None = None
        self._outcome: str | None = None

    # Lifecycle.

    def start(self) -> None:
        """Report the start of the run; later calls do nothing."""
        if self._started:
            return
        self._started = True
        if self._telemetry is not None:
            self._telemetry.send_start(self.run_id, self._metadata)

    def finish(self, *, success: bool | None = None, outcome_status: str | None = None) -> None:
        """End the run.

        Pass `success` or `outcome_status` if the result is known. Otherwise the outcome is the verdict of an earlier
        `mark_success` or `mark_failure`, or `completed`, which means unknown. A later call can correct the outcome.
        """
        if outcome_status is None and success is not None:
            outcome_status = SUCCESS if success else FAILURE
        self._verdict = outcome_status or self._verdict
        outcome = self._verdict or UNKNOWN
        if self._outcome == outcome:
            return
        is_first, self._outcome = self._outcome is None, outcome
        if is_first:
            try:
                self._close_run()
            except Exception:
                self._log_failure("the end of the run")
        if self._started and self._telemetry is not None:
            self._telemetry.send_finish(self.run_id, outcome)

    def mark_success(self) -> None:
        """Record that the run succeeded."""
        self._mark(SUCCESS)

    def mark_failure(self, *, reason: str = FAILURE) -> None:
        """Record that the run failed."""
        self._mark(reason)

    def close(self, *, timeout: float = 5.0) -> None:
        """Wait until all telemetry is sent."""
        if self._telemetry is not None:
            self._telemetry.flush(timeout)

    @property
    def is_finished(self) -> bool:
        """True after `finish`."""
        return self._outcome is not None

    @property
    def outcome(self) -> str | None:
        """Outcome of the finished run; `None` while it is running."""
        return self._outcome

    @property
    def state(self) -> FSMState:
        """State of the run."""
        return FSMState(self._run.state)

    @property
    def tokens(self) -> int:
        """Tokens recorded so far."""
        return self._run.tokens

    def get_budget_used(self) -> float:
        """Return the used share of the token budget; 0 without a budget."""
        return self._run.budget_used

    def __enter__(self) -> SteeringSession:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.finish_after(kind)
        self.close()

    async def __aenter__(self) -> SteeringSession:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.finish_after(kind)
        await asyncio.to_thread(self.close)

    def finish_after(self, kind: type[BaseException] | None) -> None:
        """End the run at the end of a `with` block: an exception is a failure, unless one was already recorded."""
        has_failed = self._verdict not in {None, SUCCESS}
        self.finish(outcome_status=None if kind is None or has_failed else f"{FAILURE}: {kind.__name__}")

    def _mark(self, verdict: str) -> None:
        self._verdict = verdict
        if self._outcome is not None:
            self.finish()

    # One step.

    def begin(self, steps: list[Step], *, model_id: str = "") -> StepDecision:
        """Decide on the next model call, given the steps since the last one. Never raises."""
        try:
            if not self._started:
                self.start()
            self._unsent += steps
            if steps and self._first_step_index is None:
                # A call before the first step has the row 0.
                self._first_step_index = 1 if self.step_log else 0
                self._run.set_first_step_index(self._first_step_index)
            if self._evaluator is None and self._library is None:
                plan = self._run.decide(steps, model_id)
            else:
                pre_call = self._run.before_model(steps, self._evaluate(steps, model_id))
                plan = self._run.plan(pre_call, self._look_up(pre_call, model_id), model_id)
            self._plan = plan
            return StepDecision(STATES[plan.state], plan.fragment, plan.route, plan.stop, plan)
        except Exception:
            self._log_failure("a step")
            return StepDecision(state=FSMState.INIT)

    async def abegin(self, steps: list[Step], *, model_id: str = "") -> StepDecision:
        """Async variant of `begin`: server requests do not block the event loop."""
        is_blocking = self._evaluator is not None or (self._library is not None and self._library.is_blocking)
        if is_blocking:
            return await asyncio.to_thread(self.begin, steps, model_id=model_id)
        return self.begin(steps, model_id=model_id)

    def begin_step(self, **step: Unpack[StepFields]) -> StepDecision:
        """Observe one step and decide on the next model call. Before the first call, pass only `model_id` or nothing.

        A step has the optional fields `thought`, `action`, `action_input`, `observation`, `is_error` and `user_input`.
        """
        return self.begin(_single_step(step), model_id=step.get("model_id", ""))

    async def abegin_step(self, **step: Unpack[StepFields]) -> StepDecision:
        """Async variant of `begin_step`."""
        return await self.abegin(_single_step(step), model_id=step.get("model_id", ""))

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
        """Record the model's response: only now does the guidance count as shown. Never raises.

        `answer` is the text of the response; without tool calls it is the final step of the run.
        """
        final_text = answer if answer and not tool_calls else None
        counts = (tokens, input_tokens, output_tokens, cache_read_tokens)
        try:
            response = Response(tool_calls or [], final_text, *counts)
        except Exception:
            self._log_failure("a response")
            return None
        return self.end(decision, response, model_id=model_id, latency_ms=latency_ms)

    def end(
        self, decision: StepDecision, response: Response | None, *, model_id: str = "", latency_ms: float | None = None
    ) -> StepLogEntry | None:
        """Record a parsed response."""
        if decision.plan is None:
            return None
        if latency_ms is None:
            latency_ms = (time.perf_counter() - decision.started) * 1e3
        try:
            entry = self._run.record(decision.plan, response, time.time(), model_id, latency_ms)
        except Exception:
            self._log_failure("a response")
            return None
        self._response = response
        self._plan = None
        self.step_log.append(entry)
        self._advised += entry.advised
        decision.entry, decision.plan = entry, None
        self._send_call(entry)
        return entry

    # Between the stages.

    def _evaluate(self, steps: list[Step], model_id: str) -> dict[str, Any] | None:
        if self._evaluator is None or not steps:
            return None
        advised, self._advised = self._advised, []
        return self._evaluator.evaluate(steps, model_id, advised=advised, first_step_index=self._first_step_index or 0)

    def _look_up(self, pre_call: PreCall, model_id: str) -> Any:
        queries = pre_call.queries if self._library is not None else []
        return self._library.find(queries, model_id) if self._library is not None and queries else None

    def _log_failure(self, what: str) -> None:
        self.failures += 1
        if self.failures == 1:
            logger.exception("steering failed at %s; the agent continues without guidance", what)

    def _close_run(self) -> None:
        """Evaluate the final answer as the closing step, and send the steps that no recorded call has sent."""
        steps, self._unsent = self._unsent, []
        text = self._response.final_text if self._response is not None else None
        closing: Step | None = None
        if text:
            # Hooks that run before the agent stops have observed the final answer already.
            is_observed = bool(steps) and steps[-1].thought == text and self._plan is not None
            closing = steps.pop() if is_observed else Step(text)
        for step in steps:
            self._send_row(telemetry_row(step))
        if closing is not None:
            assessed = self._plan if is_observed and self._plan is not None else self._run.before_model([closing])
            metadata = {"fsm_state": assessed.state, "is_answer": True}
            self._send_row(telemetry_row(closing) | {"monitors_fired": assessed.fired, "metadata": metadata})
        self.summary = self._run.finish()

    # Telemetry: one row per step. The data of a model call belongs to the last row before it.

    def _send_call(self, entry: StepLogEntry) -> None:
        steps, self._unsent = self._unsent, []
        if self._telemetry is None:
            return
        first = {"thought": entry.thought_preview} if entry.step == 0 else {}
        rows = [telemetry_row(step) for step in steps] or [first]
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
            "metadata": _call_metadata(entry),
        }
        for row in rows:
            self._send_row(row)

    def _send_row(self, row: dict[str, Any]) -> None:
        if self._telemetry is not None and self._started:
            self._telemetry.send_step(self.run_id, {"step_index": self._row_count} | row)
            self._row_count += 1


class SessionOwner:
    """Base class of integrations that monitor one run at a time: a context manager over `session`."""

    session: SteeringSession
    """The monitored run."""

    @property
    def step_log(self) -> list[StepLogEntry]:
        """One entry per completed model call."""
        return self.session.step_log

    def mark_success(self) -> None:
        """Record that the run succeeded."""
        self.session.mark_success()

    def mark_failure(self, *, reason: str = FAILURE) -> None:
        """Record that the run failed."""
        self.session.mark_failure(reason=reason)

    def __enter__(self) -> Self:
        self.session.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.session.__exit__(kind, error, trace)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.__aexit__(kind, error, trace)


def _single_step(step: StepFields) -> list[Step]:
    is_empty = not any(step.get(name) for name in ("thought", "action", "observation", "user_input"))
    fields: dict[str, Any] = {name: value for name, value in step.items() if name != "model_id"}
    return [] if is_empty else [Step(**fields)]


def _call_metadata(entry: StepLogEntry) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "fsm_state": entry.fsm_state,
        "difficulty": entry.difficulty,
        "latency_ms": round(entry.latency_ms, 2),
        "composite": entry.composite,
    }
    if entry.model_id:
        metadata["model_id"] = entry.model_id
    if entry.skipped_reason:
        metadata["skipped_reason"] = entry.skipped_reason
    return metadata
