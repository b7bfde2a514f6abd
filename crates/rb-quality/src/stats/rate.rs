//! Proportions with intervals.

use serde::Serialize;

use super::resample::Resamples;
use super::{Estimate, as_f64};

/// The 97.5 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// A proportion: `hits` out of `of`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rate {
    /// Number of hits.
    pub hits: usize,
    /// Number of cases.
    pub of: usize,
    /// The proportion and its interval; 0 of 0 is 0, between 0 and 1.
    #[serde(flatten)]
    pub share: Estimate,
}

impl Rate {
    /// Wilson interval, which stays valid near 0 and 1, where resampling does not.
    pub fn wilson(hits: usize, of: usize) -> Self {
        if of == 0 {
            return Self { hits, of, share: Estimate { value: 0.0, low: 0.0, high: 1.0 } };
        }
        let (n, value) = (as_f64(of), as_f64(hits) / as_f64(of));
        let scale = 1.0 + Z * Z / n;
        let middle = (value + Z * Z / (2.0 * n)) / scale;
        let half = Z / scale * (value * (1.0 - value) / n + Z * Z / (4.0 * n * n)).sqrt();
        let low = if hits == 0 { 0.0 } else { (middle - half).max(0.0) };
        let high = if hits == of { 1.0 } else { (middle + half).min(1.0) };
        Self { hits, of, share: Estimate { value, low, high } }
    }

    /// The wider of the Wilson interval and the interval by resampling tasks, which accounts for runs that share a task.
    pub fn by_task(items: &[(usize, bool)], resamples: &Resamples) -> Self {
        let hits = items.iter().filter(|(_, hit)| *hit).count();
        let wilson = Self::wilson(hits, items.len());
        let part = |(task, hit): &(usize, bool)| (*task, f64::from(u8::from(*hit)), 1.0);
        let parts: Vec<_> = items.iter().map(part).collect();
        let drawn = Estimate::from_resamples(wilson.share.value, resamples.ratios(&parts));
        let share = Estimate {
            value: wilson.share.value,
            low: wilson.share.low.min(drawn.low),
            high: wilson.share.high.max(drawn.high),
        };
        Self { share, ..wilson }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_by_hand() {
        for (hits, of, low, high) in [
            (0, 10, 0.0, 0.2775),
            (5, 10, 0.2366, 0.7634),
            (10, 10, 0.7225, 1.0),
            (1, 100, 0.0018, 0.0545),
            (0, 0, 0.0, 1.0),
        ] {
            let share = Rate::wilson(hits, of).share;
            assert!((share.low - low).abs() < 1e-4, "{hits}/{of}: {}", share.low);
            assert!((share.high - high).abs() < 1e-4, "{hits}/{of}: {}", share.high);
        }
    }

    #[test]
    fn shared_tasks_widen_the_interval() {
        // Ten tasks of ten runs, all or none of them hit: ten observations, not a hundred.
        let items: Vec<_> = (0..100).map(|n| (n / 10, n < 50)).collect();
        let rate = Rate::by_task(&items, &Resamples::new(10, 1000, 7));
        let plain = Rate::wilson(50, 100);
        assert_eq!(rate.share.value, 0.5);
        assert!(rate.share.low < plain.share.low - 0.05, "{rate:?}");
        assert!(rate.share.high > plain.share.high + 0.05, "{rate:?}");
    }
}
