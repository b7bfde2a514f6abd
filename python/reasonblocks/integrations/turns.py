"""The last answer of a model, waiting for the results of the tools it asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reasonblocks._engine import Step


@dataclass
class Call:
    """A tool the model asked for."""

    call_id: str
    name: str
    argument: Any = None


@dataclass
class Turn:
    """What the model said, and what it asked for."""

    text: str = ""
    calls: list[Call] = field(default_factory=list)

    @property
    def tools(self) -> list[str]:
        """The names of the tools."""
        return [call.name for call in self.calls]


Results = Mapping[str, tuple[str, bool]]
"""What came back, by the id of the call, and whether it is an error."""


def steps_of(turn: Turn | None, results: Results, said: str = "") -> list[Step]:
    """Give one step a tool call; what was thought, and what the user said before, stand with the first of them."""
    if turn is None or not (turn.text or turn.calls):
        return []
    if not turn.calls:
        return [Step(turn.text, user_input=said)]
    steps = []
    for at, call in enumerate(turn.calls):
        observation, is_error = results.get(call.call_id, ("", False))
        thought, user_input = (turn.text, said) if at == 0 else (None, None)
        steps.append(Step(thought, call.name, call.argument, observation, is_error, user_input))
    return steps


def without_provider(model_id: str) -> str:
    """Give `claude-x` for `anthropic:claude-x`."""
    return model_id.split(":", 1)[-1]
