//! Inputs of a decision that the step row lacks: the model and the retrieved patterns. Stored in `StepRow::replay`, so
//! that a run can be rebuilt from its rows.

use rb_engine::guidance::{Pattern, PatternBody, Retrieved, TierResult};
use serde::{Deserialize, Serialize};

/// Model, retrieved patterns, budget warning and operator messages of one decision.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Replay {
    pub model: String,
    #[serde(default, skip_serializing_if = "StoredTierResult::is_absent")]
    e1: StoredTierResult,
    #[serde(default, skip_serializing_if = "StoredTierResult::is_absent")]
    e2: StoredTierResult,
    #[serde(default, skip_serializing_if = "StoredTierResult::is_absent")]
    e3: StoredTierResult,
    /// Budget warning of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrap_up: Option<String>,
    /// Operator messages.
    #[serde(default, rename = "words", skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
}

/// Serialised form of [`TierResult`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredTierResult {
    #[default]
    NotAsked,
    Failed,
    Answered(Vec<StoredPattern>),
}

impl StoredTierResult {
    fn is_absent(&self) -> bool {
        *self == Self::NotAsked
    }
}

/// A pattern with its text at the time of the decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredPattern {
    id: String,
    #[serde(flatten)]
    body: StoredBody,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredBody {
    E1 { situation: String, observation: String, recommended_action: String },
    E2 { trajectory: String, diagnosis: String, intervention: String, anti_pattern: String },
    E3 { instruction: String, meta_reasoning_prompt: Option<String> },
}

impl Replay {
    pub fn new(
        model: &str,
        retrieved: &Retrieved,
        wrap_up: Option<&str>,
        messages: &[String],
    ) -> Self {
        Self {
            model: model.to_owned(),
            e1: StoredTierResult::from(&retrieved.e1),
            e2: StoredTierResult::from(&retrieved.e2),
            e3: StoredTierResult::from(&retrieved.e3),
            wrap_up: wrap_up.map(str::to_owned),
            messages: messages.to_vec(),
        }
    }

    /// Parses the column of a row; `None` for a step that was observed without a decision.
    pub fn parse(stored: &str) -> Option<Self> {
        serde_json::from_str(stored).ok()
    }

    /// Serialises for the column of a row.
    pub fn to_json(&self) -> Option<String> {
        serde_json::to_string(self).ok() // strings and lists only, so this does not fail
    }

    pub fn retrieved(&self) -> Retrieved {
        Retrieved { e1: self.e1.to_result(), e2: self.e2.to_result(), e3: self.e3.to_result() }
    }
}

impl From<&TierResult> for StoredTierResult {
    fn from(result: &TierResult) -> Self {
        match result {
            TierResult::NotAsked => Self::NotAsked,
            TierResult::Failed => Self::Failed,
            TierResult::Answered(patterns) => {
                Self::Answered(patterns.iter().map(StoredPattern::from).collect())
            }
        }
    }
}

impl StoredTierResult {
    fn to_result(&self) -> TierResult {
        match self {
            Self::NotAsked => TierResult::NotAsked,
            Self::Failed => TierResult::Failed,
            Self::Answered(stored) => {
                TierResult::Answered(stored.iter().map(StoredPattern::pattern).collect())
            }
        }
    }
}

impl From<&Pattern> for StoredPattern {
    fn from(pattern: &Pattern) -> Self {
        let body = match pattern.body.clone() {
            PatternBody::E1 { situation, observation, recommended_action } => {
                StoredBody::E1 { situation, observation, recommended_action }
            }
            PatternBody::E2 { trajectory, diagnosis, intervention, anti_pattern } => {
                StoredBody::E2 { trajectory, diagnosis, intervention, anti_pattern }
            }
            PatternBody::E3 { instruction, meta_reasoning_prompt } => {
                StoredBody::E3 { instruction, meta_reasoning_prompt }
            }
        };
        Self { id: pattern.id.clone(), body }
    }
}

impl StoredPattern {
    fn pattern(&self) -> Pattern {
        let body = match self.body.clone() {
            StoredBody::E1 { situation, observation, recommended_action } => {
                PatternBody::E1 { situation, observation, recommended_action }
            }
            StoredBody::E2 { trajectory, diagnosis, intervention, anti_pattern } => {
                PatternBody::E2 { trajectory, diagnosis, intervention, anti_pattern }
            }
            StoredBody::E3 { instruction, meta_reasoning_prompt } => {
                PatternBody::E3 { instruction, meta_reasoning_prompt }
            }
        };
        Pattern { id: self.id.clone(), body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decision_inputs_survive_serialisation() {
        let text = |text: &str| text.to_owned();
        let bodies = [
            PatternBody::E1 {
                situation: text("s"),
                observation: text("o"),
                recommended_action: text("a"),
            },
            PatternBody::E2 {
                trajectory: text("t"),
                diagnosis: text("d"),
                intervention: text("i"),
                anti_pattern: text("p"),
            },
            PatternBody::E3 { instruction: text("r"), meta_reasoning_prompt: None },
            PatternBody::E3 { instruction: text("r"), meta_reasoning_prompt: Some(text("q")) },
        ];
        let patterns = bodies.map(|body| Pattern { id: text("p"), body }).to_vec();
        for retrieved in [
            Retrieved::NONE,
            Retrieved {
                e1: TierResult::Failed,
                e2: TierResult::Answered(vec![]),
                e3: TierResult::NotAsked,
            },
            Retrieved { e2: TierResult::Answered(patterns), ..Retrieved::NONE },
        ] {
            let messages = [text("Look there.")];
            let stored =
                Replay::new("m", &retrieved, Some("Wrap up."), &messages).to_json().unwrap();
            let replay = Replay::parse(&stored).unwrap();
            assert_eq!((replay.retrieved(), replay.model.as_str()), (retrieved, "m"), "{stored}");
            assert_eq!(replay.wrap_up.as_deref(), Some("Wrap up."));
            assert_eq!(replay.messages, ["Look there."]);
        }
        assert_eq!(Replay::parse("no"), None);
    }
}
