//! Guidance: queries, retrieved patterns, and the text that is injected.

/// The text that is injected.
pub mod fragment;
/// Wording of patterns for each model family.
pub mod render;

mod sanitise;

pub use fragment::Fragment;
pub use sanitise::sanitise;

/// Tier of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// A solution in a similar situation; private to an organisation.
    E1,
    /// A remedy for a type of failure; shared.
    E2,
    /// A standing rule for every run.
    E3,
}

impl Tier {
    /// Name of the tier in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::E1 => "e1",
            Self::E2 => "e2",
            Self::E3 => "e3",
        }
    }

    /// Returns the tier with this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::E1, Self::E2, Self::E3]
            .into_iter()
            .find(|tier| tier.name().eq_ignore_ascii_case(name))
    }
}

/// A query that the host should run before [`crate::run::Run::plan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Tier of the patterns.
    pub tier: Tier,
    /// The latest thoughts of the agent; empty for E3.
    pub context: String,
    /// Failure type, for E2 only.
    pub failure_type: Option<&'static str>,
    /// Maximum number of patterns.
    pub top_k: u32,
}

/// A stored item of guidance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Id in the library.
    pub id: String,
    /// Content.
    pub body: PatternBody,
}

/// Content of a pattern; the fields depend on the tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternBody {
    /// A solution in a similar situation.
    E1 {
        /// Type of task or situation.
        situation: String,
        /// The approach that failed.
        observation: String,
        /// The approach that worked.
        recommended_action: String,
    },
    /// A remedy for a type of failure.
    E2 {
        /// Description of such a run.
        trajectory: String,
        /// Cause of the failure.
        diagnosis: String,
        /// Recommended action.
        intervention: String,
        /// Action to avoid.
        anti_pattern: String,
    },
    /// A standing rule.
    E3 {
        /// The rule; may contain a part that starts with "never".
        instruction: String,
        /// The rule as a question to oneself.
        meta_reasoning_prompt: Option<String>,
    },
}

impl PatternBody {
    /// Returns the tier of these fields.
    pub fn tier(&self) -> Tier {
        match self {
            Self::E1 { .. } => Tier::E1,
            Self::E2 { .. } => Tier::E2,
            Self::E3 { .. } => Tier::E3,
        }
    }
}

/// Result of one query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TierResult {
    /// The query was not run.
    #[default]
    NotAsked,
    /// The query failed; the allowance is not used up.
    Failed,
    /// The patterns found, best first; may be empty.
    Answered(Vec<Pattern>),
}

/// Results of the queries of one call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retrieved {
    /// Result of the E1 query.
    pub e1: TierResult,
    /// Result of the E2 query.
    pub e2: TierResult,
    /// Result of the E3 query.
    pub e3: TierResult,
}

impl Retrieved {
    /// No query was run.
    pub const NONE: Self =
        Self { e1: TierResult::NotAsked, e2: TierResult::NotAsked, e3: TierResult::NotAsked };

    /// Returns the result of one tier.
    pub fn of(&self, tier: Tier) -> &TierResult {
        match tier {
            Tier::E1 => &self.e1,
            Tier::E2 => &self.e2,
            Tier::E3 => &self.e3,
        }
    }
}

/// Source of an item of guidance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Advice of a monitor that fired.
    Monitor,
    /// The token budget is nearly used up.
    Budget,
    /// A pattern.
    Pattern(Tier),
    /// A message from an operator.
    Operator,
}

/// Prefix of every text by a monitor or the budget, so that a model can distinguish it from a user or a tool.
pub(crate) const SPEAKER: &str = "Run monitor of this workspace:";

/// Prefix of an operator message.
pub const OPERATOR_PREFIX: &str = "A person who is watching this run says: ";

/// Formats an operator message for the agent.
pub fn operator_message(words: &str) -> String {
    format!("{OPERATOR_PREFIX}{}", words.trim())
}

impl Source {
    /// Name of the source in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Monitor => "monitor",
            Self::Budget => "budget",
            Self::Pattern(tier) => tier.name(),
            Self::Operator => "hand",
        }
    }
}
