//! Numbers as every backend stores them: counts that are cut, amounts that are finite, sums in billionths, times by day.

/// More than anybody uses in a step; keeps every sum far from the end of the numbers.
const COUNT_MAX: u64 = 1_000_000_000_000;
/// Dollars and scores of a step are cut here, for the same reason.
const AMOUNT_MAX: f64 = 100_000.0;
const NANO: f64 = 1e9;
const DAY_MS: i64 = 86_400_000;

/// A count as it is stored.
pub(crate) fn count_in(count: u64) -> i64 {
    i64::try_from(count.min(COUNT_MAX)).unwrap_or(i64::MAX)
}

/// A sum of counts as it is stored.
pub(crate) fn sum_in(sum: u64) -> i64 {
    i64::try_from(sum).unwrap_or(i64::MAX)
}

/// A count as it is read: a negative one cannot have been stored.
pub(crate) fn count_out(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// An amount that can be stored, summed and read again: what is no number is nothing.
pub(crate) fn amount(value: f64) -> f64 {
    if value.is_finite() { value.clamp(-AMOUNT_MAX, AMOUNT_MAX) } else { 0.0 }
}

/// In billionths, so that sums are exact whatever the order.
#[expect(
    clippy::cast_possible_truncation,
    reason = "`amount` keeps it within a thousandth of the range"
)]
pub(crate) fn nano_in(value: f64) -> i64 {
    (amount(value) * NANO).round() as i64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "beyond 2^53 billionths the last digits do not matter"
)]
pub(crate) fn nano_out(nano: i64) -> f64 {
    nano as f64 / NANO
}

/// The day a time lies in.
pub(crate) fn day(at_ms: i64) -> i64 {
    at_ms.div_euclid(DAY_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_can_be_taken_away_exactly() {
        for (value, expected) in [
            (0.1, 100_000_000),
            (1.0 / 3.0, 333_333_333),
            (-0.5, -500_000_000),
            (f64::NAN, 0),
            (f64::INFINITY, 0),
            (1e300, 100_000_000_000_000),
        ] {
            assert_eq!(nano_in(value), expected, "{value}");
        }
        let sum: i64 = [0.1, 0.2, 0.3, -0.1, -0.2].into_iter().map(nano_in).sum();
        assert_eq!(nano_out(sum), 0.3);
    }

    #[test]
    fn counts_are_cut_and_never_negative() {
        assert_eq!([0, 7, u64::MAX].map(count_in), [0, 7, 1_000_000_000_000]);
        assert_eq!([7, -1].map(count_out), [7, 0]);
    }
}
