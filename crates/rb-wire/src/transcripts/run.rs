//! One recorded run, whatever format it came in.

use std::borrow::Cow;

use rb_engine::step::{Input, Step};

/// A recorded run. Its texts are borrowed from the transcript where that is possible.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Run<'a> {
    /// The run's own name, if it has one.
    pub run_id: Option<Cow<'a, str>>,
    /// What the agent was asked to do.
    pub task: Option<Cow<'a, str>>,
    /// How it ended: `success`, `failure`, or a word of the source's own.
    pub outcome: Option<Cow<'a, str>>,
    /// Which agent.
    pub agent: Option<Cow<'a, str>>,
    /// Which model.
    pub model: Option<Cow<'a, str>>,
    /// Whatever the source knows about the run beyond this, as raw JSON.
    pub labels: Option<Cow<'a, str>>,
    /// What happened, in order.
    pub steps: Vec<RunStep<'a>>,
}

/// One recorded step. Absent texts are empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunStep<'a> {
    /// What a person said to the agent just before.
    pub user_input: Cow<'a, str>,
    /// The model's visible text.
    pub thought: Cow<'a, str>,
    /// The tool that was called; empty when there was no call.
    pub tool: Cow<'a, str>,
    /// What the tool was given.
    pub input: RunInput<'a>,
    /// What came back.
    pub observation: Cow<'a, str>,
    /// The source says that the call failed.
    pub is_error: bool,
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

fn owned(text: Text<'_>) -> Text<'static> {
    Cow::Owned(text.into_owned())
}

impl Run<'_> {
    /// The same run, borrowing nothing.
    pub fn into_owned(self) -> Run<'static> {
        Run {
            run_id: self.run_id.map(owned),
            task: self.task.map(owned),
            outcome: self.outcome.map(owned),
            agent: self.agent.map(owned),
            model: self.model.map(owned),
            labels: self.labels.map(owned),
            steps: self.steps.into_iter().map(RunStep::into_owned).collect(),
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
            input: match self.input {
                RunInput::None => RunInput::None,
                RunInput::Text(text) => RunInput::Text(owned(text)),
                RunInput::Structured(json) => RunInput::Structured(owned(json)),
            },
            observation: owned(self.observation),
            is_error: self.is_error,
        }
    }
}
