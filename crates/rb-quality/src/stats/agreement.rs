//! Agreement of alarms with labelled steps.
//!
//! A labelled step is *hit* when an alarm begins at most `window` steps away. The baseline is the exact expectation for the
//! same number of alarms at random steps of the same run: of the `C(n, k)` placements of `k` alarms on `n` steps,
//! `C(n - c, k)` miss the `c` steps of a label's window.

use serde::Serialize;

use super::rate::Rate;
use super::resample::Resamples;
use super::{Estimate, as_f64};

/// Labels and alarms of one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelledAlarms {
    /// Number of the task.
    pub task: usize,
    /// Number of steps.
    pub steps: usize,
    /// Labelled steps.
    pub labels: Vec<usize>,
    /// Steps at which an alarm begins.
    pub alarms: Vec<usize>,
}

/// Agreement of alarms and labels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    /// Runs with labels.
    pub runs: usize,
    /// Maximum distance of an alarm from its label, in steps.
    pub window: usize,
    /// Labelled steps that are hit.
    pub hits: Rate,
    /// Expected share of hits of random alarms.
    pub hits_at_random: f64,
    /// Difference to the random share; interval by resampling tasks.
    pub lift: Estimate,
    /// Alarms near a label.
    pub precision: Rate,
    /// Expected share of random alarms near a label.
    pub precision_at_random: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    labels: usize,
    hits: usize,
    hits_expected: f64,
    alarms: usize,
    near: usize,
    near_expected: f64,
}

/// Computes the agreement over all runs with labels; `None` without any.
pub fn agreement(
    runs: &[LabelledAlarms],
    window: usize,
    resamples: &Resamples,
) -> Option<Agreement> {
    let counted: Vec<(usize, Count)> = runs
        .iter()
        .map(|run| (run.task, count(run, window)))
        .filter(|(_, c)| c.labels > 0)
        .collect();
    if counted.is_empty() {
        return None;
    }
    let sum = |of: fn(&Count) -> f64| counted.iter().map(|(_, count)| of(count)).sum::<f64>();
    let total = |of: fn(&Count) -> usize| counted.iter().map(|(_, count)| of(count)).sum::<usize>();
    let (labels, alarms) = (total(|c| c.labels), total(|c| c.alarms));
    let parts: Vec<_> = counted
        .iter()
        .map(|(task, c)| (*task, as_f64(c.hits) - c.hits_expected, as_f64(c.labels)))
        .collect();
    let hits = Rate::wilson(total(|c| c.hits), labels);
    let hits_at_random = sum(|c| c.hits_expected) / as_f64(labels);
    Some(Agreement {
        runs: counted.len(),
        window,
        hits,
        hits_at_random,
        lift: Estimate::from_resamples(hits.share.value - hits_at_random, resamples.ratios(&parts)),
        precision: Rate::wilson(total(|c| c.near), alarms),
        precision_at_random: sum(|c| c.near_expected) / as_f64(alarms.max(1)),
    })
}

fn count(run: &LabelledAlarms, window: usize) -> Count {
    let mut labels: Vec<usize> = run.labels.iter().copied().filter(|at| *at < run.steps).collect();
    labels.sort_unstable();
    labels.dedup();
    let mut alarms = run.alarms.clone();
    alarms.sort_unstable();
    alarms.dedup();
    let near = |one: usize, other: usize| one.abs_diff(other) <= window;
    let covers = |label: usize| (0..run.steps).filter(|at| near(*at, label)).count();
    let covered = (0..run.steps).filter(|at| labels.iter().any(|label| near(*at, *label))).count();
    let hit = |label: &&usize| alarms.iter().any(|alarm| near(*alarm, **label));
    Count {
        labels: labels.len(),
        hits: labels.iter().filter(hit).count(),
        hits_expected: labels
            .iter()
            .map(|label| chance_of_a_hit(run.steps, covers(*label), alarms.len()))
            .sum(),
        alarms: alarms.len(),
        near: alarms
            .iter()
            .filter(|alarm| labels.iter().any(|label| near(**alarm, *label)))
            .count(),
        near_expected: as_f64(alarms.len()) * as_f64(covered) / as_f64(run.steps.max(1)),
    }
}

/// Probability that one of `alarms` distinct random steps out of `steps` is among `covered` given ones.
fn chance_of_a_hit(steps: usize, covered: usize, alarms: usize) -> f64 {
    let miss = |placed: usize| {
        let free = steps.saturating_sub(covered + placed);
        as_f64(free) / as_f64(steps.saturating_sub(placed).max(1))
    };
    1.0 - (0..alarms.min(steps)).map(miss).product::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn chances_by_hand() {
        for (steps, covered, alarms, expected) in [
            (10, 3, 1, 0.3),
            (10, 3, 2, 1.0 - 0.7 * (6.0 / 9.0)),
            (10, 3, 8, 1.0),
            (10, 0, 5, 0.0),
            (10, 10, 1, 1.0),
            (10, 3, 0, 0.0),
        ] {
            let chance = chance_of_a_hit(steps, covered, alarms);
            assert!((chance - expected).abs() < 1e-12, "{steps} {covered} {alarms}: {chance}");
        }
    }

    #[test]
    fn agreement_by_hand() {
        let runs = [
            LabelledAlarms { task: 0, steps: 10, labels: vec![4, 4], alarms: vec![5] },
            LabelledAlarms { task: 1, steps: 10, labels: vec![0], alarms: vec![9] },
            LabelledAlarms { task: 2, steps: 10, labels: vec![], alarms: vec![3] },
        ];
        let found = agreement(&runs, 1, &Resamples::new(3, 100, 1)).expect("labels");
        assert_eq!((found.runs, found.hits.hits, found.hits.of), (2, 1, 2));
        assert!((found.hits_at_random - 0.25).abs() < 1e-12);
        assert!((found.lift.value - 0.25).abs() < 1e-12);
        assert_eq!((found.precision.hits, found.precision.of), (1, 2));
        assert!((found.precision_at_random - 0.25).abs() < 1e-12);
        assert_eq!(agreement(&runs[2..], 1, &Resamples::new(3, 10, 1)), None);
    }

    #[test]
    fn random_alarms_have_no_lift() {
        let mut rng = Rng::for_purpose(11, &[]);
        let run = |task| {
            let (steps, alarms) = (8 + rng.below(20), 1 + rng.below(4));
            let mut places: Vec<usize> = (0..steps).collect();
            places.sort_by_cached_key(|_| rng.bits());
            LabelledAlarms {
                task,
                steps,
                labels: vec![rng.below(steps)],
                alarms: places[..alarms].to_vec(),
            }
        };
        let runs: Vec<_> = (0..3000).map(run).collect();
        let found = agreement(&runs, 1, &Resamples::new(3000, 50, 1)).expect("labels");
        assert!(found.lift.value.abs() < 0.02, "{found:?}");
        assert!(
            (found.precision.share.value - found.precision_at_random).abs() < 0.02,
            "{found:?}"
        );
    }
}
