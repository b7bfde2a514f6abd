//! What each monitor did over all sets together: a few whole numbers a monitor, small enough to keep.
//!
//! No text of any run is in it, so it can be checked in beside the documentation it is quoted in.

use serde::Serialize;

use super::{JudgeReport, MonitorReport, Report};
use crate::corpus::Split;
use crate::splice::Kind;
use crate::stats::real;

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PerMonitor {
    /// Sets that were measured.
    pub sets: usize,
    /// Runs that were long enough.
    pub runs: usize,
    /// Shorter runs were left out.
    pub steps_min: usize,
    /// One row a monitor of every judge, in the order of the judges.
    pub monitors: Vec<MonitorFigures>,
}

/// So many of so many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// How many.
    pub hits: usize,
    /// Of how many.
    pub of: usize,
}

/// One monitor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MonitorFigures {
    /// Its name.
    pub monitor: String,
    /// Successful runs in which it fires.
    pub fires_on_successes: Count,
    /// Failed runs in which it fires.
    pub fires_on_failures: Count,
    /// Plants that are its business, and those it found in time; a row a kind.
    pub planted: Vec<Planted>,
    /// Alarms in runs with labels, and those near a label; `None` without labels or alarms.
    pub near_labels: Option<NearLabels>,
}

/// The plants of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Planted {
    /// What was planted, in words.
    pub planted: &'static str,
    /// Found by this monitor.
    #[serde(flatten)]
    pub found: Count,
}

/// Precision where people have marked steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NearLabels {
    /// Alarms near a label.
    #[serde(flatten)]
    pub alarms: Count,
    /// The share that as many alarms at random steps would reach, to three digits.
    pub at_random: f64,
}

/// Adds up the sets of a report.
pub fn per_monitor(report: &Report) -> PerMonitor {
    let whole: Vec<_> = report.sets.iter().filter(|set| set.split == Split::All).collect();
    let mut monitors: Vec<MonitorFigures> = Vec::new();
    for set in &whole {
        for judge in &set.judges {
            for monitor in &judge.monitors {
                // The suite that was asked about may hold monitors that also stand beside it.
                if !monitors.iter().any(|known| known.monitor == monitor.monitor) {
                    monitors.push(figures_of(report, &judge.judge, &monitor.monitor));
                }
            }
        }
    }
    PerMonitor {
        sets: whole.len(),
        runs: whole.iter().map(|set| set.runs).sum(),
        steps_min: report.steps_min,
        monitors,
    }
}

fn figures_of(report: &Report, judge: &str, monitor: &str) -> MonitorFigures {
    let (mut successes, mut failures) = (Count::default(), Count::default());
    let (mut alarms, mut by_chance) = (Count::default(), 0.0);
    for row in rows(report, judge, monitor) {
        successes.add(row.fires_on_successes.hits, row.fires_on_successes.of);
        failures.add(row.fires_on_failures.hits, row.fires_on_failures.of);
        if let Some(agreement) = &row.agreement {
            alarms.add(agreement.precision.hits, agreement.precision.of);
            by_chance += agreement.precision_at_random * real(agreement.precision.of);
        }
    }
    let at_random = (by_chance / real(alarms.of.max(1)) * 1e3).round() / 1e3;
    MonitorFigures {
        monitor: monitor.to_owned(),
        fires_on_successes: successes,
        fires_on_failures: failures,
        planted: planted(report, judge, monitor),
        near_labels: (alarms.of > 0).then_some(NearLabels { alarms, at_random }),
    }
}

/// The monitor's rows, a set each.
fn rows<'r>(
    report: &'r Report,
    judge: &'r str,
    monitor: &'r str,
) -> impl Iterator<Item = &'r MonitorReport> {
    let whole = report.sets.iter().filter(|set| set.split == Split::All);
    let judges = whole.flat_map(|set| &set.judges);
    let of_judge = judges.filter(move |row: &&JudgeReport| row.judge == judge);
    of_judge.flat_map(|row| &row.monitors).filter(move |row| row.monitor == monitor)
}

fn planted(report: &Report, judge: &str, monitor: &str) -> Vec<Planted> {
    let mut planted = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|kind| kind.intended().contains(&monitor)) {
        let mut pooled = report.pooled_plants(Split::All);
        if let Some(row) = pooled.find(|row| row.judge == judge && row.kind == kind) {
            let found = row.found_by.iter().find(|by| by.monitor == monitor);
            let hits = found.map_or(0, |by| by.plants);
            planted
                .push(Planted { planted: kind.plural(), found: Count { hits, of: row.recall.of } });
        }
    }
    planted
}

impl Count {
    fn add(&mut self, hits: usize, of: usize) {
        self.hits += hits;
        self.of += of;
    }
}

/// As indented JSON.
pub fn json(report: &Report) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&per_monitor(report))
}
