//! What going through a stored step again needs beside the step itself: the model that was asked for, and what the
//! look-ups gave. Written into `StepRow::replay`.

use rb_engine::guidance::{Pattern, PatternBody, Retrieved, TierResult};
use serde::{Deserialize, Serialize};

/// The model and the answers of one walk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Replay {
    pub(crate) model: String,
    #[serde(default, skip_serializing_if = "Answer::is_absent")]
    e1: Answer,
    #[serde(default, skip_serializing_if = "Answer::is_absent")]
    e2: Answer,
    #[serde(default, skip_serializing_if = "Answer::is_absent")]
    e3: Answer,
    /// What the host said about a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wrap_up: Option<String>,
    /// What a person said to the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) words: Vec<String>,
}

/// One look-up, as it went.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    #[default]
    NotAsked,
    Failed,
    Answered(Vec<Kept>),
}

impl Answer {
    fn is_absent(&self) -> bool {
        *self == Self::NotAsked
    }
}

/// A pattern with its words as they were then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    id: String,
    #[serde(flatten)]
    body: KeptBody,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeptBody {
    E1 { situation: String, observation: String, recommended_action: String },
    E2 { trajectory: String, diagnosis: String, intervention: String, anti_pattern: String },
    E3 { instruction: String, meta_reasoning_prompt: Option<String> },
}

impl Replay {
    pub(crate) fn new(
        model: &str,
        found: &Retrieved,
        wrap_up: Option<&str>,
        words: &[String],
    ) -> Self {
        Self {
            model: model.to_owned(),
            e1: Answer::from(&found.e1),
            e2: Answer::from(&found.e2),
            e3: Answer::from(&found.e3),
            wrap_up: wrap_up.map(str::to_owned),
            words: words.to_vec(),
        }
    }

    /// What was written into a row; a row of another origin was told, not walked.
    pub(crate) fn read(kept: &str) -> Option<Self> {
        serde_json::from_str(kept).ok()
    }

    /// As it is kept.
    pub(crate) fn write(&self) -> Option<String> {
        serde_json::to_string(self).ok() // strings and lists only: it cannot fail
    }

    pub(crate) fn found(&self) -> Retrieved {
        Retrieved { e1: self.e1.lookup(), e2: self.e2.lookup(), e3: self.e3.lookup() }
    }
}

impl From<&TierResult> for Answer {
    fn from(lookup: &TierResult) -> Self {
        match lookup {
            TierResult::NotAsked => Self::NotAsked,
            TierResult::Failed => Self::Failed,
            TierResult::Answered(patterns) => {
                Self::Answered(patterns.iter().map(Kept::from).collect())
            }
        }
    }
}

impl Answer {
    fn lookup(&self) -> TierResult {
        match self {
            Self::NotAsked => TierResult::NotAsked,
            Self::Failed => TierResult::Failed,
            Self::Answered(kept) => TierResult::Answered(kept.iter().map(Kept::pattern).collect()),
        }
    }
}

impl From<&Pattern> for Kept {
    fn from(pattern: &Pattern) -> Self {
        let body = match pattern.body.clone() {
            PatternBody::E1 { situation, observation, recommended_action } => {
                KeptBody::E1 { situation, observation, recommended_action }
            }
            PatternBody::E2 { trajectory, diagnosis, intervention, anti_pattern } => {
                KeptBody::E2 { trajectory, diagnosis, intervention, anti_pattern }
            }
            PatternBody::E3 { instruction, meta_reasoning_prompt } => {
                KeptBody::E3 { instruction, meta_reasoning_prompt }
            }
        };
        Self { id: pattern.id.clone(), body }
    }
}

impl Kept {
    fn pattern(&self) -> Pattern {
        let body = match self.body.clone() {
            KeptBody::E1 { situation, observation, recommended_action } => {
                PatternBody::E1 { situation, observation, recommended_action }
            }
            KeptBody::E2 { trajectory, diagnosis, intervention, anti_pattern } => {
                PatternBody::E2 { trajectory, diagnosis, intervention, anti_pattern }
            }
            KeptBody::E3 { instruction, meta_reasoning_prompt } => {
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
    fn what_was_found_comes_back_as_it_was() {
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
        for found in [
            Retrieved::NONE,
            Retrieved {
                e1: TierResult::Failed,
                e2: TierResult::Answered(vec![]),
                e3: TierResult::NotAsked,
            },
            Retrieved { e2: TierResult::Answered(patterns), ..Retrieved::NONE },
        ] {
            let words = [text("Look there.")];
            let kept = Replay::new("m", &found, Some("Wrap up."), &words).write().unwrap();
            let replay = Replay::read(&kept).unwrap();
            assert_eq!((replay.found(), replay.model.as_str()), (found, "m"), "{kept}");
            assert_eq!(replay.wrap_up.as_deref(), Some("Wrap up."));
            assert_eq!(replay.words, ["Look there."]);
        }
        assert_eq!(Replay::read("no"), None);
    }
}
