//! Numeric columns: capped counts, finite amounts, sums in billionths, days.

/// Upper limit of a count of one step, far above real values; prevents overflow of sums.
const MAX_COUNT: u64 = 1_000_000_000_000;
/// Upper limit of dollars and scores of one step, for the same reason.
const MAX_AMOUNT: f64 = 100_000.0;
const NANO: f64 = 1e9;
const DAY_MS: i64 = 86_400_000;

/// Converts a count of one step for storage.
pub(crate) fn count_to_db(count: u64) -> i64 {
    i64::try_from(count.min(MAX_COUNT)).unwrap_or(i64::MAX)
}

/// Converts a sum of counts for storage.
pub(crate) fn sum_to_db(sum: u64) -> i64 {
    i64::try_from(sum).unwrap_or(i64::MAX)
}

/// Converts a stored count; negative values become 0.
pub(crate) fn count_from_db(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// Clamps an amount to the valid range; replaces NaN and infinity by 0.
pub(crate) fn amount(value: f64) -> f64 {
    if value.is_finite() { value.clamp(-MAX_AMOUNT, MAX_AMOUNT) } else { 0.0 }
}

/// Converts an amount to billionths, whose sums do not depend on the order.
#[expect(
    clippy::cast_possible_truncation,
    reason = "`amount` keeps it within a thousandth of the range"
)]
pub(crate) fn to_nano(value: f64) -> i64 {
    (amount(value) * NANO).round() as i64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "beyond 2^53 billionths the last digits do not matter"
)]
pub(crate) fn from_nano(nano: i64) -> f64 {
    nano as f64 / NANO
}

/// Returns the day of a time, in days since 1970.
pub(crate) fn day(at_ms: i64) -> i64 {
    at_ms.div_euclid(DAY_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_in_billionths_are_exact() {
        for (value, expected) in [
            (0.1, 100_000_000),
            (1.0 / 3.0, 333_333_333),
            (-0.5, -500_000_000),
            (f64::NAN, 0),
            (f64::INFINITY, 0),
            (1e300, 100_000_000_000_000),
        ] {
            assert_eq!(to_nano(value), expected, "{value}");
        }
        let sum: i64 = [0.1, 0.2, 0.3, -0.1, -0.2].into_iter().map(to_nano).sum();
        assert_eq!(from_nano(sum), 0.3);
    }

    #[test]
    fn counts_are_capped_and_never_negative() {
        assert_eq!([0, 7, u64::MAX].map(count_to_db), [0, 7, 1_000_000_000_000]);
        assert_eq!([7, -1].map(count_from_db), [7, 0]);
    }
}
