//! Guidance: what is looked up, what comes back, and the one text that reaches the model.

/// The text that reaches the model.
pub mod fragment;
/// Patterns as models of each family read them.
pub mod render;

mod sanitise;

pub use fragment::Fragment;
pub use sanitise::sanitise;

/// The three kinds of patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// What helped in a situation like this one; an organisation's own.
    E1,
    /// What helps against a kind of failure; shared.
    E2,
    /// Standing rules for every run.
    E3,
}

impl Tier {
    /// The tier's name on every wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::E1 => "e1",
            Self::E2 => "e2",
            Self::E3 => "e3",
        }
    }

    /// The tier of that name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::E1, Self::E2, Self::E3]
            .into_iter()
            .find(|tier| tier.name().eq_ignore_ascii_case(name))
    }
}

/// What the host should look up before [`crate::run::Run::plan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Which kind of pattern.
    pub tier: Tier,
    /// What the agent thought last; empty for E3.
    pub context: String,
    /// The kind of failure to look for; only E2 has one.
    pub failure_type: Option<&'static str>,
    /// At most this many patterns.
    pub top_k: u32,
}

/// A stored piece of guidance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Its id in the library.
    pub id: String,
    /// What it says.
    pub body: PatternBody,
}

/// What a pattern says; the fields depend on the tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternBody {
    /// What helped in a situation like this one.
    E1 {
        /// The kind of task or situation.
        situation: String,
        /// What was tried and led nowhere.
        observation: String,
        /// What worked.
        recommended_action: String,
    },
    /// What helps against a kind of failure.
    E2 {
        /// How such a run looks.
        trajectory: String,
        /// Why it goes wrong.
        diagnosis: String,
        /// What to do.
        intervention: String,
        /// What not to do.
        anti_pattern: String,
    },
    /// A standing rule.
    E3 {
        /// The rule; may hold a part that begins with "never".
        instruction: String,
        /// The same as a question to oneself.
        meta_reasoning_prompt: Option<String>,
    },
}

impl PatternBody {
    /// The tier these fields belong to.
    pub fn tier(&self) -> Tier {
        match self {
            Self::E1 { .. } => Tier::E1,
            Self::E2 { .. } => Tier::E2,
            Self::E3 { .. } => Tier::E3,
        }
    }
}

/// What a look-up gave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TierResult {
    /// It was not made.
    #[default]
    NotAsked,
    /// It could not be answered; the allowance is not used up.
    Failed,
    /// The patterns found, best first; may be empty.
    Answered(Vec<Pattern>),
}

/// What the host found for the queries of one call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retrieved {
    /// For the E1 query.
    pub e1: TierResult,
    /// For the E2 query.
    pub e2: TierResult,
    /// For the E3 query.
    pub e3: TierResult,
}

impl Retrieved {
    /// Nothing was looked up.
    pub const NONE: Self =
        Self { e1: TierResult::NotAsked, e2: TierResult::NotAsked, e3: TierResult::NotAsked };

    /// The answer for one tier.
    pub fn of(&self, tier: Tier) -> &TierResult {
        match tier {
            Tier::E1 => &self.e1,
            Tier::E2 => &self.e2,
            Tier::E3 => &self.e3,
        }
    }
}

/// Where a piece of guidance comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The advice of a monitor that fired.
    Monitor,
    /// The token budget is running out.
    Budget,
    /// A pattern.
    Pattern(Tier),
    /// A person who is watching.
    Operator,
}

/// First words of every text by a monitor or budget, so that a model can tell it from a user or a tool.
pub(crate) const SPEAKER: &str = "Run monitor of this workspace:";

/// First words of an operator message.
pub const OPERATOR_PREFIX: &str = "A person who is watching this run says: ";

/// What a person says, as the agent reads it.
pub fn operator_message(words: &str) -> String {
    format!("{OPERATOR_PREFIX}{}", words.trim())
}

impl Source {
    /// The source's name on every wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Monitor => "monitor",
            Self::Budget => "budget",
            Self::Pattern(tier) => tier.name(),
            Self::Operator => "hand",
        }
    }
}
