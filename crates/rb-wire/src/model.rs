//! Runs, steps and token counts: the output of dialects and importers.

use std::borrow::Cow;

use rb_engine::policy::token_budget::Usage;
use rb_engine::step::{Input, Step};

/// A recorded run. Texts borrow from the transcript where possible.
///
/// Unknown values are absent, never zero.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run<'a> {
    /// Identifier of the run.
    pub run_id: Option<Cow<'a, str>>,
    /// Session, which several runs may share.
    pub session_id: Option<Cow<'a, str>>,
    /// Identifier of the parent run, for the run of a sub-agent.
    pub parent_id: Option<Cow<'a, str>>,
    /// Dataset of the task.
    pub dataset: Option<Cow<'a, str>>,
    /// Task of the agent.
    pub task: Option<Cow<'a, str>>,
    /// Outcome: `success`, `failure`, or a value of the source.
    pub outcome: Option<Cow<'a, str>>,
    /// Agent.
    pub agent: Option<Cow<'a, str>>,
    /// Model.
    pub model: Option<Cow<'a, str>>,
    /// Start time in milliseconds since 1970.
    pub started_ms: Option<u64>,
    /// Time of the end, or of the last known event.
    pub ended_ms: Option<u64>,
    /// Tokens of the run.
    pub usage: RecordedUsage,
    /// Cost of the run in US dollars.
    pub cost_usd: Option<f64>,
    /// Further fields of the source, as JSON.
    pub labels: Option<Cow<'a, str>>,
    /// Steps, in order.
    pub steps: Vec<RunStep<'a>>,
}

/// Token counts of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordedUsage {
    /// Input tokens, including cached ones.
    pub input_tokens: Option<u64>,
    /// Output tokens, including reasoning.
    pub output_tokens: Option<u64>,
    /// Input tokens that were read from a cache.
    pub cache_read_tokens: Option<u64>,
    /// Input tokens that were written to a cache.
    pub cache_write_tokens: Option<u64>,
}

impl RecordedUsage {
    /// Returns whether no count is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the counts; a count that neither has stays unknown.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        Self {
            input_tokens: sum(self.input_tokens, other.input_tokens),
            output_tokens: sum(self.output_tokens, other.output_tokens),
            cache_read_tokens: sum(self.cache_read_tokens, other.cache_read_tokens),
            cache_write_tokens: sum(self.cache_write_tokens, other.cache_write_tokens),
        }
    }
}

/// Token counts of one response by price. They do not overlap, except that `cache_write_hour` is part of `cache_write`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenUsage {
    /// Input at full price.
    pub uncached_input: u64,
    /// Input read from the provider's cache.
    pub cache_read: u64,
    /// Input written to the provider's cache.
    pub cache_write: u64,
    /// Part of `cache_write` with a TTL of one hour, at a higher price.
    pub cache_write_hour: u64,
    /// Output, including reasoning.
    pub output: u64,
}

impl TokenUsage {
    /// Returns all input tokens.
    pub fn input(&self) -> u64 {
        self.uncached_input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Returns the share of the input that came from the cache; `None` without input.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share of a token count needs no more than 52 bits"
    )]
    pub fn cache_read_share(&self) -> Option<f64> {
        let input = self.input();
        (input > 0).then(|| self.cache_read as f64 / input as f64)
    }

    /// Returns the counts for the engine.
    pub fn usage(&self) -> Usage {
        Usage { cache_read: self.cache_read, ..Usage::new(self.input(), self.output) }
    }
}

/// A recorded step. Absent texts are empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunStep<'a> {
    /// User text before the step.
    pub user_input: Cow<'a, str>,
    /// Visible text of the model, or its reasoning if there is no text.
    pub thought: Cow<'a, str>,
    /// Name of the tool; empty without a call.
    pub tool: Cow<'a, str>,
    /// Arguments of the tool.
    pub input: RunInput<'a>,
    /// Output of the tool.
    pub observation: Cow<'a, str>,
    /// The call failed, according to the source.
    pub is_error: bool,
    /// Time in milliseconds since 1970.
    pub at_ms: Option<u64>,
    /// Agent, if several share the run.
    pub agent: Option<Cow<'a, str>>,
    /// Model of the step, if the source has it.
    pub model: Option<Cow<'a, str>>,
    /// Tokens of the model call, at its first step.
    pub usage: RecordedUsage,
    /// Cost of the model call in US dollars, at its first step.
    pub cost_usd: Option<f64>,
}

/// Arguments of a tool call, in their recorded form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RunInput<'a> {
    /// No arguments.
    #[default]
    None,
    /// A string.
    Text(Cow<'a, str>),
    /// Any other value, as JSON.
    Structured(Cow<'a, str>),
}

impl RunStep<'_> {
    /// Returns the step for the engine.
    pub fn step(&self) -> Step<'_> {
        let input = match &self.input {
            RunInput::None => Input::None,
            RunInput::Text(text) => Input::Text(text),
            RunInput::Structured(json) => Input::Structured(json),
        };
        let base = Step { user_input: &self.user_input, ..Step::thought(&self.thought) };
        base.with_action(&self.tool, input)
            .with_observation(&self.observation)
            .with_error(self.is_error)
    }
}

type Text<'a> = Cow<'a, str>;

pub(crate) fn owned(text: Text<'_>) -> Text<'static> {
    Cow::Owned(text.into_owned())
}

impl Run<'_> {
    /// Returns an owned copy.
    pub fn into_owned(self) -> Run<'static> {
        Run {
            run_id: self.run_id.map(owned),
            session_id: self.session_id.map(owned),
            parent_id: self.parent_id.map(owned),
            dataset: self.dataset.map(owned),
            task: self.task.map(owned),
            outcome: self.outcome.map(owned),
            agent: self.agent.map(owned),
            model: self.model.map(owned),
            started_ms: self.started_ms,
            ended_ms: self.ended_ms,
            usage: self.usage,
            cost_usd: self.cost_usd,
            labels: self.labels.map(owned),
            steps: self.steps.into_iter().map(RunStep::into_owned).collect(),
        }
    }
}

impl RunInput<'_> {
    /// Returns an owned copy.
    pub fn into_owned(self) -> RunInput<'static> {
        match self {
            Self::None => RunInput::None,
            Self::Text(text) => RunInput::Text(owned(text)),
            Self::Structured(json) => RunInput::Structured(owned(json)),
        }
    }
}

impl RunStep<'_> {
    /// Returns an owned copy.
    pub fn into_owned(self) -> RunStep<'static> {
        RunStep {
            user_input: owned(self.user_input),
            thought: owned(self.thought),
            tool: owned(self.tool),
            input: self.input.into_owned(),
            observation: owned(self.observation),
            is_error: self.is_error,
            at_ms: self.at_ms,
            agent: self.agent.map(owned),
            model: self.model.map(owned),
            usage: self.usage,
            cost_usd: self.cost_usd,
        }
    }
}
