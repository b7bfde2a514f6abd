"""`ReasonBlocks`: settings, and a factory method for each integration."""

from __future__ import annotations

import itertools
import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from reasonblocks._engine import Rules, Step, score_step
from reasonblocks.experiments import assign_arm, sdk_version
from reasonblocks.lookup import Library, LocalLibrary, ServerLibrary, TierFilter
from reasonblocks.server import MAX_STEPS, Server, evaluation_row
from reasonblocks.settings import checked_key, masked_key, resolved_base_url
from reasonblocks.steering import SteeringSession
from reasonblocks.telemetry import Telemetry
from reasonblocks.types import DEFAULT_PLACEMENT, Placement, RunFields

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from reasonblocks.integrations.anthropic_messages import SteeredAnthropic
    from reasonblocks.integrations.claude_agent import ClaudeAgentHooks
    from reasonblocks.integrations.openai_agents import ReasonBlocksHooks, ReasonBlocksModel
    from reasonblocks.middleware import ReasonBlocksMiddleware

logger = logging.getLogger("reasonblocks")


class ReasonBlocks:
    """Monitors agents and steers them.

    Without `base_url` everything runs in this process: no server, no key, no network. With it, the server evaluates the
    steps, supplies the patterns and stores the runs; while it is unreachable, the engine in this process takes over.
    """

    def __init__(
        self,
        api_key: str = "",
        *,
        base_url: str | None = None,
        token_budget: int | None = None,
        monitor_names: list[str] | None = None,
        fsm_thresholds: Mapping[str, float] | None = None,
        model_routing: Mapping[str, str] | None = None,
        e_traces_enabled: bool = True,
        customer_id: str | None = None,
        live_streaming_enabled: bool = True,
        task_profile: str = "coding",
        monitor_weights: Mapping[str, float] | None = None,
        suite: str = "semantic",
        fire_threshold: float | None = None,
        gate: Mapping[str, float] | None = None,
        placement: Placement | None = None,
        enforce_token_budget: bool = False,
        patterns: Library | Iterable[Mapping[str, Any]] | None = None,
        tiers: Iterable[str] | None = None,
        server: Server | None = None,
        timeout: float | None = None,
    ) -> None:
        if monitor_names:
            raise ValueError("`monitor_names` is not supported: use `suite` to select and `monitor_weights` to weight")
        placement = placement or DEFAULT_PLACEMENT
        if placement not in {"system", "tail"}:
            raise ValueError(f"invalid `placement` ({placement!r}): use 'system' or 'tail'")
        self._api_key = checked_key(api_key)
        self._base_url = server.base_url if server is not None else resolved_base_url(base_url)
        self._task_profile = task_profile
        self._weights = dict(monitor_weights or {})
        self._customer_id = customer_id
        self.placement: Placement = placement
        # Standing rules are inserted only if the user asks for them or brings patterns.
        enabled = set(tiers) if tiers is not None else {"e1", "e2"} if patterns is None else {"e1", "e2", "e3"}
        self._suite = suite
        monitoring: dict[str, Any] = {
            "suite": suite,
            "task_profile": task_profile,
            "weights": self._weights,
            "fire_threshold": fire_threshold,
            "fsm": dict(fsm_thresholds or {}),
        }
        self.rules = Rules(
            **monitoring,
            gate=dict(gate or {}),
            routing=dict(model_routing or {}),
            token_budget=token_budget,
            enforce_token_budget=enforce_token_budget,
            standing_rules="e3" in enabled,
        )
        """Configuration of the engine for steered runs."""
        self._observe_rules = Rules(**monitoring, gate={"injections_max": 0}, token_budget=token_budget)
        for note in self.rules.notes:
            logger.warning("%s", note)
        if server is None and self._base_url:
            server = Server(self._api_key, self._base_url, timeout=timeout)
        self.server = server
        """Client of the server; `None` without a server."""
        self._library = self._make_library(patterns, enabled) if e_traces_enabled else None
        self._telemetry = Telemetry(self.server) if self.server is not None else None
        self._sends_telemetry = live_streaming_enabled

    def __repr__(self) -> str:
        location = repr(self._base_url) if self._base_url else "in-process"
        return f"ReasonBlocks({location}, api_key={masked_key(self._api_key)})"

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a `ReasonBlocks` holds a key and open connections; create a new one instead of pickling it")

    score_step = staticmethod(score_step)

    # Integrations.

    def session(self, **run: Unpack[RunFields]) -> SteeringSession:
        """Create a session for your own agent loop; a context manager.

        `is_steered=False` only monitors the run. The other fields describe it: `run_id`, `agent_name`, `task`,
        `framework`, `model`, `codebase_id`, `org_id`, `project_id` and `metadata`.
        """
        is_steered = run.get("is_steered", True)
        fields: dict[str, Any] = {
            "agent_name": run.get("agent_name", "")[:256],
            "task": run.get("task", "")[:4_000],
            "model": run.get("model", "")[:128],
            "framework": run.get("framework", "custom")[:64],
            "codebase_id": run.get("codebase_id", "")[:256],
            "org_id": run.get("org_id", "default"),
            "project_id": run.get("project_id", "default"),
            "task_profile": self._task_profile,
            "metadata": dict(run.get("metadata") or {}),
        }
        run_id = run.get("run_id") or str(uuid.uuid4())
        evaluator = None
        if self.server is not None and is_steered and self._suite != "none":
            settings = {
                "task_profile": self._task_profile,
                "weights": self._weights,
                "task": fields["task"],
                # The default of the server; other servers do not know the field.
                "suite": self._suite if self._suite in {"heuristic", "both"} else None,
            }
            evaluator = _ServerEvaluator(self.server, run_id, settings)
        sends_telemetry = self._sends_telemetry or "experiment_id" in fields["metadata"]
        return SteeringSession(
            self.rules if is_steered else self._observe_rules,
            task=run.get("task", ""),
            run_id=run_id,
            run_metadata=fields,
            library=self._library if is_steered else None,
            evaluator=evaluator,
            telemetry=self._telemetry if sends_telemetry else None,
            is_steered=is_steered,
        )

    def middleware(
        self,
        *,
        placement: Placement | None = None,
        model_factory: Callable[[str], Any] | None = None,
        **run: Unpack[RunFields],
    ) -> ReasonBlocksMiddleware:
        """Create a middleware for `langchain.agents.create_agent`; a context manager."""
        from reasonblocks.middleware import ReasonBlocksMiddleware

        fields: dict[str, Any] = {"framework": "langchain", **run}
        run_id, task = fields.pop("run_id", None), fields.pop("task", "")
        return ReasonBlocksMiddleware(
            lambda run_id, user_message: self.session(run_id=run_id, task=task or user_message, **fields),
            run_id=run_id,
            placement=placement or self.placement,
            model_factory=model_factory,
            arm="on" if fields.get("is_steered", True) else "off",
        )

    def ab_middleware(
        self,
        *,
        experiment_id: str,
        unit_id: str | None = None,
        on_fraction: float = 0.5,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> ReasonBlocksMiddleware:
        """Create a middleware for one run of an experiment: steered in the arm `on`, only monitored in `off`."""
        run_id = run_id or str(uuid.uuid4())
        unit = unit_id or run_id
        arm = assign_arm(experiment_id, unit, on_fraction=on_fraction)
        tags = {"experiment_id": experiment_id, "arm": arm, "assignment_unit": unit, "rb_version": sdk_version()}
        return self.middleware(run_id=run_id, metadata={**(metadata or {}), **tags}, is_steered=arm == "on", **options)

    def claude_messages_session(self, **run: Unpack[RunFields]) -> SteeringSession:
        """Create a session for `run_messages_agent_loop`."""
        run.setdefault("framework", "claude-messages")
        return self.session(**run)

    def anthropic(
        self, client: Any, *, placement: Placement | None = None, **run: Unpack[RunFields]
    ) -> SteeredAnthropic:
        """Wrap an Anthropic client for one run: every `messages.create` is monitored and steered."""
        from reasonblocks.integrations.anthropic_messages import SteeredAnthropic

        return SteeredAnthropic(client, self.claude_messages_session(**run), placement=placement or self.placement)

    def openai_model(
        self,
        default_model: Any,
        *,
        model_factory: Callable[[str], Any] | None = None,
        placement: Placement | None = None,
        **run: Unpack[RunFields],
    ) -> ReasonBlocksModel:
        """Wrap a model of the OpenAI Agents SDK for one run: every call is monitored and steered."""
        from reasonblocks.integrations.openai_agents import ReasonBlocksModel

        run.setdefault("framework", "openai-agents")
        return ReasonBlocksModel(
            default_model, session=self.session(**run), model_factory=model_factory, placement=placement or "tail"
        )

    def openai_hooks(self, **run: Unpack[RunFields]) -> ReasonBlocksHooks:
        """Create hooks for `Runner.run` that monitor runs without steering them."""
        from reasonblocks.integrations.openai_agents import ReasonBlocksHooks

        run.setdefault("framework", "openai-agents")
        run["is_steered"] = False
        return ReasonBlocksHooks(self._sessions(run))

    def claude_hooks(self, **run: Unpack[RunFields]) -> ClaudeAgentHooks:
        """Create hooks for `ClaudeAgentOptions` that monitor and steer runs."""
        from reasonblocks.integrations.claude_agent import ClaudeAgentHooks

        run.setdefault("framework", "claude-agent-sdk")
        return ClaudeAgentHooks(self._sessions(run))

    claude_agent_telemetry = claude_hooks
    """Name in the public package, where it only monitors."""

    def close(self, *, timeout: float = 5.0) -> None:
        """Send the remaining telemetry and close the connections."""
        if self._telemetry is not None:
            self._telemetry.close(timeout)
        if self.server is not None:
            self.server.close()

    def _sessions(self, run: RunFields) -> Iterator[SteeringSession]:
        """Yield a session for each run that a hook observes."""
        run_id = run.get("run_id") or str(uuid.uuid4())
        for count in itertools.count(1):
            run["run_id"] = run_id if count == 1 else f"{run_id}-{count}"
            yield self.session(**run)

    def _make_library(self, patterns: Library | Iterable[Mapping[str, Any]] | None, tiers: set[str]) -> Library | None:
        library: Library | None
        if patterns is None:
            library = ServerLibrary(self.server, self._customer_id) if self.server is not None else None
        elif hasattr(patterns, "find"):
            library = cast("Library", patterns)
        else:
            library = LocalLibrary(patterns)
        return TierFilter(library, tiers) if library is not None and tiers != {"e1", "e2", "e3"} else library


class _ServerEvaluator:
    """Sends only new steps to a server that returns a mark, and the whole run to any other server."""

    def __init__(self, server: Server, run_id: str, settings: dict[str, Any]) -> None:
        self._server, self._run_id, self._settings = server, run_id, settings
        self._rows: deque[dict[str, Any]] = deque(maxlen=MAX_STEPS)
        self._mark = ""

    def evaluate(
        self, new_steps: list[Step], model_id: str, *, advised: list[str], first_step_index: int
    ) -> dict[str, Any] | None:
        rows = [evaluation_row(step) for step in new_steps]
        if advised and rows:
            rows[0]["advised"] = advised
        self._rows.extend(rows)
        self._settings["first_step_index"] = first_step_index
        reply = self._request(rows, model_id, self._mark) if self._mark else None
        if reply is None:
            reply = self._request(list(self._rows), model_id, "")
        mark = (reply or {}).get("mark")
        self._mark = mark if isinstance(mark, str) else ""
        return reply

    def _request(self, rows: list[dict[str, Any]], model_id: str, after_mark: str) -> dict[str, Any] | None:
        return self._server.evaluate_rows(
            rows, model=model_id, run_id=self._run_id, after_mark=after_mark, **self._settings
        )
