//! Runs, steps and token counts: the output of dialects and importers.

use std::borrow::Cow;

use rb_engine::policy::token_budget::Usage;
use rb_engine::step::{Input, Step};

/// A recorded run. Its texts are borrowed from the transcript where that is possible.
///
/// What a source does not say is absent, never zero.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run<'a> {
    /// The run's own name, if it has one.
    pub run_id: Option<Cow<'a, str>>,
    /// The session that it belongs to, which several runs may share.
    pub session_id: Option<Cow<'a, str>>,
    /// The name of the run that started this one: it is the run of a sub-agent.
    pub parent_id: Option<Cow<'a, str>>,
    /// The set of tasks that it belongs to.
    pub dataset: Option<Cow<'a, str>>,
    /// What the agent was asked to do.
    pub task: Option<Cow<'a, str>>,
    /// How it ended: `success`, `failure`, or a word of the source's own.
    pub outcome: Option<Cow<'a, str>>,
    /// Which agent.
    pub agent: Option<Cow<'a, str>>,
    /// Which model.
    pub model: Option<Cow<'a, str>>,
    /// When it began, in milliseconds since 1970.
    pub started_ms: Option<u64>,
    /// When it ended, or the last that is known of it.
    pub ended_ms: Option<u64>,
    /// The tokens of the whole run.
    pub usage: RecordedUsage,
    /// What the whole run cost, in US dollars.
    pub cost_usd: Option<f64>,
    /// Whatever the source knows about the run beyond this, as raw JSON.
    pub labels: Option<Cow<'a, str>>,
    /// What happened, in order.
    pub steps: Vec<RunStep<'a>>,
}

/// Tokens, as far as the source counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordedUsage {
    /// All that went in, cached tokens among them.
    pub input_tokens: Option<u64>,
    /// All that came out, reasoning among it.
    pub output_tokens: Option<u64>,
    /// Of what went in, how much was read from a cache.
    pub cache_read_tokens: Option<u64>,
    /// Of what went in, how much was written to a cache.
    pub cache_write_tokens: Option<u64>,
}

impl RecordedUsage {
    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Both together; what neither knows stays unknown.
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

/// Tokens of one answer. The four kinds do not overlap; only `cache_write_hour` is a part of `cache_write`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenUsage {
    /// Read at the full price.
    pub uncached_input: u64,
    /// Read from the provider's cache.
    pub cache_read: u64,
    /// Read and written to the provider's cache.
    pub cache_write: u64,
    /// The part of `cache_write` that is kept for an hour, which costs more.
    pub cache_write_hour: u64,
    /// Written by the model, reasoning included.
    pub output: u64,
}

impl TokenUsage {
    /// Everything that was read.
    pub fn input(&self) -> u64 {
        self.uncached_input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// The share of what was read that came from the cache; `None` if nothing was read.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share of a token count needs no more than 52 bits"
    )]
    pub fn cache_read_share(&self) -> Option<f64> {
        let input = self.input();
        (input > 0).then(|| self.cache_read as f64 / input as f64)
    }

    /// As the engine counts.
    pub fn usage(&self) -> Usage {
        Usage { cache_read: self.cache_read, ..Usage::new(self.input(), self.output) }
    }
}

/// One recorded step. Absent texts are empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunStep<'a> {
    /// What a person said to the agent just before.
    pub user_input: Cow<'a, str>,
    /// The model's visible text; its reasoning where it said nothing else.
    pub thought: Cow<'a, str>,
    /// The tool that was called; empty when there was no call.
    pub tool: Cow<'a, str>,
    /// What the tool was given.
    pub input: RunInput<'a>,
    /// What came back.
    pub observation: Cow<'a, str>,
    /// The source says that the call failed.
    pub is_error: bool,
    /// When it was, in milliseconds since 1970.
    pub at_ms: Option<u64>,
    /// Who acted, where several agents share a run.
    pub agent: Option<Cow<'a, str>>,
    /// The model of this step, where the source says it of each.
    pub model: Option<Cow<'a, str>>,
    /// The tokens of the model call. Of several steps of one call, the first has them all.
    pub usage: RecordedUsage,
    /// What the model call cost, in US dollars; as with the tokens.
    pub cost_usd: Option<f64>,
}

/// The argument of a tool call, and the form in which it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RunInput<'a> {
    /// No argument.
    #[default]
    None,
    /// A string.
    Text(Cow<'a, str>),
    /// Anything else, as raw JSON.
    Structured(Cow<'a, str>),
}

impl RunStep<'_> {
    /// The step as the engine reads it.
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
    /// The same run, borrowing nothing.
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
    /// The same argument, borrowing nothing.
    pub fn into_owned(self) -> RunInput<'static> {
        match self {
            Self::None => RunInput::None,
            Self::Text(text) => RunInput::Text(owned(text)),
            Self::Structured(json) => RunInput::Structured(owned(json)),
        }
    }
}

impl RunStep<'_> {
    /// The same step, borrowing nothing.
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
