//! Real successful runs with a known fault planted into them.

use serde::Serialize;

use crate::corpus::LabelledRun;
use crate::judge::Judge;
use crate::measure::Options;
use crate::report::PlantReport;

/// The faults that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The same act again and again.
    Loop,
    /// An edit, back, and forth again.
    Revert,
    /// A statement against what was said or seen.
    Contradiction,
    /// Done, says the agent, with a change that nothing has checked.
    UnverifiedFinish,
    /// Work on something else than the task.
    Drift,
}

impl Kind {
    /// Every kind, in the order of tables.
    pub const ALL: [Self; 5] =
        [Self::Loop, Self::Revert, Self::Contradiction, Self::UnverifiedFinish, Self::Drift];

    /// Its name in sentences.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Loop => "loops",
            Self::Revert => "reverts",
            Self::Contradiction => "contradictions",
            Self::UnverifiedFinish => "unverified finishes",
            Self::Drift => "drifts",
        }
    }

    /// The monitors that ought to see it, of either suite.
    pub fn intended(self) -> &'static [&'static str] {
        match self {
            Self::Loop => &["semantic_loop", "cyclic_compression", "streak", "test_repeat"],
            Self::Revert => &["semantic_loop", "cyclic_compression", "edit_revert"],
            Self::Contradiction => &["claim_contradiction", "hedge"],
            Self::UnverifiedFinish => &["verification_skip"],
            Self::Drift => &["silent_topic_drift", "late_sprawl"],
        }
    }
}

pub(crate) fn report(_: &[LabelledRun], _: &[&dyn Judge], _: &Options) -> Vec<PlantReport> {
    Vec::new()
}
