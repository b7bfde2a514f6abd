//! What is kept of one model call, and of a whole run.

use crate::guidance::Source;
use crate::policy::fsm::State;
use crate::policy::token_budget::Usage;

/// Characters of an injected text that a record shows.
pub const PREVIEW_CHARS_MAX: usize = 150;
/// Characters of a thought that a record shows.
pub const THOUGHT_PREVIEW_CHARS_MAX: usize = 120;
/// What stands for the thought before there is one.
pub const FIRST_CALL: &str = "(first call)";
/// Why nothing was looked up in FAST.
pub const SKIPPED_IN_FAST: &str = "FSM=FAST, e-traces skipped";

/// What the host knows once the model has answered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    /// When, in milliseconds since 1970, if the host has a clock.
    pub at_ms: Option<u64>,
    /// The tools the model asked for.
    pub tool_calls: Vec<String>,
    /// What the call used.
    pub usage: Usage,
    /// How long the call took.
    pub latency_ms: Option<f64>,
}

/// One entry of the step log: one completed model call and what led to it.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    /// The model call, counted from 0.
    pub step: u32,
    /// When, as the host said.
    pub at_ms: Option<u64>,
    /// How hard the last thought looked; `None` where there was none.
    pub difficulty: Option<f64>,
    /// The state the call was made in.
    pub fsm_state: State,
    /// The model that took the call.
    pub model_id: String,
    /// A short form of each injected piece of guidance.
    pub injections: Vec<String>,
    /// Where each comes from.
    pub injection_sources: Vec<Source>,
    /// The full advice texts that were shown.
    pub intervention_texts: Vec<String>,
    /// The monitors that fired on the steps before the call.
    pub monitors_fired: Vec<&'static str>,
    /// The kind of failure the most serious of them is a sign of.
    pub failure_type: Option<&'static str>,
    /// Why look-ups were left out, if they were.
    pub skipped_reason: Option<&'static str>,
    /// The beginning of the last thought.
    pub thought_preview: String,
    /// The tools the model asked for.
    pub tool_calls: Vec<String>,
    /// What the call used.
    pub usage: Usage,
    /// How long the call took, as the host said.
    pub latency_ms: Option<f64>,
}

/// A finished run in numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Steps seen.
    pub steps: u32,
    /// Model calls recorded.
    pub calls: u32,
    /// Tokens used.
    pub tokens: u64,
    /// Pieces of guidance shown.
    pub injections: u32,
    /// On how many steps each monitor fired, for those that did.
    pub fired: Vec<(&'static str, u32)>,
    /// END.
    pub state: State,
}
