//! What time it is, and how it is written.

use jiff::Timestamp;

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// A time as it stands in replies: UTC with milliseconds and `Z`.
pub fn iso(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    format!("{time:.3}")
}

/// The time that `iso` wrote.
pub fn read_iso(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// Days since 1970.
pub(crate) fn day_of(ms: i64) -> i64 {
    ms.div_euclid(86_400_000)
}

/// A day as it stands in replies: `YYYY-MM-DD`.
pub(crate) fn iso_day(day: i64) -> String {
    iso(day.saturating_mul(86_400_000)).chars().take(10).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_one_way() {
        let cases =
            [(0, "1970-01-01T00:00:00.000Z"), (1_763_251_200_042, "2025-11-16T00:00:00.042Z")];
        for (ms, text) in cases {
            assert_eq!((iso(ms).as_str(), read_iso(text)), (text, Some(ms)));
        }
        assert_eq!((day_of(86_399_999), day_of(86_400_000), day_of(-1)), (0, 1, -1));
        assert_eq!(iso_day(1), "1970-01-02");
    }
}
