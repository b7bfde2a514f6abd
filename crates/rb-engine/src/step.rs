//! The input of the engine: one turn of the agent.
//!
//! A step borrows its texts. The engine reads them once and keeps only counts and hashes.

use std::fmt;

/// The position of a step in its run, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StepIndex(pub u32);

impl fmt::Display for StepIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One turn of the agent: thought, action, observation.
///
/// Absent texts are empty. `Step::default()` is a step in which nothing happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step<'a> {
    /// Message from the user just before this step.
    pub user_input: &'a str,
    /// The model's visible text of this turn.
    pub thought: &'a str,
    /// The tool call, if there was one.
    pub action: Option<Action<'a>>,
    /// The result of the tool.
    pub observation: &'a str,
    /// The host marked the call as failed.
    pub is_error: bool,
}

/// A tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action<'a> {
    /// Name of the tool; never empty in a step built by [`Step::with_action`].
    pub tool: &'a str,
    /// Argument of the call.
    pub input: Input<'a>,
}

/// Argument of a tool call, and the form in which it arrived.
///
/// The form matters: the heuristic suite is fixed by a reference that reads text arguments only, so `edit_revert` must
/// not read a structured one. All other code uses [`Input::text`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Input<'a> {
    /// No argument.
    #[default]
    None,
    /// The argument was a string (plain text, or JSON inside a string).
    Text(&'a str),
    /// The argument was an object, array or number; this is its JSON.
    Structured(&'a str),
}

impl<'a> Input<'a> {
    /// Returns the argument as text in any form; empty without an argument.
    pub fn text(self) -> &'a str {
        match self {
            Self::None => "",
            Self::Text(text) | Self::Structured(text) => text,
        }
    }

    /// Returns the argument if it arrived as a string, otherwise an empty text.
    pub fn as_plain_text(self) -> &'a str {
        match self {
            Self::Text(text) => text,
            Self::None | Self::Structured(_) => "",
        }
    }
}

impl<'a> Step<'a> {
    /// Creates a step that only thinks.
    pub fn thought(thought: &'a str) -> Self {
        Self { thought, ..Self::default() }
    }

    /// Adds a tool call; an empty tool name is no call.
    #[must_use]
    pub fn with_action(self, tool: &'a str, input: Input<'a>) -> Self {
        let action = (!tool.is_empty()).then_some(Action { tool, input });
        Self { action, ..self }
    }

    /// Adds the result of the tool.
    #[must_use]
    pub fn with_observation(self, observation: &'a str) -> Self {
        Self { observation, ..self }
    }

    /// Sets whether the host marked the step as failed.
    #[must_use]
    pub fn with_error(self, is_error: bool) -> Self {
        Self { is_error, ..self }
    }

    /// Returns the name of the tool; empty without a call.
    pub fn tool(&self) -> &'a str {
        self.action.map_or("", |action| action.tool)
    }
}
