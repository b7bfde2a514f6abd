"""
The engine of ReasonBlocks.
"""

from _typeshed import SupportsGetItem
from typing import Final, SupportsFloat, SupportsIndex, final

__all__ = ["DEFAULT_FIRE_THRESHOLD", "VERSION", "Answer", "Ask", "Follower", "Plan", "Query", "Reading", "Rules", "Run", "Step", "StepLogEntry", "TextIndex", "answer_of", "compress_tool_output", "embed", "heuristic_scores", "monitors", "profile_weights", "render_pattern", "score_step", "similarity"]

DEFAULT_FIRE_THRESHOLD: Final[float]
"""
A score at or above this fires.
"""

VERSION: Final[str]
"""
The version of the engine and of the package.
"""

@final
class Answer:
    """
    What a model answered.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, /, tool_calls: SupportsGetItem[int, str] = ..., words: str | None = None, tokens: SupportsIndex = 0, input_tokens: SupportsIndex = 0, output_tokens: SupportsIndex = 0, cache_read_tokens: SupportsIndex = 0) -> Answer: ...
    def __repr__(self, /) -> str: ...
    @property
    def cache_read_tokens(self, /) -> int:
        """
        Tokens read from the provider's cache, where known.
        """
    @property
    def input_tokens(self, /) -> int:
        """
        Tokens read, where known.
        """
    @property
    def output_tokens(self, /) -> int:
        """
        Tokens written, where known.
        """
    @property
    def tokens(self, /) -> int:
        """
        Tokens in all.
        """
    @property
    def tool_calls(self, /) -> list[str]:
        """
        The tools it asked for.
        """
    @property
    def words(self, /) -> str | None:
        """
        Its words, where it asked for none.
        """

@final
class Ask:
    """
    What the engine wants before the next model call.
    """
    @property
    def call(self, /) -> int:
        """
        The model call this is for, counted from 0.
        """
    @property
    def composite(self, /) -> float:
        """
        The weighted sum of the scores.
        """
    @property
    def difficulty(self, /) -> float | None:
        """
        How hard the newest thought looked; `None` where a step had none.
        """
    @property
    def fired(self, /) -> list[str]:
        """
        The names of the monitors that fired.
        """
    @property
    def queries(self, /) -> list[Query]:
        """
        What to look up; mostly empty.
        """
    @property
    def readings(self, /) -> list[Reading]:
        """
        What each monitor reads.
        """
    @property
    def state(self, /) -> str:
        """
        The state the run is in.
        """

@final
class Follower:
    """
    Knows how far a conversation was read. Reads each turn once, however long the conversation is.
    """
    def __new__(cls, /) -> Follower: ...
    def new_steps(self, /, messages: "object") -> "list[Step]":
        """
        The steps since the last look. At the first look these are the turns since the user spoke last: earlier ones
        belong to earlier runs.
        """

@final
class Plan:
    """
    What to do with the next model call.
    """
    @property
    def fragment(self, /) -> str | None:
        """
        The text to put into the request, first line `[REASONBLOCKS]`, if any is due.
        """
    @property
    def route(self, /) -> str | None:
        """
        The model that should take the call instead of the one asked for.
        """
    @property
    def state(self, /) -> str:
        """
        The state the run is in.
        """
    @property
    def stop(self, /) -> str | None:
        """
        Why the run should end, if it should.
        """

@final
class Query:
    """
    Something to look up.
    """
    @property
    def context(self, /) -> str:
        """
        What the agent thought last; empty for E3.
        """
    @property
    def failure_type(self, /) -> str | None:
        """
        The kind of failure to look for; only E2 has one.
        """
    @property
    def tier(self, /) -> str:
        """
        `e1`, `e2` or `e3`.
        """
    @property
    def top_k(self, /) -> int:
        """
        At most this many patterns.
        """

@final
class Reading:
    """
    What one monitor reads.
    """
    def __repr__(self, /) -> str: ...
    @property
    def advice(self, /) -> str | None:
        """
        What to tell the agent, if it fired.
        """
    @property
    def failure_type(self, /) -> str:
        """
        The kind of failure it is a sign of.
        """
    @property
    def fired(self, /) -> bool:
        """
        The score reached the threshold.
        """
    @property
    def monitor(self, /) -> str:
        """
        Its name.
        """
    @property
    def score(self, /) -> float:
        """
        From 0 (healthy) to 1 (worst).
        """
    @property
    def steps(self, /) -> list[int]:
        """
        The steps behind it.
        """
    @property
    def suite(self, /) -> str:
        """
        `heuristic` or `semantic`.
        """

@final
class Rules:
    """
    The rules runs are judged by: checked once, shared by any number of runs.
    """
    def __new__(cls, /, *, suite: str = "both", task_profile: str = "coding", weights: dict[str, SupportsFloat | SupportsIndex] | None = None, fire_threshold: SupportsFloat | SupportsIndex | None = None, fsm: dict[str, SupportsFloat | SupportsIndex] | None = None, gate: dict[str, SupportsFloat | SupportsIndex] | None = None, routing: dict[str, str] | None = None, token_budget: SupportsIndex | None = None, enforce_token_budget: bool = False) -> Rules: ...
    @property
    def notes(self, /) -> list[str]:
        """
        What was not taken as it was given, one sentence each.
        """

@final
class Run:
    """
    One watched run.
    """
    def __new__(cls, /, rules: Rules, task: str | None = None) -> Run: ...
    def before_model(self, /, steps: "list[Step]", verdict: "dict[str, object] | None" = None) -> Ask:
        """
        First stage: takes the steps since the last model call, and a server's verdict on them, if there is one.
        """
    @property
    def budget_used(self, /) -> float:
        """
        The share of the token budget that is used; 0 without a budget.
        """
    def decide(self, /, steps: "list[Step]", model_id: str = "") -> Plan:
        """
        Both stages at once, for a host that looks nothing up and asks no server.
        """
    def finish(self, /) -> "dict[str, object]":
        """
        Last stage: the run is over. Gives what it came to, in numbers.
        """
    def plan(self, /, ask: Ask, found: "dict[str, object] | None" = None, model_id: str = "") -> Plan:
        """
        Second stage: takes what was found for `Ask.queries`, tier by tier, and the model about to be called.
        """
    def record(self, /, plan: Plan, answer: Answer | None = None, timestamp: SupportsFloat | SupportsIndex = 0.0, model_id: str | None = None, latency_ms: SupportsFloat | SupportsIndex = 0.0) -> StepLogEntry:
        """
        Third stage, after the model has answered: what was planned has happened and counts.
        """
    @property
    def state(self, /) -> str:
        """
        Where the run is: INIT, FAST, NORMAL, SLOW, SKIP or END.
        """
    @property
    def tokens(self, /) -> int:
        """
        Tokens recorded so far.
        """

@final
class Step:
    """
    One turn of the agent: what it thought, what it did, and what came back.

    `action_input` may be a text or anything else that JSON can hold; the form is kept.
    """
    def __new__(cls, /, thought: str | None = None, action: str | None = None, action_input: "object" = None, observation: str | None = None, is_error: bool = False, user_input: str | None = None) -> Step: ...
    def __repr__(self, /) -> str: ...
    @property
    def action(self, /) -> str | None:
        """
        The tool that was called; `None` when there was no call.
        """
    @property
    def action_input(self, /) -> str:
        """
        The tool's argument as text; empty when there is none.
        """
    @property
    def is_error(self, /) -> bool:
        """
        The host says that the call failed.
        """
    @property
    def observation(self, /) -> str:
        """
        What came back from the tool.
        """
    @property
    def thought(self, /) -> str:
        """
        The model's visible text.
        """
    @property
    def user_input(self, /) -> str:
        """
        What a person said to the agent just before.
        """

@final
class StepLogEntry:
    """
    One completed model call and what led to it.
    """
    def __repr__(self, /) -> str: ...
    def as_dict(self, /) -> "dict[str, object]":
        """
        The entry as a dictionary; what is not there is left out.
        """
    @property
    def cache_read_tokens(self, /) -> int:
        """
        Tokens read from the provider's cache, where known.
        """
    @property
    def composite(self, /) -> float:
        """
        The weighted sum of the monitors' scores.
        """
    @property
    def difficulty(self, /) -> float | None:
        """
        How hard the last thought looked; `None` where there was none.
        """
    @property
    def failure_type(self, /) -> str | None:
        """
        The kind of failure the most serious of them is a sign of.
        """
    @property
    def fsm_state(self, /) -> str:
        """
        The state the call was made in.
        """
    @property
    def injection_sources(self, /) -> list[str]:
        """
        Where each comes from: `monitor`, `budget`, `e1`, `e2` or `e3`.
        """
    @property
    def injections(self, /) -> list[str]:
        """
        A short form of each injected piece of guidance.
        """
    @property
    def input_tokens(self, /) -> int:
        """
        Tokens read, where known.
        """
    @property
    def intervention_texts(self, /) -> list[str]:
        """
        The full advice texts that were shown.
        """
    @property
    def latency_ms(self, /) -> float:
        """
        How long the call took.
        """
    @property
    def model_id(self, /) -> str:
        """
        The model that took the call.
        """
    @property
    def monitors_fired(self, /) -> list[str]:
        """
        The monitors that fired on the steps before the call.
        """
    @property
    def output_tokens(self, /) -> int:
        """
        Tokens written, where known.
        """
    @property
    def skipped_reason(self, /) -> str | None:
        """
        Why look-ups were left out, if they were.
        """
    @property
    def step(self, /) -> int:
        """
        The model call, counted from 0.
        """
    @property
    def thought_preview(self, /) -> str:
        """
        The beginning of the last thought.
        """
    @property
    def timestamp(self, /) -> float:
        """
        When, in seconds since 1970.
        """
    @property
    def tokens(self, /) -> int:
        """
        Everything the call is counted with.
        """
    @property
    def tool_calls(self, /) -> list[str]:
        """
        The tools the model asked for.
        """

@final
class TextIndex:
    """
    Texts that are found by meaning.
    """
    def __len__(self, /) -> int: ...
    def __new__(cls, /) -> TextIndex: ...
    def insert(self, /, id: SupportsIndex, text: str) -> None:
        """
        Adds a text, or replaces the one of that number.
        """
    def remove(self, /, id: SupportsIndex) -> bool:
        """
        Forgets a text; false if there was none.
        """
    def search(self, /, query: str, *, top_k: SupportsIndex = 5, score_threshold: SupportsFloat | SupportsIndex = 0.25) -> list[tuple[int, float]]:
        """
        The nearest texts with a similarity of at least `score_threshold`, the best first: numbers and similarities.
        """

def answer_of(response: "object") -> Answer | None:
    """
    What a model answered: a response of LangChain's, or one message. `None` where no message of a model is in it.
    """

def compress_tool_output(content: str, *, threshold_chars: SupportsIndex = 1800, head_chars: SupportsIndex = 900, tail_chars: SupportsIndex = 700) -> str:
    """
    The text with its middle replaced by a note, if it is longer than `threshold_chars` and the cut makes it shorter.
    """

def embed(text: str) -> list[float]:
    """
    The direction of a text: 256 numbers of length 1, or all zeros for a text that says nothing.
    """

def heuristic_scores(steps: "object", *, cap: SupportsIndex = 5, budget: SupportsIndex = 20, window: SupportsIndex = 5, min_total: SupportsIndex = 8) -> tuple[float, float, float, float, float, float]:
    """
    What `streak`, `call_count`, `edit_revert`, `test_repeat`, `diversity` and `hedge` read after the last step.
    """

def monitors() -> list[tuple[str, str, str]]:
    """
    Every monitor: its name, its suite, and one sentence about it.
    """

def profile_weights(task_profile: str) -> list[tuple[str, float]]:
    """
    The weights of a built-in profile: `coding`, `pr_review` or `qa`.
    """

def render_pattern(tier: str, model: str, fields: "dict[str, object]") -> str:
    """
    One pattern as a model of that name reads it.
    """

def score_step(text: str) -> float:
    """
    How hard a thought looks, from 0 (easy) to 1 (hard).
    """

def similarity(a: str, b: str) -> float:
    """
    How alike two texts are, from 0 to 1; at 0.8 and above they say nearly the same.
    """
