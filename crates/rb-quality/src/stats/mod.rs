//! Proportions, ROC areas, intervals and agreement.
//!
//! All intervals are 95 % intervals. Runs of one task are not independent, so tasks are resampled with all their runs.

/// Agreement of alarms with labelled steps.
pub mod agreement;
/// ROC areas.
pub mod auc;
/// Proportions with intervals.
pub mod rate;
/// Bootstrap over tasks.
pub mod resample;

use serde::Serialize;

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl Estimate {
    /// Percentile interval of resampled values, widened to contain the value itself.
    pub fn from_resamples(value: f64, mut resampled: Vec<f64>) -> Self {
        resampled.retain(|value| value.is_finite());
        resampled.sort_unstable_by(f64::total_cmp);
        let low = percentile(&resampled, 25).unwrap_or(value).min(value);
        let high = percentile(&resampled, 975).unwrap_or(value).max(value);
        Self { value, low, high }
    }
}

/// Value at a position in thousandths of a sorted list.
fn percentile(sorted: &[f64], thousandths: usize) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last * thousandths + 500) / 1000).copied()
}

/// Median; the lower one of an even number of values.
pub fn median(mut values: Vec<usize>) -> Option<usize> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// Converts a count; exact below 2^32.
pub fn as_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_medians() {
        let sorted: Vec<f64> = (0..=1000).map(as_f64).collect();
        assert_eq!((percentile(&sorted, 25), percentile(&sorted, 975)), (Some(25.0), Some(975.0)));
        assert_eq!(percentile(&[], 25), None);
        assert_eq!(
            (median(vec![9, 1, 4]), median(vec![4, 1]), median(vec![])),
            (Some(4), Some(1), None)
        );
        let tight = Estimate::from_resamples(0.5, vec![0.6, 0.7, f64::NAN]);
        assert_eq!((tight.low, tight.high), (0.5, 0.7));
    }
}
