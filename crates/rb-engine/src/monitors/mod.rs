//! The monitors: one file and one row in `ALL` each.
//!
//! A monitor observes one step at a time and keeps a bounded state. It returns a score from 0 (healthy) to 1 (worst)
//! and, above zero, the evidence. To add one, add a file and a row; command line, documentation and weights are derived
//! from the row.

/// Number of tool calls, compared with a budget.
pub mod call_count;
/// Claims that contradict earlier claims or observations.
pub mod claim_contradiction;
/// Repeated summaries and repeated work after a compaction.
pub mod cyclic_compression;
/// Few different tools.
pub mod diversity;
/// Edits that revert each other, or fail and are repeated.
pub mod edit_revert;
/// Growing uncertainty, and retractions.
pub mod hedge;
/// New directions in a run that should converge.
pub mod late_sprawl;
/// Repeated actions without new results.
pub mod semantic_loop;
/// Actions that leave the task without an announcement.
pub mod silent_topic_drift;
/// The same tool several times in a row.
pub mod streak;
/// The same test failure twice in a row.
pub mod test_repeat;
/// Completion claims with unchecked changes.
pub mod verification_skip;

mod signature;
mod trigrams;

use crate::analysis::action::ToolPolicies;
use crate::analysis::features::StepFeatures;
use crate::evidence::Evidence;
use crate::guidance::SPEAKER;
use crate::step::StepIndex;

/// Score at which a monitor fires by default.
pub const DEFAULT_FIRE_THRESHOLD: f64 = 0.6;

/// All monitors. Their order is that of sums, listings and columns. Ids are never renamed.
pub static ALL: [&MonitorSpec; 12] = [
    &streak::SPEC,
    &call_count::SPEC,
    &edit_revert::SPEC,
    &test_repeat::SPEC,
    &diversity::SPEC,
    &hedge::SPEC,
    &claim_contradiction::SPEC,
    &semantic_loop::SPEC,
    &verification_skip::SPEC,
    &cyclic_compression::SPEC,
    &late_sprawl::SPEC,
    &silent_topic_drift::SPEC,
];

/// Returns the row with this id.
pub fn find(id: &str) -> Option<&'static MonitorSpec> {
    ALL.into_iter().find(|spec| spec.id == id)
}

/// Generation of a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// Fixed bit for bit by the first public package.
    Heuristic,
    /// Ours, evaluated by measured precision.
    Semantic,
}

impl Suite {
    /// Both suites.
    pub const ALL: [Self; 2] = [Self::Heuristic, Self::Semantic];

    /// Name of the suite in the API and in configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Heuristic => "heuristic",
            Self::Semantic => "semantic",
        }
    }
}

/// Suites that are active in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SuiteChoice {
    /// No monitors.
    Neither,
    /// Only the heuristic suite.
    Heuristic,
    /// Only the semantic suite.
    Semantic,
    /// Both; the composite is the higher of the two.
    #[default]
    Both,
}

impl SuiteChoice {
    /// Reports whether the suite is active.
    pub fn includes(self, suite: Suite) -> bool {
        match self {
            Self::Neither => false,
            Self::Both => true,
            Self::Heuristic => suite == Suite::Heuristic,
            Self::Semantic => suite == Suite::Semantic,
        }
    }
}

/// Creates a monitor for a new run.
pub(crate) type Build = fn(&MonitorSettings) -> Box<dyn Monitor>;

/// One row of the table.
#[derive(Debug)]
pub struct MonitorSpec {
    /// Stable id, used in storage, output and configuration.
    pub id: &'static str,
    /// Generation of the monitor.
    pub suite: Suite,
    /// Summary for users, one sentence.
    pub summary: &'static str,
    /// Default firing threshold.
    pub fire_at: f64,
    /// The failure type that it indicates, by which patterns are retrieved.
    pub failure_type: &'static str,
    /// Creates the monitor for a new run.
    pub(crate) build: Build,
    /// Writes the advice from the evidence. A semantic monitor has a second, plainer wording for use after a first
    /// notice.
    pub(crate) advice: fn(&Evidence) -> String,
}

impl MonitorSpec {
    /// Returns the advice to the agent.
    pub fn advice(&self, evidence: &Evidence) -> String {
        let again = match self.suite {
            Suite::Heuristic if evidence.is_repeated() => {
                " It went on after an earlier notice; saying what stands in the way is also a way forward."
            }
            Suite::Heuristic | Suite::Semantic => "",
        };
        format!("{SPEAKER} {}{again}", (self.advice)(evidence))
    }
}

impl PartialEq for MonitorSpec {
    /// Rows are compared by id.
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// Result of a monitor for one step.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Signal {
    /// Score from 0 (healthy) to 1 (worst).
    pub(crate) score: f64,
    /// Present whenever the score is above zero.
    pub(crate) evidence: Option<Evidence>,
}

impl Signal {
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// Creates a signal; a score of zero has no evidence.
    pub(crate) fn new(score: f64, evidence: impl FnOnce() -> Evidence) -> Self {
        Self { score, evidence: (score > 0.0).then(evidence) }
    }
}

/// Detects one failure mode in one run.
pub(crate) trait Monitor: Send {
    /// Observes the next step. Called once per step, in order.
    fn observe(&mut self, at: StepIndex, features: &StepFeatures<'_>) -> Signal;

    /// Called after an advice of this monitor was shown; later steps are assessed independently of earlier ones.
    fn advised(&mut self, _at: StepIndex) {}

    /// Heap memory in bytes, at most [`HEAP_BYTES_MAX`] for any length of the run.
    fn heap_bytes(&self) -> usize;
}

/// Maximum heap memory of a monitor.
pub const HEAP_BYTES_MAX: usize = 160 * 1024;

/// User settings of all monitors.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MonitorSettings {
    /// Declared properties of tools.
    pub tools: ToolPolicies,
    /// See [`streak`].
    pub streak: streak::StreakSettings,
    /// See [`call_count`].
    pub call_count: call_count::CallCountSettings,
    /// See [`edit_revert`].
    pub edit_revert: edit_revert::EditRevertSettings,
    /// See [`diversity`].
    pub diversity: diversity::DiversitySettings,
    /// See [`hedge`].
    pub hedge: hedge::HedgeSettings,
}

/// Invalid settings of a monitor.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// A number is too small.
    #[error("`monitors.{name}` ({value}) must be at least {min}")]
    TooSmall {
        /// Name of the setting.
        name: &'static str,
        /// Its value.
        value: u32,
        /// The minimum.
        min: u32,
    },
    /// A number is out of range or not a number.
    #[error("`monitors.{name}` ({value}) must be a number from {min} to {max}")]
    OutOfRange {
        /// Name of the setting.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The minimum.
        min: f64,
        /// The maximum.
        max: f64,
    },
    /// Two settings contradict each other.
    #[error(
        "`monitors.{small}` ({small_value}) must not be larger than `monitors.{large}` ({large_value})"
    )]
    OutOfOrder {
        /// Name of the setting that must be smaller.
        small: &'static str,
        /// Its value.
        small_value: u32,
        /// Name of the setting that must be larger.
        large: &'static str,
        /// Its value.
        large_value: u32,
    },
}

pub(crate) fn at_least(name: &'static str, value: u32, min: u32) -> Result<(), SettingsError> {
    if value < min { Err(SettingsError::TooSmall { name, value, min }) } else { Ok(()) }
}

pub(crate) fn in_range(
    name: &'static str,
    value: f64,
    min: f64,
    max: f64,
) -> Result<(), SettingsError> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(SettingsError::OutOfRange { name, value, min, max })
    }
}

impl MonitorSettings {
    /// Validates every section.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.streak.check()?;
        self.call_count.check()?;
        self.edit_revert.check()?;
        self.diversity.check()?;
        self.hedge.check()
    }
}

#[cfg(test)]
mod tests;
