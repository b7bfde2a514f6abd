"""`ReasonBlocks`: settings once, then a door for each framework."""

from __future__ import annotations

import itertools
import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from reasonblocks._engine import Rules, Step, score_step
from reasonblocks.experiments import assign_arm, sdk_version
from reasonblocks.lookup import Library, LocalLibrary, ServerLibrary, SomeTiers
from reasonblocks.server import STEPS_MAX, Server
from reasonblocks.settings import checked_key, masked_key, resolved_base_url
from reasonblocks.steering import SteeringSession
from reasonblocks.telemetry import Telemetry

if TYPE_CHECKING:
    from reasonblocks.integrations.anthropic_messages import SteeredAnthropic
    from reasonblocks.integrations.claude_agent import ClaudeAgentHooks
    from reasonblocks.integrations.openai_agents import ReasonBlocksHooks, ReasonBlocksModel
    from reasonblocks.middleware import ReasonBlocksMiddleware

logger = logging.getLogger("reasonblocks")

Placement = Literal["system", "tail"]


class ReasonBlocks:
    """Watches agents and steers them.

    Without `base_url` everything happens in this process: no server, no key, no network. With it, a server judges the
    steps, looks up the patterns, and is told what happened; whenever it does not answer, the engine here takes over.
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
        suite: str = "both",
        fire_threshold: float | None = None,
        gate: Mapping[str, float] | None = None,
        placement: Placement = "system",
        enforce_token_budget: bool = False,
        patterns: Library | Iterable[Mapping[str, Any]] | None = None,
        tiers: Iterable[str] = ("e1", "e2", "e3"),
        server: Server | None = None,
        timeout: float | None = None,
    ) -> None:
        if monitor_names:
            raise ValueError(
                "`monitor_names` chooses nothing here: `suite` chooses the monitors, `monitor_weights` weighs them"
            )
        if placement not in {"system", "tail"}:
            raise ValueError(f"`placement` ({placement!r}) must be 'system' or 'tail'")
        self._api_key = checked_key(api_key)
        self._base_url = server.base_url if server is not None else resolved_base_url(base_url)
        self._task_profile = task_profile
        self._weights = dict(monitor_weights or {})
        self._customer_id = customer_id
        self.placement: Placement = placement
        watching: dict[str, Any] = {
            "suite": suite,
            "task_profile": task_profile,
            "weights": self._weights,
            "fire_threshold": fire_threshold,
            "fsm": dict(fsm_thresholds or {}),
        }
        self.rules = Rules(
            **watching,
            gate=dict(gate or {}),
            routing=dict(model_routing or {}),
            token_budget=token_budget,
            enforce_token_budget=enforce_token_budget,
        )
        """What runs are judged and steered by."""
        self._watch_only = Rules(**watching, gate={"injections_max": 0}, token_budget=token_budget)
        for note in self.rules.notes:
            logger.warning("%s", note)
        if server is None and self._base_url:
            server = Server(self._api_key, self._base_url, timeout=timeout)
        self.server = server
        """The server, if there is one."""
        self._library = self._library_of(patterns, set(tiers)) if e_traces_enabled else None
        self._telemetry = Telemetry(self.server) if self.server is not None else None
        self._is_live = live_streaming_enabled

    def __repr__(self) -> str:
        where = repr(self._base_url) if self._base_url else "in this process"
        return f"ReasonBlocks({where}, api_key={masked_key(self._api_key)})"

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a `ReasonBlocks` holds a key and open connections; make a new one instead of pickling it")

    score_step = staticmethod(score_step)

    # One door a framework.

    def session(
        self,
        *,
        run_id: str | None = None,
        agent_name: str = "",
        task: str = "",
        framework: str = "custom",
        model: str = "",
        codebase_id: str = "",
        org_id: str = "default",
        project_id: str = "default",
        metadata: Mapping[str, Any] | None = None,
        is_steered: bool = True,
    ) -> SteeringSession:
        """Make a session for an agent loop of your own; a context manager."""
        about: dict[str, Any] = {
            "agent_name": agent_name[:256],
            "task": task[:4_000],
            "model": model[:128],
            "framework": framework[:64],
            "codebase_id": codebase_id[:256],
            "org_id": org_id,
            "project_id": project_id,
            "task_profile": self._task_profile,
            "metadata": dict(metadata or {}),
        }
        run_id = run_id or str(uuid.uuid4())
        judge = None
        if self.server is not None and is_steered:
            judge = _ServerJudge(self.server, self._task_profile, self._weights, run_id)
        is_told = self._is_live or "experiment_id" in about["metadata"]
        return SteeringSession(
            self.rules if is_steered else self._watch_only,
            task=task,
            run_id=run_id,
            run_metadata=about,
            library=self._library if is_steered else None,
            judge=judge,
            telemetry=self._telemetry if is_told else None,
            is_steered=is_steered,
        )

    def middleware(
        self,
        *,
        run_id: str | None = None,
        agent_name: str = "",
        task: str = "",
        framework: str = "langchain",
        model: str = "",
        codebase_id: str = "",
        org_id: str = "default",
        project_id: str = "default",
        metadata: Mapping[str, Any] | None = None,
        placement: Placement | None = None,
        model_factory: Callable[[str], Any] | None = None,
        is_steered: bool = True,
    ) -> ReasonBlocksMiddleware:
        """Make a middleware for `langchain.agents.create_agent`; a context manager."""
        from reasonblocks.middleware import ReasonBlocksMiddleware

        about: dict[str, Any] = {"agent_name": agent_name, "framework": framework, "model": model}
        about |= {"codebase_id": codebase_id, "org_id": org_id, "project_id": project_id}
        return ReasonBlocksMiddleware(
            lambda run, asked: self.session(
                run_id=run, task=task or asked, metadata=metadata, is_steered=is_steered, **about
            ),
            run_id=run_id,
            placement=placement or self.placement,
            model_factory=model_factory,
            arm="on" if is_steered else "off",
        )

    def ab_middleware(
        self,
        *,
        experiment_id: str,
        unit_id: str | None = None,
        on_fraction: float = 0.5,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **about: Any,
    ) -> ReasonBlocksMiddleware:
        """Make a middleware for one run of an experiment: steered in the arm `on`, only watched in `off`."""
        run_id = run_id or str(uuid.uuid4())
        unit = unit_id or run_id
        arm = assign_arm(experiment_id, unit, on_fraction=on_fraction)
        tags = {"experiment_id": experiment_id, "arm": arm, "assignment_unit": unit, "rb_version": sdk_version()}
        return self.middleware(run_id=run_id, metadata={**(metadata or {}), **tags}, is_steered=arm == "on", **about)

    def claude_messages_session(self, **about: Any) -> SteeringSession:
        """Make a session for `run_messages_agent_loop`."""
        return self.session(**{"framework": "claude-messages", **about})

    def anthropic(self, client: Any, *, placement: Placement | None = None, **about: Any) -> SteeredAnthropic:
        """Wrap an Anthropic client: every `messages.create` of one agent run is watched and steered."""
        from reasonblocks.integrations.anthropic_messages import SteeredAnthropic

        session = self.session(**{"framework": "claude-messages", **about})
        return SteeredAnthropic(client, session, placement=placement or self.placement)

    def openai_model(
        self,
        default_model: Any,
        *,
        model_factory: Callable[[str], Any] | None = None,
        placement: Placement | None = None,
        **about: Any,
    ) -> ReasonBlocksModel:
        """Wrap a model of the OpenAI Agents SDK: every call is watched and steered."""
        from reasonblocks.integrations.openai_agents import ReasonBlocksModel

        session = self.session(**{"framework": "openai-agents", **about})
        return ReasonBlocksModel(
            default_model, session=session, model_factory=model_factory, placement=placement or "tail"
        )

    def openai_hooks(self, **about: Any) -> ReasonBlocksHooks:
        """Make hooks for `Runner.run`, which watch a run and tell the server, and do not steer it."""
        from reasonblocks.integrations.openai_agents import ReasonBlocksHooks

        return ReasonBlocksHooks(self._sessions({"framework": "openai-agents", **about, "is_steered": False}))

    def claude_hooks(self, **about: Any) -> ClaudeAgentHooks:
        """Make hooks for `ClaudeAgentOptions`, which watch a run and steer it."""
        from reasonblocks.integrations.claude_agent import ClaudeAgentHooks

        return ClaudeAgentHooks(self._sessions({"framework": "claude-agent-sdk", **about}))

    claude_agent_telemetry = claude_hooks
    """The name in the public package, where it could only watch."""

    def close(self, *, timeout: float = 5.0) -> None:
        """Tell the server what is left and close the connections."""
        if self._telemetry is not None:
            self._telemetry.close(timeout)
        if self.server is not None:
            self.server.close()

    def _sessions(self, about: dict[str, Any]) -> Iterator[SteeringSession]:
        """One session after the other, for hooks that see several runs."""
        run_id = about.pop("run_id", None) or str(uuid.uuid4())
        for count in itertools.count(1):
            yield self.session(run_id=run_id if count == 1 else f"{run_id}-{count}", **about)

    def _library_of(self, patterns: Library | Iterable[Mapping[str, Any]] | None, tiers: set[str]) -> Library | None:
        library: Library | None
        if patterns is None:
            library = ServerLibrary(self.server, self._customer_id) if self.server is not None else None
        elif hasattr(patterns, "find"):
            library = cast("Library", patterns)
        else:
            library = LocalLibrary(patterns)
        return SomeTiers(library, tiers) if library is not None and tiers != {"e1", "e2", "e3"} else library


class _ServerJudge:
    """Sends what is new to a server that marks what it knows, and the whole run to any other."""

    def __init__(self, server: Server, task_profile: str, weights: Mapping[str, float], run_id: str) -> None:
        self._server, self._task_profile, self._weights, self._run_id = server, task_profile, weights, run_id
        self._steps: deque[Step] = deque(maxlen=STEPS_MAX)
        self._mark = ""

    def judge(self, new: list[Step], model_id: str) -> dict[str, Any] | None:
        self._steps.extend(new)
        reply = self._asked(new, model_id, self._mark) if self._mark else None
        if reply is None:
            reply = self._asked(list(self._steps), model_id, "")
        mark = (reply or {}).get("mark")
        self._mark = mark if isinstance(mark, str) else ""
        return reply

    def _asked(self, steps: list[Step], model_id: str, after_mark: str) -> dict[str, Any] | None:
        return self._server.evaluate(
            steps,
            model=model_id,
            task_profile=self._task_profile,
            weights=self._weights,
            run_id=self._run_id,
            after_mark=after_mark,
        )
