//! The targets, met or missed: what the headline judge must reach.

use crate::corpus::Split;
use crate::judge::Statistic;
use crate::report::{Bound, PlantReport, Report, Unit, Verdict};
use crate::splice::Kind;
use crate::stats::rate::Rate;

/// In no set may a monitor fire on more of the successful runs than this.
const FIRES_ON_SUCCESSES_MAX: f64 = 0.10;
/// The average matched area of the composite.
const MATCHED_AREA_MIN: f64 = 0.62;
/// Runs with an alarm before the plant.
const ALARMS_BEFORE_MAX: f64 = 0.05;

/// The share of plants of a kind that must be found in time.
fn recall_min(kind: Kind) -> f64 {
    match kind {
        Kind::Loop | Kind::UnverifiedFinish => 0.85,
        Kind::Revert | Kind::Contradiction | Kind::Drift => 0.60,
    }
}

/// A verdict a target and split; the splits of a target stand together.
pub(crate) fn verdicts(report: &Report) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    verdicts.extend(Split::ALL.map(|split| silence(report, split)));
    for statistic in [Statistic::Mean, Statistic::Peak] {
        verdicts.extend(Split::ALL.map(|split| area(report, split, statistic)));
    }
    for kind in Kind::ALL {
        verdicts.extend(Split::ALL.map(|split| recall(report, split, kind)));
    }
    verdicts.extend(Split::ALL.map(|split| before(report, split)));
    verdicts
}

/// The set in which the headline judge is loudest on successes.
fn silence(report: &Report, split: Split) -> Verdict {
    let bound = Bound::AtMost(FIRES_ON_SUCCESSES_MAX);
    let sets = report.sets.iter().filter(|set| set.split == split && set.successes > 0);
    let loudest = sets
        .filter_map(|set| {
            let judge = set.judges.iter().find(|judge| judge.judge == report.headline)?;
            Some((judge.fires_on_successes, &set.set))
        })
        .max_by(|(a, _), (b, _)| a.share.value.total_cmp(&b.share.value));
    Verdict {
        target: format!(
            "fires on at most {:.0} % of the successful runs in every set",
            FIRES_ON_SUCCESSES_MAX * 100.0
        ),
        bound,
        unit: Unit::Share,
        kind: None,
        split,
        value: loudest.map(|(rate, _)| rate.share.value),
        detail: loudest.map_or_else(String::new, |(rate, set)| {
            format!("loudest in {set}: {} of {}", rate.hits, rate.of)
        }),
        met: loudest.map(|(rate, _)| bound.is_met_by(rate.share.value)),
    }
}

fn area(report: &Report, split: Split, statistic: Statistic) -> Verdict {
    let mean = report.means.iter().find(|mean| {
        mean.judge == report.headline && mean.split == split && mean.statistic == statistic
    });
    let name = match statistic {
        Statistic::Mean => "mean",
        Statistic::Peak => "peak",
        Statistic::Last => "last",
    };
    let bound = Bound::AtLeast(MATCHED_AREA_MIN);
    Verdict {
        target: format!("matched AUC of the composite's {name} is at least {MATCHED_AREA_MIN:.2}"),
        bound,
        unit: Unit::Area,
        kind: None,
        split,
        value: mean.map(|mean| mean.matched.value),
        detail: mean.map_or_else(String::new, |mean| {
            let (low, high) = (mean.matched.low, mean.matched.high);
            format!("{low:.2} to {high:.2}, sets averaged: {}", mean.sets.len())
        }),
        met: mean.map(|mean| bound.is_met_by(mean.matched.value)),
    }
}

fn recall(report: &Report, split: Split, kind: Kind) -> Verdict {
    let min = recall_min(kind);
    let bound = Bound::AtLeast(min);
    let all = report.plants.iter().find(|plant| {
        plant.judge == report.headline
            && plant.kind == kind
            && plant.split == split
            && plant.set.is_none()
            && plant.variant.is_none()
    });
    Verdict {
        target: format!("finds at least {:.0} % of planted {}", min * 100.0, kind.plural()),
        bound,
        unit: Unit::Share,
        kind: Some(kind),
        split,
        value: all.map(|plant| plant.recall.share.value),
        detail: all.map_or_else(String::new, |plant| {
            format!("{} of {}", plant.recall.hits, plant.recall.of)
        }),
        met: all.map(|plant| bound.is_met_by(plant.recall.share.value)),
    }
}

/// The kind with the most alarms before the plant.
fn before(report: &Report, split: Split) -> Verdict {
    let all = report.plants.iter().filter(|plant| {
        plant.judge == report.headline
            && plant.split == split
            && plant.set.is_none()
            && plant.variant.is_none()
    });
    let all: Vec<&PlantReport> = all.collect();
    let bound = Bound::AtMost(ALARMS_BEFORE_MAX);
    let pooled = Rate::wilson(
        all.iter().map(|plant| plant.alarms_before.hits).sum(),
        all.iter().map(|plant| plant.alarms_before.of).sum(),
    );
    let worst = all
        .into_iter()
        .max_by(|a, b| a.alarms_before.share.value.total_cmp(&b.alarms_before.share.value));
    Verdict {
        target: format!(
            "raises an alarm before the plant in at most {:.0} % of the runs",
            ALARMS_BEFORE_MAX * 100.0
        ),
        bound,
        unit: Unit::Share,
        kind: None,
        split,
        value: worst.map(|plant| plant.alarms_before.share.value),
        detail: worst.map_or_else(String::new, |plant| {
            let rate = plant.alarms_before;
            let kind = plant.kind.plural();
            let (hits, of) = (pooled.hits, pooled.of);
            format!(
                "most before {kind}: {} of {}; of all plants {hits} of {of}",
                rate.hits, rate.of
            )
        }),
        met: worst.map(|plant| bound.is_met_by(plant.alarms_before.share.value)),
    }
}
