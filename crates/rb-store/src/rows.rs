//! What is kept, as it is read and written. Times are milliseconds since 1970 (`_ms`); absent texts are empty.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Whose rows a caller may see. `None` sets no limit: only the operator's keys have that.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Scope {
    pub org: Option<String>,
    /// Within the organisation; `None` for all of its projects.
    pub project: Option<String>,
}

impl Scope {
    /// An organisation with all its projects.
    pub fn org(org: &str) -> Self {
        Self { org: Some(org.to_owned()), project: None }
    }
}

/// A run's name: ids are chosen by agents, so they are unique within an organisation only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RunKey {
    pub org: String,
    pub run_id: String,
}

/// A run as lists show it: what it said about itself, and its steps in numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunRow {
    pub run: RunKey,
    /// How often it was changed: by its beginning, a step, its end.
    pub version: u64,
    pub project: String,
    pub agent_name: String,
    pub task: String,
    pub model: String,
    pub framework: String,
    pub codebase: String,
    pub task_profile: String,
    pub parent: String,
    /// The name of the key that first told of it.
    pub key_name: String,
    pub metadata: Map<String, Value>,
    pub started_ms: i64,
    /// When it was last heard of: its beginning, a step, its end.
    pub seen_ms: i64,
    pub finished_ms: Option<i64>,
    pub outcome: Option<String>,
    pub step_count: u64,
    pub score_sum: f64,
    pub score_peak: f64,
    pub tokens: Tokens,
    pub cost_usd: f64,
    /// Steps on which guidance was given.
    pub injected_steps: u64,
    /// On how many steps each monitor fired.
    pub fired: BTreeMap<String, u64>,
}

/// Tokens of a step, a run or an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    /// Everything, as counted by whoever reported it.
    pub total: u64,
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

/// What monitors read, each by its name.
pub type Scores = BTreeMap<Cow<'static, str>, f64>;

/// One step: what the agent did, what we read, what was said, what it cost.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepRow {
    pub run: RunKey,
    /// The project of a run that begins with this step.
    pub project: String,
    pub step_index: u32,
    pub at_ms: i64,
    pub user_input: String,
    pub thought: String,
    pub action: Option<String>,
    pub action_input: Option<String>,
    /// The argument arrived as an object or array, and `action_input` is its JSON.
    pub input_is_structured: bool,
    pub observation: Option<String>,
    pub is_error: bool,
    pub model: String,
    pub tokens: Tokens,
    pub cost_usd: f64,
    /// What our monitors read.
    pub scores: Scores,
    /// The composite of `scores`.
    pub total_score: f64,
    /// The monitors of ours that fired.
    pub fired: Vec<String>,
    pub evidence: Vec<Evidence>,
    /// What the agent's side says was injected, and by whom.
    pub injections: Vec<String>,
    pub injection_sources: Vec<String>,
    pub intervention_texts: Vec<String>,
    /// What the agent's side says has fired.
    pub monitors_fired: Vec<String>,
    pub failure_type: Option<String>,
    pub metadata: Map<String, Value>,
    /// What going through this step again needs beside the step itself, such as the patterns that were found; written
    /// and read by the host.
    pub replay: Option<String>,
}

impl StepRow {
    /// Whether guidance was given on this step: injected steps and interventions are counted by this.
    pub fn is_injected(&self) -> bool {
        !(self.injections.is_empty()
            && self.injection_sources.is_empty()
            && self.intervention_texts.is_empty())
    }

    /// The patterns that were shown on this step, each once, as `tier:id`: what `injections` holds as `[e1:id]`.
    pub fn patterns(&self) -> BTreeSet<&str> {
        self.injections.iter().filter_map(|shown| pattern(shown)).collect()
    }
}

/// The pattern that an injection stands for.
pub(crate) fn pattern(shown: &str) -> Option<&str> {
    let inside = shown.strip_prefix('[')?.strip_suffix(']')?;
    let (tier, id) = inside.split_once(':')?;
    (["e1", "e2", "e3"].contains(&tier) && !id.is_empty()).then_some(inside)
}

/// Why a monitor fired, in a sentence, with the steps it is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    pub monitor: String,
    pub score: f64,
    pub text: String,
    pub steps: Vec<u32>,
}

/// How a run ended, in four classes: outcomes are free text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutcomeClass {
    Success,
    Failure,
    Other,
    Unfinished,
}

impl OutcomeClass {
    pub const ALL: [Self; 4] = [Self::Success, Self::Failure, Self::Other, Self::Unfinished];

    /// The class of an outcome: exactly `success`; `failure`, alone or before a colon; anything else.
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

/// Which runs a list shows; empty fields do not filter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunFilter {
    pub agent_name: Option<String>,
    pub model: Option<String>,
    pub outcome: Option<OutcomeClass>,
    /// A monitor that fired on at least one step.
    pub fired: Option<String>,
    /// A pattern that was shown on at least one step, as `tier:id`.
    pub pattern: Option<String>,
    /// The name of the key that first told of the run.
    pub key_name: Option<String>,
    /// Part of the id, the task or the agent's name, in any case.
    pub text: Option<String>,
    /// Runs that began at this time or later.
    pub since_ms: Option<i64>,
    /// Runs that began before this time.
    pub until_ms: Option<i64>,
    /// The page begins after this run: stays fast on any page.
    pub after: Option<RunAfter>,
    /// The page begins after so many runs: for the documented parameter of that name.
    pub offset: u32,
    pub count_max: u32,
}

/// Where the page before ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunAfter {
    pub started_ms: i64,
    pub run: RunKey,
}

/// How the runs of a scope fare.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Health {
    pub runs: u64,
    pub steps: u64,
    pub success_runs: u64,
    /// Runs in which a monitor fired.
    pub fired_runs: u64,
    /// Runs whose highest composite stayed below `Health::CLEAN_BELOW`.
    pub clean_runs: u64,
    /// Steps by their composite: from `Health::CLEAN_BELOW` on, and from `Health::DANGER_FROM` on.
    pub warn_steps: u64,
    pub danger_steps: u64,
    pub score_sum: f64,
    pub score_peak: f64,
    pub tokens: Tokens,
    pub cost_usd: f64,
    pub by_monitor: BTreeMap<String, MonitorHealth>,
    /// Runs, sum of composites over steps, steps and highest composite, by framework.
    pub by_framework: BTreeMap<String, (u64, f64, u64, f64)>,
    /// The runs by the day on which they began, in days since 1970.
    pub by_day: BTreeMap<i64, DayHealth>,
}

/// The runs that began on one day.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DayHealth {
    pub runs: u64,
    pub clean_runs: u64,
    pub steps: u64,
    pub tokens: u64,
    pub cost_usd: f64,
}

impl Health {
    /// A run below this is clean; a score from here on is worth a look.
    pub const CLEAN_BELOW: f64 = 0.35;
    /// A score from here on is a danger, whatever the monitor's own threshold.
    pub const DANGER_FROM: f64 = 0.6;
}

/// One monitor over many steps, by how high it read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MonitorHealth {
    pub fired: u64,
    pub low: u64,
    pub warn: u64,
    pub danger: u64,
}

/// One run of an experiment.
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
    /// Tokens and cost by the model that was used.
    pub by_model: Vec<ModelTokens>,
}

/// What one model used in a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelTokens {
    pub model: String,
    pub tokens: Tokens,
    pub cost_usd: f64,
}

/// A stored piece of guidance.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PatternRow {
    /// Empty for E2 and E3, which are everybody's.
    pub org: String,
    /// `e1`, `e2` or `e3`.
    pub tier: String,
    pub pattern_id: String,
    pub failure_type: Option<String>,
    pub model_family: Option<String>,
    pub source_trace_id: Option<String>,
    /// Asked for beside the tier's own gate.
    pub gate_threshold: Option<f64>,
    /// What is compared with the situation of a run.
    pub context: String,
    pub fields: Map<String, Value>,
    pub created_ms: i64,
    pub updated_ms: i64,
    pub uses: u64,
    pub used_ms: Option<i64>,
}

/// What became of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub enum PatternChange {
    /// It is new, or other than before.
    Put(Box<PatternRow>),
    /// It is no more.
    Gone { org: String, tier: String, pattern_id: String },
}

/// Which patterns a list shows; empty fields do not filter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PatternFilter {
    pub tier: Option<String>,
    /// The page begins after this pattern: tier, id and organisation.
    pub after: Option<(String, String, String)>,
    pub count_max: u32,
}

/// Something an agent learned about a codebase.
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

/// Weights under a name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProfileRow {
    pub org: String,
    /// Empty for the whole organisation.
    pub project: String,
    pub profile_id: String,
    pub description: String,
    pub weights: BTreeMap<String, f64>,
    /// Whatever else the profile was created with.
    pub extra: Map<String, Value>,
    pub created_ms: i64,
    pub updated_ms: i64,
}

/// A key, without the secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyRow {
    pub key_id: String,
    pub name: String,
    /// The beginning of the key, to recognise it by.
    pub shown: String,
    /// Of the whole key; the key itself is never kept.
    pub hash: String,
    pub org: String,
    /// Empty for all projects of the organisation.
    pub project: String,
    pub created_ms: i64,
    pub revoked_ms: Option<i64>,
}

/// What the gateway remembers of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConversationRow {
    pub run: RunKey,
    /// Of the newest message: a request without a name is found again by it.
    pub head: String,
    /// The provider's name for the newest answer, where the provider keeps the conversation.
    pub answer: String,
    /// What the newest answer is known by in a history that was rewritten.
    pub mark: String,
    /// Written and read by the gateway.
    pub state: String,
    pub at_ms: i64,
}

/// What a conversation without a name is found again by. Empty ones are never found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownBy {
    /// Its newest message.
    Head,
    /// The provider's name for its newest answer.
    Answer,
    /// What its newest answer looks like.
    Mark,
}

impl KnownBy {
    pub(crate) fn column(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Answer => "answer",
            Self::Mark => "mark",
        }
    }
}

/// What somebody wants to say to a run, and nobody has taken along yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WaitingRow {
    pub run: RunKey,
    pub words_id: String,
    pub text: String,
    pub at_ms: i64,
}

/// What an organisation used on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageDay {
    /// Days since 1970.
    pub day: i64,
    /// Steps on which guidance was given.
    pub interventions: u64,
    pub steps: u64,
    pub tokens: u64,
}
