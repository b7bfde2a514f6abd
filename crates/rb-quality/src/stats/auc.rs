//! ROC area: the share of pairs in which a failed run scores above a successful one; ties count half.
//!
//! *Raw* compares every failure with every success. Long runs fail more often and score higher, so a raw area mostly
//! measures length. *Matched* compares only runs of nearly equal length.

use std::collections::BTreeMap;

use serde::Serialize;

use super::resample::Resamples;
use super::{Estimate, as_f64};

/// One run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The run failed.
    pub failed: bool,
    /// Score of the run.
    pub score: f64,
    /// Number of steps.
    pub steps: usize,
    /// Number of the task.
    pub task: usize,
}

/// An area and its number of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Area {
    /// The area and its interval.
    #[serde(flatten)]
    pub area: Estimate,
    /// Compared pairs of a failure and a success.
    pub pairs: usize,
}

/// Returns true if lengths differ by at most one step or 10 % of the longer.
pub fn nearly_equal(one: usize, other: usize) -> bool {
    let apart = one.abs_diff(other);
    apart <= 1 || 10 * apart <= one.max(other)
}

/// Raw area; `None` unless there are failures and successes. O(n log n).
pub fn auc(samples: &[Sample]) -> Option<f64> {
    let value = weighted(&sorted(samples), &|_| 1.0);
    value.is_finite().then_some(value)
}

/// Raw area with its interval.
pub fn raw_area(samples: &[Sample], resamples: &Resamples) -> Option<Area> {
    let sorted = sorted(samples);
    let value = weighted(&sorted, &|_| 1.0);
    if !value.is_finite() {
        return None;
    }
    let draw = |times: &[f64]| weighted(&sorted, &|task| times.get(task).copied().unwrap_or(0.0));
    let area = Estimate::from_resamples(value, resamples.iter().map(draw).collect());
    let failures = samples.iter().filter(|sample| sample.failed).count();
    Some(Area { area, pairs: failures * (samples.len() - failures) })
}

fn sorted(samples: &[Sample]) -> Vec<Sample> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(|a, b| a.score.total_cmp(&b.score));
    sorted
}

/// Area of samples sorted by score, each weighted by its task.
fn weighted(sorted: &[Sample], times: &dyn Fn(usize) -> f64) -> f64 {
    let (mut below, mut failures, mut wins) = (0.0, 0.0, 0.0);
    for ties in sorted.chunk_by(|a, b| a.score == b.score) {
        let sum = |failed: bool| -> f64 {
            let each = ties.iter().filter(|sample| sample.failed == failed);
            each.map(|sample| times(sample.task)).sum()
        };
        let (tied_successes, tied_failures) = (sum(false), sum(true));
        wins += tied_failures * (below + tied_successes / 2.0);
        below += tied_successes;
        failures += tied_failures;
    }
    wins / (below * failures)
}

/// Comparisons between runs of nearly equal length, summed by pair of tasks, so that the cost of one resample depends on the
/// number of task pairs only.
#[derive(Debug, Clone, Default)]
pub struct Matched {
    cells: Vec<Cell>,
    pairs: usize,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    failed_task: usize,
    other_task: usize,
    wins: f64,
    pairs: f64,
}

impl Matched {
    /// Compares every failure with the successes of nearly equal length.
    pub fn new(samples: &[Sample]) -> Self {
        let mut successes: Vec<&Sample> = samples.iter().filter(|sample| !sample.failed).collect();
        successes.sort_by_key(|sample| sample.steps);
        let mut cells: BTreeMap<(usize, usize), (f64, usize)> = BTreeMap::new();
        for failure in samples.iter().filter(|sample| sample.failed) {
            let shorter =
                |s: &&Sample| s.steps < failure.steps && !nearly_equal(s.steps, failure.steps);
            let from = successes.partition_point(shorter);
            let near = successes.get(from..).unwrap_or_default().iter();
            for success in near.take_while(|s| nearly_equal(s.steps, failure.steps)) {
                let cell = cells.entry((failure.task, success.task)).or_default();
                cell.0 += match failure.score.total_cmp(&success.score) {
                    std::cmp::Ordering::Greater => 1.0,
                    std::cmp::Ordering::Equal => 0.5,
                    std::cmp::Ordering::Less => 0.0,
                };
                cell.1 += 1;
            }
        }
        let pairs = cells.values().map(|(_, pairs)| pairs).sum();
        let cell = |((failed_task, other_task), (wins, pairs))| Cell {
            failed_task,
            other_task,
            wins,
            pairs: as_f64(pairs),
        };
        Self { cells: cells.into_iter().map(cell).collect(), pairs }
    }

    /// Number of pairs.
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// Matched area; `None` without pairs.
    pub fn auc(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.weighted(&|_| 1.0))
    }

    /// Area of every resample; NaN if a resample has no pair.
    pub fn drawn(&self, resamples: &Resamples) -> Vec<f64> {
        let draw = |times: &[f64]| self.weighted(&|task| times.get(task).copied().unwrap_or(0.0));
        resamples.iter().map(draw).collect()
    }

    /// Matched area with its interval.
    pub fn area(&self, resamples: &Resamples) -> Option<Area> {
        let area = Estimate::from_resamples(self.auc()?, self.drawn(resamples));
        Some(Area { area, pairs: self.pairs })
    }

    fn weighted(&self, times: &dyn Fn(usize) -> f64) -> f64 {
        let (mut wins, mut pairs) = (0.0, 0.0);
        for cell in &self.cells {
            let times = times(cell.failed_task) * times(cell.other_task);
            wins += times * cell.wins;
            pairs += times * cell.pairs;
        }
        wins / pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    fn samples(rows: &[(u8, f64, usize)]) -> Vec<Sample> {
        let each = rows.iter().enumerate();
        each.map(|(task, (failed, score, steps))| Sample {
            failed: *failed == 1,
            score: *score,
            steps: *steps,
            task,
        })
        .collect()
    }

    #[test]
    fn areas_by_hand() {
        for (rows, raw, matched, pairs) in [
            // Two failures above two successes, all of one length.
            (vec![(0, 0.1, 5), (0, 0.2, 5), (1, 0.3, 5), (1, 0.4, 5)], Some(1.0), Some(1.0), 4),
            // One win of four, one tie of four.
            (vec![(0, 0.3, 5), (0, 0.9, 5), (1, 0.3, 5), (1, 0.4, 5)], Some(0.375), Some(0.375), 4),
            // All tied.
            (vec![(0, 0.5, 9), (1, 0.5, 9)], Some(0.5), Some(0.5), 1),
            // Length explains everything: the only matched pair goes the other way.
            (vec![(0, 0.1, 5), (0, 0.8, 20), (1, 0.7, 21)], Some(0.5), Some(0.0), 1),
            // Too far apart to be matched.
            (vec![(0, 0.1, 5), (1, 0.7, 21)], Some(1.0), None, 0),
            // One kind only.
            (vec![(1, 0.1, 5), (1, 0.7, 21)], None, None, 0),
            (vec![], None, None, 0),
        ] {
            let samples = samples(&rows);
            let found = Matched::new(&samples);
            assert_eq!(
                (auc(&samples), found.auc(), found.pairs()),
                (raw, matched, pairs),
                "{rows:?}"
            );
        }
    }

    #[test]
    fn nearly_equal_lengths() {
        for (one, other, expected) in [
            (5, 5, true),
            (5, 6, true),
            (5, 7, false),
            (18, 20, true),
            (17, 20, false),
            (100, 90, true),
            (100, 89, false),
            (0, 1, true),
        ] {
            assert_eq!(nearly_equal(one, other), expected, "{one} {other}");
            assert_eq!(nearly_equal(other, one), expected, "{other} {one}");
        }
    }

    #[test]
    fn shuffled_labels_have_no_area() {
        let mut rng = Rng::for_purpose(5, &[]);
        let rows: Vec<_> = (0..2000)
            .map(|n| (u8::try_from(rng.below(2)).expect("small"), as_f64(n % 97), 5 + n % 13))
            .collect();
        let samples = samples(&rows);
        assert!((auc(&samples).expect("both") - 0.5).abs() < 0.03);
        assert!((Matched::new(&samples).auc().expect("pairs") - 0.5).abs() < 0.03);
    }

    fn any_rows() -> impl Strategy<Value = Vec<(u8, f64, usize)>> {
        prop::collection::vec((0u8..2, (0u8..20).prop_map(f64::from), 1usize..40), 0..60)
    }

    proptest! {
        #[test]
        fn a_monotone_map_changes_nothing(rows in any_rows()) {
            let mapped: Vec<_> = rows.iter().map(|(f, s, n)| (*f, (s / 3.0).exp() - 7.0, *n)).collect();
            let (before, after) = (samples(&rows), samples(&mapped));
            prop_assert_eq!(auc(&before), auc(&after));
            prop_assert_eq!(Matched::new(&before).auc(), Matched::new(&after).auc());
        }

        #[test]
        fn sorting_agrees_with_counting(rows in any_rows()) {
            let samples = samples(&rows);
            let (mut wins, mut pairs, mut near_wins, mut near) = (0.0, 0, 0.0, 0);
            for failure in samples.iter().filter(|s| s.failed) {
                for success in samples.iter().filter(|s| !s.failed) {
                    let win = if failure.score > success.score { 1.0 }
                        else if failure.score == success.score { 0.5 } else { 0.0 };
                    wins += win;
                    pairs += 1;
                    if nearly_equal(failure.steps, success.steps) {
                        near_wins += win;
                        near += 1;
                    }
                }
            }
            prop_assert_eq!(auc(&samples), (pairs > 0).then(|| wins / as_f64(pairs)));
            let matched = Matched::new(&samples);
            prop_assert_eq!(matched.pairs(), near);
            prop_assert_eq!(matched.auc(), (near > 0).then(|| near_wins / as_f64(near)));
        }

        #[test]
        fn an_interval_contains_its_estimate(rows in any_rows(), seed in 0u64..50) {
            let samples = samples(&rows);
            let resamples = Resamples::new(samples.len(), 50, seed);
            let areas = [raw_area(&samples, &resamples), Matched::new(&samples).area(&resamples)];
            for Area { area, .. } in areas.into_iter().flatten() {
                prop_assert!(area.low <= area.value && area.value <= area.high);
                prop_assert!((0.0..=1.0).contains(&area.low) && (0.0..=1.0).contains(&area.high));
            }
        }
    }
}
