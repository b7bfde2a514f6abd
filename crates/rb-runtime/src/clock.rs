//! Current time and its text formats.

use jiff::Timestamp;

const DAY_MS: i64 = 86_400_000;

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Formats a time as RFC 3339 in UTC with milliseconds and `Z`.
pub fn format_rfc3339(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    format!("{time:.3}")
}

/// Parses an RFC 3339 time to milliseconds since 1970.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// Days since 1970.
pub fn day_of(ms: i64) -> i64 {
    ms.div_euclid(DAY_MS)
}

/// Formats a day since 1970 as `YYYY-MM-DD`.
pub fn format_day(day: i64) -> String {
    format_rfc3339(day.saturating_mul(DAY_MS)).chars().take(10).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_and_parsed() {
        let cases =
            [(0, "1970-01-01T00:00:00.000Z"), (1_763_251_200_042, "2025-11-16T00:00:00.042Z")];
        for (ms, text) in cases {
            assert_eq!((format_rfc3339(ms).as_str(), parse_rfc3339(text)), (text, Some(ms)));
        }
        assert_eq!((day_of(86_399_999), day_of(86_400_000), day_of(-1)), (0, 1, -1));
        assert_eq!(format_day(1), "1970-01-02");
    }
}
