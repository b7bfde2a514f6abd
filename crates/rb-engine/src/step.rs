//! What the agent did, as the engine sees it.
//!
//! A step borrows its texts: the engine reads them once, keeps counts and hashes, and forgets them.

use std::fmt;

/// The position of a step in its run, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StepIndex(pub u32);

impl fmt::Display for StepIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One turn of the agent: what it thought, what it did, and what came back.
///
/// Absent texts are empty. `Step::default()` is a step in which nothing happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step<'a> {
    /// What a person (not the tool, not us) said to the agent just before this step.
    pub user_input: &'a str,
    /// The model's visible text of this turn.
    pub thought: &'a str,
    /// The tool call, if there was one.
    pub action: Option<Action<'a>>,
    /// What came back from the tool.
    pub observation: &'a str,
    /// The host says the call failed.
    pub is_error: bool,
}

/// A tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action<'a> {
    /// The tool's name; never empty in a step built by [`Step::with_action`].
    pub tool: &'a str,
    /// What the tool was given.
    pub input: Input<'a>,
}

/// The argument of a tool call, and the form in which it arrived.
///
/// The form matters: the heuristic suite is fixed by a reference that reads text arguments only, so
/// `edit_revert` must not look into a structured one. Every other reader wants [`Input::text`].
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
    /// The argument as text, whatever its form; empty when there is none.
    pub fn text(self) -> &'a str {
        match self {
            Self::None => "",
            Self::Text(text) | Self::Structured(text) => text,
        }
    }

    /// The argument only if it arrived as a string; empty otherwise.
    pub fn as_plain_text(self) -> &'a str {
        match self {
            Self::Text(text) => text,
            Self::None | Self::Structured(_) => "",
        }
    }
}

impl<'a> Step<'a> {
    /// A step that only thinks.
    pub fn thought(thought: &'a str) -> Self {
        Self { thought, ..Self::default() }
    }

    /// The same step with a tool call; an empty tool name is no call.
    #[must_use]
    pub fn with_action(self, tool: &'a str, input: Input<'a>) -> Self {
        let action = (!tool.is_empty()).then_some(Action { tool, input });
        Self { action, ..self }
    }

    /// The same step with what the tool answered.
    #[must_use]
    pub fn with_observation(self, observation: &'a str) -> Self {
        Self { observation, ..self }
    }

    /// The same step, marked as failed by the host or not.
    #[must_use]
    pub fn with_error(self, is_error: bool) -> Self {
        Self { is_error, ..self }
    }

    /// The tool's name; empty when there was no call.
    pub fn tool(&self) -> &'a str {
        self.action.map_or("", |action| action.tool)
    }
}
