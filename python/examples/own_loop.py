"""Custom agent loop: `begin_step` before each model call, `end_step` after it."""

from __future__ import annotations

from reasonblocks import ReasonBlocks


def call_model(system_prompt: str) -> tuple[str, str]:
    """Scripted model: repeats the same search until it receives guidance."""
    has_guidance = "[REASONBLOCKS]" in system_prompt
    return ("I read the settings file instead.", "read_file") if has_guidance else ("Let me search again.", "search")


rb = ReasonBlocks()
with rb.session(task="Find where the session expiry is set.") as session:
    thought = action = observation = None
    for _ in range(6):
        decision = session.begin_step(thought=thought, action=action, observation=observation, model_id="claude-sonnet")
        if decision.fragment:
            print(decision.fragment, "\n")
        thought, action = call_model(decision.compose_system_prompt("You fix bugs."))
        observation = "nothing found" if action == "search" else "SESSION_EXPIRY = 3600"
        session.end_step(decision, tokens=100, tool_calls=[action])

for entry in session.step_log:
    print(entry.step, entry.fsm_state, entry.monitors_fired, entry.tool_calls)
