//! The numbers: rates, areas, intervals, agreement.
//!
//! Every interval is a 95 % one. Where runs share tasks they are not independent, so intervals come from
//! drawing *tasks* again and again, with all their runs (`resample`).

/// How alarms and people agree on the step.
pub mod agreement;
/// The area under the curve, between all runs and between runs of equal length.
pub mod auc;
/// Shares with their intervals.
pub mod rate;
/// Drawing tasks with replacement.
pub mod resample;

use serde::Serialize;

/// A number with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Estimate {
    /// The percentile interval of resampled values around an estimate.
    ///
    /// In tiny samples a percentile interval can miss its own estimate; it is then widened to hold it.
    pub fn from_resamples(value: f64, mut resampled: Vec<f64>) -> Self {
        resampled.retain(|value| value.is_finite());
        resampled.sort_unstable_by(f64::total_cmp);
        let low = percentile(&resampled, 25).unwrap_or(value).min(value);
        let high = percentile(&resampled, 975).unwrap_or(value).max(value);
        Self { value, low, high }
    }
}

/// The value at that many thousandths of a sorted list.
fn percentile(sorted: &[f64], thousandths: usize) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last * thousandths + 500) / 1000).copied()
}

/// The middle of a list; of two middles the lower.
pub fn median(mut values: Vec<usize>) -> Option<usize> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// A count as a number to reckon with.
pub(crate) fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_medians() {
        let sorted: Vec<f64> = (0..=1000).map(real).collect();
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
