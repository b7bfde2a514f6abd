//! The monitors: one file each, one row each in `ALL`.
//!
//! A monitor sees one step at a time and keeps what it needs of the past in bounded memory. It gives a
//! score from 0 (healthy) to 1 (worst) and, above zero, the evidence. Adding one is a file here and a
//! row in the table; command line, documentation and weights are derived from the row.

/// Tool calls so far, against a budget.
pub mod call_count;
/// What is said against what was said or seen.
pub mod claim_contradiction;
/// Summing up and deriving the same again.
pub mod cyclic_compression;
/// Few tools, again and again.
pub mod diversity;
/// Edits that undo each other, or fail and are tried again.
pub mod edit_revert;
/// Growing doubt, or taking something back.
pub mod hedge;
/// New directions where the run should converge.
pub mod late_sprawl;
/// The same act again without anything new.
pub mod semantic_loop;
/// Moving away from the task without saying so.
pub mod silent_topic_drift;
/// The same tool in a row.
pub mod streak;
/// The same test failure again.
pub mod test_repeat;
/// Done, with changes that nothing has checked.
pub mod verification_skip;

mod signature;
mod trigrams;

use crate::analysis::action::ToolPolicies;
use crate::analysis::features::StepFeatures;
use crate::evidence::Evidence;
use crate::guidance::SPEAKER;
use crate::step::StepIndex;

/// A score at or above this fires, unless a monitor's row or the user says otherwise.
pub const DEFAULT_FIRE_THRESHOLD: f64 = 0.6;

/// Every monitor. The order is the order of sums, listings and columns; ids are never renamed.
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

/// The row of that name.
pub fn find(id: &str) -> Option<&'static MonitorSpec> {
    ALL.into_iter().find(|spec| spec.id == id)
}

/// The two generations of monitors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// Fixed bit for bit by the first public package.
    Heuristic,
    /// Ours; judged by measured quality.
    Semantic,
}

impl Suite {
    /// The suite's name on every wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Heuristic => "heuristic",
            Self::Semantic => "semantic",
        }
    }
}

/// Which suites watch a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SuiteChoice {
    /// No monitor at all.
    Neither,
    /// Only the first generation.
    Heuristic,
    /// Only the second.
    Semantic,
    /// Both; the composite is the larger of the two.
    #[default]
    Both,
}

impl SuiteChoice {
    /// Whether the monitors of `suite` watch.
    pub fn includes(self, suite: Suite) -> bool {
        match self {
            Self::Neither => false,
            Self::Both => true,
            Self::Heuristic => suite == Suite::Heuristic,
            Self::Semantic => suite == Suite::Semantic,
        }
    }
}

/// A monitor's weight in each built-in profile. A struct, not a map: a new profile does not compile
/// until every row has its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProfileWeights {
    /// Agents that write code.
    pub coding: f64,
    /// Agents that review changes.
    pub pr_review: f64,
    /// Agents that test.
    pub qa: f64,
}

/// Makes a monitor for a new run.
pub(crate) type Build = fn(&MonitorSettings) -> Box<dyn Monitor>;

/// One row of the table.
#[derive(Debug)]
pub struct MonitorSpec {
    /// Stable name: stored, shown and configured by this.
    pub id: &'static str,
    /// Which generation it belongs to.
    pub suite: Suite,
    /// One sentence for people.
    pub summary: &'static str,
    /// It fires at this score, unless the user says otherwise.
    pub fire_at: f64,
    /// The kind of failure it is a sign of; patterns are looked up by this.
    pub failure_type: &'static str,
    /// Its share of the composite, per profile.
    pub weights: ProfileWeights,
    /// Makes it for a new run.
    pub(crate) build: Build,
    /// Writes the advice from what it saw. A semantic monitor has a second, plainer wording for what goes on after a
    /// notice.
    pub(crate) advice: fn(&Evidence) -> String,
}

impl MonitorSpec {
    /// What to tell the agent, written from the evidence.
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
    /// Rows are told apart by name.
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// What a monitor sees in one step.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Signal {
    /// From 0 (healthy) to 1 (worst).
    pub(crate) score: f64,
    /// There whenever the score is above zero.
    pub(crate) evidence: Option<Evidence>,
}

impl Signal {
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// A score with its reason; a score of zero needs none.
    pub(crate) fn new(score: f64, evidence: impl FnOnce() -> Evidence) -> Self {
        Self { score, evidence: (score > 0.0).then(evidence) }
    }
}

/// One failure mode, watched over one run.
pub(crate) trait Monitor: Send {
    /// Takes the next step. Called once a step, in order.
    fn observe(&mut self, at: StepIndex, facts: &StepFeatures<'_>) -> Signal;

    /// Its advice on what it saw up to this step was shown; what comes next is judged afresh.
    fn advised(&mut self, _at: StepIndex) {}

    /// What it keeps on the heap; bounded by [`HEAP_BYTES_MAX`] however long the run.
    fn heap_bytes(&self) -> usize;
}

/// No monitor may hold more than this.
pub const HEAP_BYTES_MAX: usize = 160 * 1024;

/// The numbers a user may set, one section a monitor.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MonitorSettings {
    /// How tools are to be taken, where their names do not tell.
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

/// A monitor that could not work as configured.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// A number is too small to mean anything.
    #[error("`monitors.{name}` ({value}) must be at least {min}")]
    TooSmall {
        /// The setting.
        name: &'static str,
        /// What it was set to.
        value: u32,
        /// The least that works.
        min: u32,
    },
    /// A number is not one, or out of its range.
    #[error("`monitors.{name}` ({value}) must be a number from {min} to {max}")]
    OutOfRange {
        /// The setting.
        name: &'static str,
        /// What it was set to.
        value: f64,
        /// The least that works.
        min: f64,
        /// The most that works.
        max: f64,
    },
    /// Two settings contradict each other.
    #[error(
        "`monitors.{small}` ({small_value}) must not be larger than `monitors.{large}` ({large_value})"
    )]
    OutOfOrder {
        /// The setting that must be smaller.
        small: &'static str,
        /// Its value.
        small_value: u32,
        /// The setting that must be larger.
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
    /// Checks every section.
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
