//! Bootstrap over tasks: resamples tasks with replacement, each with all its runs.

use std::collections::BTreeMap;

use crate::rng::Rng;

/// Frequency of each task in each resample. Created once per set and shared by all its statistics.
#[derive(Debug, Clone)]
pub struct Resamples {
    draws: Vec<Vec<f64>>,
}

impl Resamples {
    /// Draws `count` resamples of `tasks` tasks.
    pub fn new(tasks: usize, count: usize, seed: u64) -> Self {
        let mut rng = Rng::for_purpose(seed, &["resample"]);
        let draw = |_| {
            let mut times = vec![0.0; tasks];
            for _ in 0..tasks {
                if let Some(task) = times.get_mut(rng.below(tasks)) {
                    *task += 1.0;
                }
            }
            times
        };
        Self { draws: (0..count).map(draw).collect() }
    }

    /// Weights of the tasks, per resample.
    pub fn iter(&self) -> impl Iterator<Item = &[f64]> {
        self.draws.iter().map(Vec::as_slice)
    }

    /// Ratio of weighted sums per resample; `parts` are (task, numerator, denominator).
    pub fn ratios(&self, parts: &[(usize, f64, f64)]) -> Vec<f64> {
        let ratio = |times: &[f64]| {
            let (mut above, mut below) = (0.0, 0.0);
            for (task, part_above, part_below) in parts {
                let times = times.get(*task).copied().unwrap_or(0.0);
                above += times * part_above;
                below += times * part_below;
            }
            above / below
        };
        self.iter().map(ratio).collect()
    }
}

/// Numbers the tasks of a corpus in the order of their keys.
pub fn number_tasks<'a>(keys: impl Iterator<Item = &'a str>) -> (Vec<usize>, usize) {
    let keys: Vec<&str> = keys.collect();
    let mut numbers: BTreeMap<&str, usize> = keys.iter().map(|key| (*key, 0)).collect();
    for (number, slot) in numbers.values_mut().enumerate() {
        *slot = number;
    }
    let tasks = keys.iter().map(|key| numbers.get(key).copied().unwrap_or(0)).collect();
    (tasks, numbers.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resample_has_as_many_tasks_as_the_corpus() {
        let resamples = Resamples::new(40, 20, 1);
        assert!(resamples.iter().all(|times| times.iter().sum::<f64>() == 40.0));
        let first: Vec<_> = resamples.iter().next().expect("a draw").to_vec();
        assert_ne!(first, vec![1.0; 40]);
        assert_eq!(Resamples::new(0, 3, 1).iter().count(), 3);
    }

    #[test]
    fn tasks_are_numbered_by_key() {
        assert_eq!(number_tasks(["b", "a", "b"].into_iter()), (vec![1, 0, 1], 2));
    }
}
