//! Sums per monitor over all sets, committed as `docs/figures.json`. They contain no text of a run. The field names are
//! those of the published file.

use rb_quality::corpus::Split;
use rb_quality::report::{MonitorReport, Report};
use rb_quality::stats::as_f64;
use serde::Serialize;

use crate::fault_injection::FaultKind;
use crate::faults::Detection;

/// The content of the file.
#[derive(Serialize)]
pub(crate) struct Figures {
    sets: usize,
    runs: usize,
    steps_min: usize,
    monitors: Vec<MonitorFigures>,
}

/// A proportion: `hits` out of `of`.
#[derive(Clone, Copy, Default, Serialize)]
struct Count {
    hits: usize,
    of: usize,
}

#[derive(Serialize)]
struct MonitorFigures {
    monitor: String,
    fires_on_successes: Count,
    fires_on_failures: Count,
    /// Detected faults of the kinds that the monitor is meant for.
    planted: Vec<Injected>,
    /// Alarms in runs with labels; `None` without any.
    near_labels: Option<NearLabels>,
}

#[derive(Serialize)]
struct Injected {
    planted: &'static str,
    #[serde(flatten)]
    detected: Count,
}

#[derive(Serialize)]
struct NearLabels {
    #[serde(flatten)]
    alarms: Count,
    /// Expected share of random alarms, rounded to three digits.
    at_random: f64,
}

/// Sums the sets of a report.
pub(crate) fn sum(report: &Report, detections: &[Detection]) -> Figures {
    let whole: Vec<_> = report.sets.iter().filter(|set| set.split == Split::All).collect();
    let mut monitors: Vec<MonitorFigures> = Vec::new();
    for scorer in whole.iter().flat_map(|set| &set.scorers) {
        for MonitorReport { monitor, .. } in &scorer.monitors {
            if monitors.iter().all(|known| known.monitor != *monitor) {
                let scorers = whole.iter().flat_map(|set| &set.scorers);
                let rows = scorers.flat_map(|scorer| &scorer.monitors);
                let rows: Vec<_> = rows.filter(|row| row.monitor == *monitor).collect();
                let detections = detections.iter().filter(|found| found.scorer == scorer.scorer);
                monitors.push(figures(monitor, &rows, &detections.collect::<Vec<_>>()));
            }
        }
    }
    Figures {
        sets: whole.len(),
        runs: whole.iter().map(|set| set.runs).sum(),
        steps_min: report.steps_min,
        monitors,
    }
}

fn figures(monitor: &str, rows: &[&MonitorReport], detections: &[&Detection]) -> MonitorFigures {
    let (mut successes, mut failures, mut alarms) =
        (Count::default(), Count::default(), Count::default());
    let mut random = 0.0;
    for row in rows {
        successes.add(row.fires_on_successes.hits, row.fires_on_successes.of);
        failures.add(row.fires_on_failures.hits, row.fires_on_failures.of);
        if let Some(agreement) = &row.agreement {
            alarms.add(agreement.precision.hits, agreement.precision.of);
            random += agreement.precision_at_random * as_f64(agreement.precision.of);
        }
    }
    let injected = |kind: FaultKind| {
        let found = detections.iter().find(|found| found.kind == kind)?;
        let hits = found.detected_by.iter().filter(|by| by.contains(&monitor)).count();
        Some(Injected { planted: kind.plural(), detected: Count { hits, of: found.faults } })
    };
    let kinds = FaultKind::ALL.into_iter().filter(|kind| kind.intended().contains(&monitor));
    let at_random = (random / as_f64(alarms.of.max(1)) * 1e3).round() / 1e3;
    MonitorFigures {
        monitor: monitor.to_owned(),
        fires_on_successes: successes,
        fires_on_failures: failures,
        planted: kinds.filter_map(injected).collect(),
        near_labels: (alarms.of > 0).then_some(NearLabels { alarms, at_random }),
    }
}

impl Count {
    fn add(&mut self, hits: usize, of: usize) {
        self.hits += hits;
        self.of += of;
    }
}
