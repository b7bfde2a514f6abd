"""Configuration object with feature switches, and the middleware list it results in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reasonblocks.client import ReasonBlocks
from reasonblocks.server import Server
from reasonblocks.types import DEFAULT_PLACEMENT, Placement

if TYPE_CHECKING:
    from langchain.agents.middleware.types import AgentMiddleware

Signals = Callable[[Sequence[Mapping[str, Any]]], Mapping[str, float]]


@dataclass
class ReasonBlocksConfig:
    """Feature switches and their settings."""

    enable_e1: bool = True
    """Look up patterns for similar situations."""
    enable_e2: bool = True
    """Look up patterns for the detected failure type."""
    enable_e3: bool = False
    """Insert the standing rules into the first call."""
    enable_monitor_steering: bool = True
    """Monitor the steps and insert advice."""
    enable_token_saving: bool = True
    """Truncate old tool output, and ask a repetitive run for its answer."""

    e1_top_k: int = 1
    e2_top_k: int = 2
    e3_max_patterns: int = 32

    ts_compress_threshold_chars: int = 1800
    ts_head_keep_chars: int = 900
    ts_tail_keep_chars: int = 700
    ts_keep_recent_tool_messages: int = 2
    ts_enable_compression: bool = True
    ts_enable_early_exit: bool = True
    ts_early_exit_min_call_index: int = 40
    ts_signals_fn: Signals | None = None
    """Source of the early-exit signals; the heuristic suite by default."""

    monitor_task_profile: str = "coding"
    """Weight profile: `coding`, `pr_review`, `qa`, or a profile of the server."""
    monitor_weights: dict[str, float] | None = None
    """Weights that override those of the profile."""
    suite: str = "semantic"
    """Monitor suite that fires and advises: `semantic`, `heuristic` or `both`."""
    placement: Placement = DEFAULT_PLACEMENT
    """Position of guidance: in the system prompt, or after the last message."""

    def summary(self) -> dict[str, bool]:
        """Return the feature switches."""
        return {
            "e1": self.enable_e1,
            "e2": self.enable_e2,
            "e3": self.enable_e3,
            "monitor_steering": self.enable_monitor_steering,
            "token_saving": self.enable_token_saving,
        }


def build_middleware(
    config: ReasonBlocksConfig,
    api: ReasonBlocks | Server | None = None,
    *,
    fsm_thresholds: Mapping[str, float] | None = None,
    token_budget: int | None = None,
    model_routing: Mapping[str, str] | None = None,
    run_id: str = "",
    run_metadata: Mapping[str, Any] | None = None,
) -> list[AgentMiddleware[Any, Any, Any]]:
    """Create the list for `create_agent(middleware=...)`. Without `api` everything runs in this process."""
    middleware: list[AgentMiddleware[Any, Any, Any]] = []
    tiers = {"e1": config.enable_e1, "e2": config.enable_e2, "e3": config.enable_e3}
    if config.enable_monitor_steering or any(tiers.values()):
        rb = ReasonBlocks(
            server=api.server if isinstance(api, ReasonBlocks) else api,
            task_profile=config.monitor_task_profile,
            monitor_weights=config.monitor_weights,
            suite=config.suite if config.enable_monitor_steering else "none",
            tiers=[tier for tier, is_enabled in tiers.items() if is_enabled],
            gate={"e1_top_k": config.e1_top_k, "e2_top_k": config.e2_top_k, "e3_top_k": config.e3_max_patterns},
            fsm_thresholds=fsm_thresholds,
            token_budget=token_budget,
            model_routing=model_routing,
            placement=config.placement,
        )
        metadata = dict(run_metadata or {})
        names = {"agent_name", "task", "framework", "model", "codebase_id", "org_id", "project_id"}
        fields: Any = {name: metadata.pop(name) for name in names & metadata.keys()}
        middleware.append(rb.middleware(run_id=run_id or None, metadata=metadata, **fields))
    if config.enable_token_saving:
        from reasonblocks.token_saving import TokenSavingMiddleware

        middleware.append(
            TokenSavingMiddleware(
                compress_threshold_chars=config.ts_compress_threshold_chars,
                head_keep_chars=config.ts_head_keep_chars,
                tail_keep_chars=config.ts_tail_keep_chars,
                keep_recent_tool_messages=config.ts_keep_recent_tool_messages,
                enable_compression=config.ts_enable_compression,
                enable_early_exit=config.ts_enable_early_exit,
                early_exit_min_call_index=config.ts_early_exit_min_call_index,
                signals_fn=config.ts_signals_fn,
            )
        )
    return middleware
