//! Row types. Times are milliseconds since 1970 (`_ms`); an empty string means that a text is absent.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Limits reads to an organisation and project. `None` is no limit, which only operator keys may use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Scope {
    pub org: Option<String>,
    /// Project within the organisation; `None` for all of its projects.
    pub project: Option<String>,
}

impl Scope {
    /// Returns the scope of an organisation with all its projects.
    pub fn org(org: &str) -> Self {
        Self { org: Some(org.to_owned()), project: None }
    }
}

/// Key of a run. Agents choose the ids, so an id is only unique within an organisation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RunKey {
    pub org: String,
    pub run_id: String,
}

/// Run with its description and the totals over its steps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunRow {
    pub run: RunKey,
    /// Number of changes so far: each start, step and end counts.
    pub version: u64,
    pub project: String,
    pub agent_name: String,
    pub task: String,
    pub model: String,
    pub framework: String,
    pub codebase: String,
    pub task_profile: String,
    pub parent: String,
    /// Name of the API key that reported the run first.
    pub key_name: String,
    pub metadata: Map<String, Value>,
    pub started_ms: i64,
    /// Time of the last start, step or end.
    pub seen_ms: i64,
    pub finished_ms: Option<i64>,
    pub outcome: Option<String>,
    pub step_count: u64,
    pub score_sum: f64,
    pub score_peak: f64,
    pub tokens: Tokens,
    pub cost_usd: f64,
    /// Number of steps with injected guidance.
    pub injected_steps: u64,
    /// Number of steps on which each monitor fired.
    pub fired: BTreeMap<String, u64>,
    /// Number of steps on which each monitor scored `Health::DANGER_FROM` or more.
    pub high_scores: BTreeMap<String, u64>,
}

/// Token counts of a step, a run or an experiment arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Total as reported by the client.
    pub total: u64,
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

/// Scores by monitor name.
pub type Scores = BTreeMap<Cow<'static, str>, f64>;

/// Step of a run: the agent's action, the scores, the injected guidance and the cost.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepRow {
    pub run: RunKey,
    /// Project of the run, used if this step creates it.
    pub project: String,
    pub step_index: u32,
    pub at_ms: i64,
    pub user_input: String,
    pub thought: String,
    pub action: Option<String>,
    pub action_input: Option<String>,
    /// Set if the argument was an object or array; `action_input` is then its JSON.
    pub input_is_structured: bool,
    pub observation: Option<String>,
    pub is_error: bool,
    pub model: String,
    pub tokens: Tokens,
    pub cost_usd: f64,
    /// Scores of the monitors.
    pub scores: Scores,
    /// Composite of `scores`.
    pub total_score: f64,
    /// Monitors that fired.
    pub fired: Vec<String>,
    pub evidence: Vec<Evidence>,
    /// Guidance that the client reports as injected, and its sources.
    pub injections: Vec<String>,
    pub injection_sources: Vec<String>,
    pub intervention_texts: Vec<String>,
    /// Monitors that the client reports as fired.
    pub monitors_fired: Vec<String>,
    pub failure_type: Option<String>,
    /// Name of the run's FSM state after this step; empty if unknown.
    pub state: String,
    pub metadata: Map<String, Value>,
    /// Additional input for replaying this step, such as the retrieved patterns; opaque to the store.
    pub replay: Option<String>,
}

impl StepRow {
    /// Returns true if guidance was injected on this step. Injected steps and interventions are counted by this.
    pub fn is_injected(&self) -> bool {
        !(self.injections.is_empty()
            && self.injection_sources.is_empty()
            && self.intervention_texts.is_empty())
    }

    /// Returns the distinct patterns shown on this step as `tier:id`, which `injections` holds as `[e1:id]`.
    pub fn patterns(&self) -> BTreeSet<&str> {
        self.injections.iter().filter_map(|shown| pattern(shown)).collect()
    }
}

/// Parses an injection of the form `[tier:id]` and returns `tier:id`.
pub(crate) fn pattern(shown: &str) -> Option<&str> {
    let inside = shown.strip_prefix('[')?.strip_suffix(']')?;
    let (tier, id) = inside.split_once(':')?;
    (["e1", "e2", "e3"].contains(&tier) && !id.is_empty()).then_some(inside)
}

/// Explanation of a fired monitor, with the steps that it refers to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    pub monitor: String,
    pub score: f64,
    pub text: String,
    pub steps: Vec<u32>,
}

/// Class of a run's outcome, which is free text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutcomeClass {
    Success,
    Failure,
    Other,
    Unfinished,
}

impl OutcomeClass {
    pub const ALL: [Self; 4] = [Self::Success, Self::Failure, Self::Other, Self::Unfinished];

    /// Returns `Success` for `success`, `Failure` for `failure` and `failure:…`, and `Other` for any other text.
    pub fn of(outcome: Option<&str>) -> Self {
        match outcome {
            None => Self::Unfinished,
            Some("success") => Self::Success,
            Some("failure") => Self::Failure,
            Some(text) if text.starts_with("failure:") => Self::Failure,
            Some(_) => Self::Other,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Other => "other",
            Self::Unfinished => "unfinished",
        }
    }
}

/// Time without activity after which a run without outcome no longer counts as running.
pub const RUN_IDLE_TIMEOUT_MS: i64 = 5 * 60 * 1_000;

/// Returns the status for lists and pages: the outcome, else `running` or, after the idle timeout, `unknown`.
pub fn run_status(outcome: Option<&str>, seen_ms: i64, now_ms: i64) -> &str {
    outcome.unwrap_or(if is_running(outcome, seen_ms, now_ms) { "running" } else { "unknown" })
}

/// Has no outcome and was active within the idle timeout.
pub fn is_running(outcome: Option<&str>, seen_ms: i64, now_ms: i64) -> bool {
    outcome.is_none() && now_ms - seen_ms <= RUN_IDLE_TIMEOUT_MS
}

/// Filter for a list of runs; empty fields do not filter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunFilter {
    pub agent_name: Option<String>,
    pub model: Option<String>,
    pub outcome: Option<OutcomeClass>,
    /// Monitor that fired on at least one step.
    pub fired: Option<String>,
    /// Pattern that was shown on at least one step, as `tier:id`.
    pub pattern: Option<String>,
    /// Name of the API key that reported the run first.
    pub key_name: Option<String>,
    /// Substring of the id, the task or the agent name; case-insensitive.
    pub text: Option<String>,
    /// Earliest start time, inclusive.
    pub since_ms: Option<i64>,
    /// Latest start time, exclusive.
    pub until_ms: Option<i64>,
    /// Last run of the previous page. Costs the same on every page, unlike `offset`.
    pub after: Option<RunAfter>,
    /// Number of runs to skip, for the documented query parameter.
    pub offset: u32,
    pub count_max: u32,
}

/// Position of a run in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunAfter {
    pub started_ms: i64,
    pub run: RunKey,
}

/// Aggregate over the runs of a scope.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Health {
    pub runs: u64,
    pub steps: u64,
    pub success_runs: u64,
    /// Runs in which a monitor fired.
    pub fired_runs: u64,
    /// Runs whose peak composite is below `Health::CLEAN_BELOW`.
    pub clean_runs: u64,
    /// Steps with a composite from `Health::CLEAN_BELOW` and from `Health::DANGER_FROM`.
    pub warn_steps: u64,
    pub danger_steps: u64,
    pub score_sum: f64,
    pub score_peak: f64,
    pub tokens: Tokens,
    pub cost_usd: f64,
    pub by_monitor: BTreeMap<String, MonitorHealth>,
    /// Number of runs, sum of composites, number of steps and peak composite by framework.
    pub by_framework: BTreeMap<String, (u64, f64, u64, f64)>,
    /// Runs by start day, in days since 1970.
    pub by_day: BTreeMap<i64, DayHealth>,
}

/// Aggregate over the runs that started on one day.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DayHealth {
    pub runs: u64,
    pub clean_runs: u64,
    pub steps: u64,
    pub tokens: u64,
    pub cost_usd: f64,
}

impl Health {
    /// Upper limit of a clean run's scores; higher scores are warnings.
    pub const CLEAN_BELOW: f64 = 0.35;
    /// Lower limit of dangerous scores, independent of a monitor's threshold.
    pub const DANGER_FROM: f64 = 0.6;
}

/// Number of steps on which a monitor fired and of its scores by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MonitorHealth {
    pub fired: u64,
    pub low: u64,
    pub warn: u64,
    pub danger: u64,
}

/// Run of an experiment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExperimentRun {
    pub run_id: String,
    pub arm: String,
    pub outcome: Option<String>,
    pub task_profile: String,
    pub started_ms: i64,
    pub step_count: u64,
    pub score_sum: f64,
    pub score_peak: f64,
    pub injected_steps: u64,
    pub fired_steps: u64,
    /// Tokens and cost by model.
    pub by_model: Vec<ModelTokens>,
}

/// Tokens and cost of one model in a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelTokens {
    pub model: String,
    pub tokens: Tokens,
    pub cost_usd: f64,
}

/// Stored guidance pattern.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PatternRow {
    /// Empty for E2 and E3, which all organisations share.
    pub org: String,
    /// One of `e1`, `e2` and `e3`.
    pub tier: String,
    pub pattern_id: String,
    pub failure_type: Option<String>,
    pub model_family: Option<String>,
    pub source_trace_id: Option<String>,
    /// Similarity required in addition to the gate of the tier.
    pub gate_threshold: Option<f64>,
    /// Text that is compared with the situation of a run.
    pub context: String,
    pub fields: Map<String, Value>,
    pub created_ms: i64,
    pub updated_ms: i64,
    pub uses: u64,
    pub used_ms: Option<i64>,
}

/// Change of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub enum PatternChange {
    /// Created or replaced.
    Put(Box<PatternRow>),
    /// Deleted.
    Gone { org: String, tier: String, pattern_id: String },
}

/// Filter for a list of patterns; empty fields do not filter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PatternFilter {
    pub tier: Option<String>,
    /// Last pattern of the previous page: tier, id and organisation.
    pub after: Option<(String, String, String)>,
    pub count_max: u32,
}

/// Finding of an agent about a codebase.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FindingRow {
    pub org: String,
    pub codebase: String,
    pub finding_id: String,
    pub content: String,
    pub file_path: String,
    pub finding_type: String,
    pub metadata: Map<String, Value>,
    pub created_ms: i64,
    pub updated_ms: i64,
}

/// Named set of monitor weights.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProfileRow {
    pub org: String,
    /// Empty for the whole organisation.
    pub project: String,
    pub profile_id: String,
    pub description: String,
    pub weights: BTreeMap<String, f64>,
    /// Further fields given at creation.
    pub extra: Map<String, Value>,
    pub created_ms: i64,
    pub updated_ms: i64,
}

/// API key without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyRow {
    pub key_id: String,
    pub name: String,
    /// First characters of the key, for display.
    pub shown: String,
    /// Hash of the whole key; the key itself is not stored.
    pub hash: String,
    pub org: String,
    /// Empty for all projects of the organisation.
    pub project: String,
    pub created_ms: i64,
    pub revoked_ms: Option<i64>,
}

/// Gateway state of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConversationRow {
    pub run: RunKey,
    /// Hash of the conversation up to its newest message; identifies requests without a run id.
    pub head: String,
    /// Provider's id of the newest response, if the provider stores the conversation.
    pub answer: String,
    /// Fingerprint of the newest response, for histories that the client has rewritten.
    pub mark: String,
    /// Opaque to the store.
    pub state: String,
    pub at_ms: i64,
}

/// Column by which a conversation without a run id is found. Empty values never match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationKey {
    /// Hash up to the newest message.
    Head,
    /// Provider's id of the newest response.
    Answer,
    /// Fingerprint of the newest response.
    Mark,
}

impl ConversationKey {
    pub(crate) fn column(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Answer => "answer",
            Self::Mark => "mark",
        }
    }
}

/// Message of an operator that no model call has delivered yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OperatorMessageRow {
    pub run: RunKey,
    pub message_id: String,
    pub text: String,
    pub at_ms: i64,
}

/// Usage of an organisation on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageDay {
    /// Days since 1970.
    pub day: i64,
    /// Steps with injected guidance.
    pub interventions: u64,
    pub steps: u64,
    pub tokens: u64,
}
