"""
The engine of ReasonBlocks.
"""

from _typeshed import SupportsGetItem
from typing import Final, SupportsFloat, SupportsIndex, final

__all__ = ["DEFAULT_FIRE_THRESHOLD", "DEFAULT_PLACEMENT", "VERSION", "ConversationCursor", "Plan", "PreCall", "Query", "Reading", "Response", "Rules", "Run", "Step", "StepLogEntry", "TextIndex", "Turn", "compress_tool_output", "embed", "heuristic_scores", "monitors", "parse_response", "profile_weights", "render_pattern", "score_step", "similarity"]

DEFAULT_FIRE_THRESHOLD: Final[float]
"""
Default score at or above which a monitor fires.
"""

DEFAULT_PLACEMENT: Final[str]
"""
Default position of guidance in a middleware.
"""

VERSION: Final[str]
"""
Version of the engine and of the package.
"""

@final
class ConversationCursor:
    """
    Read position in a growing list of messages. Returns each turn once.
    """
    def __new__(cls, /) -> ConversationCursor: ...
    @staticmethod
    def all_steps(messages: "object") -> "list[Step]":
        """
        Returns the steps of the whole conversation.
        """
    def new_steps(self, /, messages: "object") -> "list[Step]":
        """
        Returns the steps since the previous call. The first call starts after the last user message: earlier turns
        belong to earlier runs.
        """

@final
class Plan:
    """
    Decision on the next model call.
    """
    @property
    def fired(self, /) -> list[str]:
        """
        Names of the monitors that fired. Not available after `Run.record`.
        """
    @property
    def fragment(self, /) -> str | None:
        """
        Guidance to insert into the request; its first line is `[REASONBLOCKS]`.
        """
    @property
    def route(self, /) -> str | None:
        """
        Model to call instead of the requested one.
        """
    @property
    def state(self, /) -> str:
        """
        State of the run.
        """
    @property
    def stop(self, /) -> str | None:
        """
        Reason for ending the run, if it should end.
        """

@final
class PreCall:
    """
    Assessment of the newest steps, and the lookups to make before the next model call.
    """
    @property
    def call(self, /) -> int:
        """
        Index of the model call, from 0.
        """
    @property
    def composite(self, /) -> float:
        """
        Weighted sum of the scores.
        """
    @property
    def difficulty(self, /) -> float | None:
        """
        Difficulty of the newest thought, from 0 to 1; `None` without a thought.
        """
    @property
    def fired(self, /) -> list[str]:
        """
        Names of the monitors that fired.
        """
    @property
    def queries(self, /) -> list[Query]:
        """
        Pattern lookups to make before `Run.plan`.
        """
    @property
    def readings(self, /) -> list[Reading]:
        """
        Score of each monitor.
        """
    @property
    def signals(self, /) -> list[str]:
        """
        Names of the monitors at their thresholds that are only recorded.
        """
    @property
    def state(self, /) -> str:
        """
        State of the run.
        """

@final
class Query:
    """
    A pattern lookup.
    """
    @property
    def context(self, /) -> str:
        """
        Newest thoughts of the agent; empty for E3.
        """
    @property
    def failure_type(self, /) -> str | None:
        """
        Failure type to match; set for E2 only.
        """
    @property
    def tier(self, /) -> str:
        """
        `e1`, `e2` or `e3`.
        """
    @property
    def top_k(self, /) -> int:
        """
        Maximum number of patterns.
        """

@final
class Reading:
    """
    Score of one monitor.
    """
    def __repr__(self, /) -> str: ...
    @property
    def advice(self, /) -> str | None:
        """
        Advice for the agent, if the monitor fired.
        """
    @property
    def failure_type(self, /) -> str:
        """
        Failure type that the monitor detects.
        """
    @property
    def fired(self, /) -> bool:
        """
        True if the score reached the threshold and the monitor may advise.
        """
    @property
    def monitor(self, /) -> str:
        """
        Name of the monitor.
        """
    @property
    def score(self, /) -> float:
        """
        Score from 0 (healthy) to 1 (worst).
        """
    @property
    def signal(self, /) -> bool:
        """
        True if the score reached the threshold of a monitor that is only recorded.
        """
    @property
    def steps(self, /) -> list[int]:
        """
        Indices of the steps that the score is based on.
        """
    @property
    def suite(self, /) -> str:
        """
        `heuristic` or `semantic`.
        """

@final
class Response:
    """
    A model response, reduced to the fields that a run records.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, tool_calls: SupportsGetItem[int, str] = ..., final_text: str | None = None, tokens: SupportsIndex = 0, input_tokens: SupportsIndex = 0, output_tokens: SupportsIndex = 0, cache_read_tokens: SupportsIndex = 0) -> Response: ...
    def __repr__(self, /) -> str: ...
    @property
    def cache_read_tokens(self, /) -> int:
        """
        Input tokens read from the provider's prompt cache; 0 if unknown.
        """
    @property
    def final_text(self, /) -> str | None:
        """
        Text of a response without tool calls; `None` if the model called a tool.
        """
    @property
    def input_tokens(self, /) -> int:
        """
        Input tokens; 0 if unknown.
        """
    @property
    def output_tokens(self, /) -> int:
        """
        Output tokens; 0 if unknown.
        """
    @property
    def tokens(self, /) -> int:
        """
        Total tokens.
        """
    @property
    def tool_calls(self, /) -> list[str]:
        """
        Names of the tools that the model called.
        """

@final
class Rules:
    """
    Validated engine configuration, shared by any number of runs.
    """
    def __new__(cls, /, *, suite: str = "semantic", task_profile: str = "coding", weights: dict[str, SupportsFloat | SupportsIndex] | None = None, fire_threshold: SupportsFloat | SupportsIndex | None = None, fsm: dict[str, SupportsFloat | SupportsIndex] | None = None, gate: dict[str, SupportsFloat | SupportsIndex] | None = None, routing: dict[str, str] | None = None, token_budget: SupportsIndex | None = None, enforce_token_budget: bool = False, standing_rules: bool = False) -> Rules: ...
    @property
    def notes(self, /) -> list[str]:
        """
        Warnings about settings that were ignored or adjusted.
        """

@final
class Run:
    """
    One monitored run.
    """
    def __new__(cls, /, rules: Rules, task: str | None = None) -> Run: ...
    def before_model(self, /, steps: "list[Step]", verdict: "dict[str, object] | None" = None) -> PreCall:
        """
        First stage: observes the steps since the last model call. `verdict` is a server's evaluation of them and
        replaces the local one.
        """
    @property
    def budget_used(self, /) -> float:
        """
        Used share of the token budget; 0 without a budget.
        """
    def decide(self, /, steps: "list[Step]", model_id: str = "") -> Plan:
        """
        First and second stage in one call, without pattern lookups and without a server.
        """
    def finish(self, /) -> "dict[str, object]":
        """
        Ends the run and returns its totals.
        """
    def plan(self, /, pre_call: PreCall, found: "dict[str, object] | None" = None, model_id: str = "") -> Plan:
        """
        Second stage: decides on the call. `found` holds the results of `PreCall.queries` by tier, `model_id` the model
        about to be called.
        """
    def record(self, /, plan: Plan, response: Response | None = None, timestamp: SupportsFloat | SupportsIndex = 0.0, model_id: str | None = None, latency_ms: SupportsFloat | SupportsIndex = 0.0) -> StepLogEntry:
        """
        Third stage, after the model call: counts the planned guidance as shown.
        """
    def set_first_step_index(self, /, index: SupportsIndex) -> None:
        """
        Sets the index of the first step, which guidance refers to. No effect after the first step.
        """
    @property
    def state(self, /) -> str:
        """
        State of the run: INIT, FAST, NORMAL, SLOW, SKIP or END.
        """
    @property
    def tokens(self, /) -> int:
        """
        Tokens recorded so far.
        """

@final
class Step:
    """
    One step of an agent: a thought, a tool call and its result.

    `action_input` is a string or any JSON-serialisable value.
    """
    def __new__(cls, /, thought: str | None = None, action: str | None = None, action_input: "object" = None, observation: str | None = None, is_error: bool = False, user_input: str | None = None) -> Step: ...
    def __repr__(self, /) -> str: ...
    @property
    def action(self, /) -> str | None:
        """
        Name of the called tool; `None` without a call.
        """
    @property
    def action_input(self, /) -> str:
        """
        Argument of the tool call as text; empty without a call.
        """
    @property
    def is_error(self, /) -> bool:
        """
        True if the tool call failed.
        """
    @property
    def is_structured(self, /) -> bool:
        """
        True if the argument was not a string; `action_input` is then its JSON.
        """
    @property
    def observation(self, /) -> str:
        """
        Result of the tool call.
        """
    @property
    def thought(self, /) -> str:
        """
        Visible text and reasoning of the model.
        """
    @property
    def user_input(self, /) -> str:
        """
        User message that preceded the step.
        """

@final
class StepLogEntry:
    """
    One completed model call: state, scores, injected guidance and token counts.
    """
    def __repr__(self, /) -> str: ...
    @property
    def advised(self, /) -> list[str]:
        """
        Monitors whose advice was injected.
        """
    def as_dict(self, /) -> "dict[str, object]":
        """
        Returns the entry as a dictionary without absent fields.
        """
    @property
    def cache_read_tokens(self, /) -> int:
        """
        Input tokens read from the provider's prompt cache; 0 if unknown.
        """
    @property
    def composite(self, /) -> float:
        """
        Weighted sum of the monitor scores.
        """
    @property
    def difficulty(self, /) -> float | None:
        """
        Difficulty of the last thought, from 0 to 1; `None` without a thought.
        """
    @property
    def failure_type(self, /) -> str | None:
        """
        Failure type of the most serious fired monitor.
        """
    @property
    def fsm_state(self, /) -> str:
        """
        State of the run at the time of the call.
        """
    @property
    def injection_sources(self, /) -> list[str]:
        """
        Source of each injected item: `monitor`, `budget`, `e1`, `e2` or `e3`.
        """
    @property
    def injections(self, /) -> list[str]:
        """
        Short form of each injected item.
        """
    @property
    def input_tokens(self, /) -> int:
        """
        Input tokens; 0 if unknown.
        """
    @property
    def intervention_texts(self, /) -> list[str]:
        """
        Full texts of the injected advice.
        """
    @property
    def latency_ms(self, /) -> float:
        """
        Duration of the call in milliseconds.
        """
    @property
    def model_id(self, /) -> str:
        """
        Model that was called.
        """
    @property
    def monitors_fired(self, /) -> list[str]:
        """
        Monitors that fired on the steps before the call.
        """
    @property
    def output_tokens(self, /) -> int:
        """
        Output tokens; 0 if unknown.
        """
    @property
    def skipped_reason(self, /) -> str | None:
        """
        Reason for skipping pattern lookups.
        """
    @property
    def step(self, /) -> int:
        """
        Index of the model call, from 0.
        """
    @property
    def thought_preview(self, /) -> str:
        """
        First characters of the last thought.
        """
    @property
    def timestamp(self, /) -> float:
        """
        Unix time in seconds.
        """
    @property
    def tokens(self, /) -> int:
        """
        Total tokens of the call.
        """
    @property
    def tool_calls(self, /) -> list[str]:
        """
        Tools that the model called.
        """

@final
class TextIndex:
    """
    Index of texts for similarity search.
    """
    def __len__(self, /) -> int: ...
    def __new__(cls, /) -> TextIndex: ...
    def insert(self, /, id: SupportsIndex, text: str) -> None:
        """
        Adds a text, or replaces the text with this id.
        """
    def remove(self, /, id: SupportsIndex) -> bool:
        """
        Removes a text; returns false if the id is unknown.
        """
    def search(self, /, query: str, *, top_k: SupportsIndex = 5, score_threshold: SupportsFloat | SupportsIndex = 0.25) -> list[tuple[int, float]]:
        """
        Returns ids and similarities of the nearest texts with at least `score_threshold`, best first.
        """

@final
class Turn:
    """
    A model response whose tool calls wait for their results.

    `calls` holds a tuple `(call_id, tool, argument)` for each tool call.
    """
    def __new__(cls, /, text: str | None = None, calls: "list[tuple[str, str, object]]" = ...) -> Turn: ...
    def __repr__(self, /) -> str: ...
    def steps(self, /, results: "dict[str, tuple[str, bool]] | None" = None, user_input: str | None = None) -> "list[Step]":
        """
        Returns one step per tool call, or one step for a response without calls.

        `results` maps a call id to the text of its result and whether it is an error. The text of the response and
        `user_input` belong to the first step.
        """
    @property
    def text(self, /) -> str:
        """
        Text of the response.
        """
    @property
    def tools(self, /) -> list[str]:
        """
        Names of the called tools.
        """

def compress_tool_output(content: str, *, threshold_chars: SupportsIndex = 1800, head_chars: SupportsIndex = 900, tail_chars: SupportsIndex = 700) -> str:
    """
    Replaces the middle of a text longer than `threshold_chars` with a note, if that makes it shorter.
    """

def embed(text: str) -> list[float]:
    """
    Returns the embedding of a text: a unit vector of 256 numbers, or all zeros for a text without known words.
    """

def heuristic_scores(steps: "object", *, cap: SupportsIndex = 5, budget: SupportsIndex = 20, window: SupportsIndex = 5, min_total: SupportsIndex = 8) -> tuple[float, float, float, float, float, float]:
    """
    Returns the scores of `streak`, `call_count`, `edit_revert`, `test_repeat`, `diversity` and `hedge` after the last
    step.
    """

def monitors() -> list[tuple[str, str, str]]:
    """
    Returns the name, the suite and a one-sentence summary of every monitor.
    """

def parse_response(response: "object") -> Response | None:
    """
    Returns the response in a LangChain `ModelResponse` or message; `None` without a model message.
    """

def profile_weights(task_profile: str) -> list[tuple[str, float]]:
    """
    Returns the monitor weights of a built-in profile: `coding`, `pr_review` or `qa`.
    """

def render_pattern(tier: str, model: str, fields: "dict[str, object]") -> str:
    """
    Renders a pattern for the family of the given model.
    """

def score_step(text: str) -> float:
    """
    Returns the difficulty of a thought, from 0 (easy) to 1 (hard).
    """

def similarity(a: str, b: str) -> float:
    """
    Returns the similarity of two texts, from 0 to 1; 0.8 and above means nearly the same.
    """
