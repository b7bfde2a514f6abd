//! The result of an evaluation. Serialised as JSON for programs; `crate::table` is its text form.

use serde::Serialize;

use crate::corpus::Split;
use crate::scorer::Statistic;
use crate::stats::Estimate;
use crate::stats::agreement::Agreement;
use crate::stats::auc::Area;
use crate::stats::rate::Rate;

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Seed of all resampling.
    pub seed: u64,
    /// Shorter runs are excluded.
    pub steps_min: usize,
    /// Number of resamples per interval.
    pub resamples: usize,
    /// The scorer that was asked for; the others are baselines.
    pub headline: String,
    /// One entry per set and split.
    pub sets: Vec<SetReport>,
    /// Averages over sets, by scorer, split and statistic.
    pub means: Vec<MeanReport>,
}

/// One split of one set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetReport {
    /// Name of the set.
    pub set: String,
    /// Split of the set.
    pub split: Split,
    /// Number of runs of sufficient length.
    pub runs: usize,
    /// Number of successful runs.
    pub successes: usize,
    /// Number of failed runs; the outcome of the rest is unknown.
    pub failures: usize,
    /// Number of tasks.
    pub tasks: usize,
    /// Median number of steps.
    pub steps_median: usize,
    /// One entry per scorer.
    #[serde(rename = "judges")]
    pub scorers: Vec<ScorerReport>,
}

/// One scorer on one split of one set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScorerReport {
    /// Name of the scorer.
    #[serde(rename = "judge")]
    pub scorer: String,
    /// Successful runs in which any monitor fires.
    pub fires_on_successes: Rate,
    /// Failed runs in which any monitor fires.
    pub fires_on_failures: Rate,
    /// ROC areas of the composite, per statistic.
    pub composite: Vec<CompositeReport>,
    /// ROC areas of the composite over the first steps.
    pub early: Vec<EarlyReport>,
    /// Agreement with labelled steps, if there are any.
    pub agreement: Option<Agreement>,
    /// Each monitor separately.
    pub monitors: Vec<MonitorReport>,
}

impl ScorerReport {
    /// The composite with this statistic.
    pub fn composite(&self, statistic: Statistic) -> Option<&CompositeReport> {
        self.composite.iter().find(|row| row.statistic == statistic)
    }
}

/// ROC areas of the composite.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompositeReport {
    /// Aggregation over the steps of a run.
    pub statistic: Statistic,
    /// Area between all runs.
    pub raw: Option<Area>,
    /// Area between runs of nearly equal length.
    pub matched: Option<Area>,
}

/// ROC area of the composite over the first steps, between runs of at least that length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EarlyReport {
    /// Number of steps.
    pub steps: usize,
    /// Aggregation over the steps.
    pub statistic: Statistic,
    /// Area between all of these runs.
    pub raw: Option<Area>,
}

/// One monitor on one split of one set. The score of a run is the peak.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MonitorReport {
    /// Name of the monitor.
    pub monitor: String,
    /// Successful runs in which it fires.
    pub fires_on_successes: Rate,
    /// Failed runs in which it fires.
    pub fires_on_failures: Rate,
    /// Area between all runs.
    pub raw: Option<Area>,
    /// Area between runs of nearly equal length.
    pub matched: Option<Area>,
    /// Agreement with labelled steps, if there are any.
    pub agreement: Option<Agreement>,
}

/// Average area over the sets with enough pairs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeanReport {
    /// Name of the scorer.
    #[serde(rename = "judge")]
    pub scorer: String,
    /// Split of every set.
    pub split: Split,
    /// Aggregation over the steps of a run.
    pub statistic: Statistic,
    /// The averaged sets.
    pub sets: Vec<String>,
    /// Mean of the raw areas.
    pub raw: f64,
    /// Mean of the matched areas; the interval resamples tasks within every set.
    pub matched: Estimate,
}
