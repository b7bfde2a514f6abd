//! Records of a model call and of a whole run.

use crate::guidance::Source;
use crate::policy::fsm::State;
use crate::policy::token_budget::Usage;

/// Maximum number of characters of an injected text in a record.
pub const PREVIEW_CHARS_MAX: usize = 150;
/// Maximum number of characters of a thought in a record.
pub const THOUGHT_PREVIEW_CHARS_MAX: usize = 120;
/// Shown for the thought before there is one.
pub const FIRST_CALL: &str = "(first call)";
/// Reason for skipped retrieval in FAST.
pub const SKIPPED_IN_FAST: &str = "FSM=FAST, e-traces skipped";

/// Data from the host after the model has replied.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    /// Time in milliseconds since 1970, if the host has a clock.
    pub at_ms: Option<u64>,
    /// Tools that the model called.
    pub tool_calls: Vec<String>,
    /// Token usage of the call.
    pub usage: Usage,
    /// Duration of the call.
    pub latency_ms: Option<f64>,
}

/// One entry of the step log: a completed model call and the decision before it.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    /// Index of the model call, from 0.
    pub step: u32,
    /// Time of the call, from the host.
    pub at_ms: Option<u64>,
    /// Difficulty of the last thought; `None` without a thought.
    pub difficulty: Option<f64>,
    /// State in which the call was made.
    pub fsm_state: State,
    /// The model that was called.
    pub model_id: String,
    /// Short form of each injected item of guidance.
    pub injections: Vec<String>,
    /// Source of each item.
    pub injection_sources: Vec<Source>,
    /// The full advice texts that were shown.
    pub intervention_texts: Vec<String>,
    /// Monitors whose advice was shown.
    pub advised: Vec<&'static str>,
    /// The monitors that fired on the steps before the call.
    pub monitors_fired: Vec<&'static str>,
    /// Failure type of the most serious of them.
    pub failure_type: Option<&'static str>,
    /// Reason for skipped retrieval.
    pub skipped_reason: Option<&'static str>,
    /// Start of the last thought.
    pub thought_preview: String,
    /// Tools that the model called.
    pub tool_calls: Vec<String>,
    /// Token usage of the call.
    pub usage: Usage,
    /// Duration of the call, from the host.
    pub latency_ms: Option<f64>,
}

/// Totals of a finished run.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Number of steps.
    pub steps: u32,
    /// Number of recorded model calls.
    pub calls: u32,
    /// Number of tokens.
    pub tokens: u64,
    /// Number of injected items of guidance.
    pub injections: u32,
    /// Number of steps on which each monitor fired, without zeros.
    pub fired: Vec<(&'static str, u32)>,
    /// END.
    pub state: State,
}
