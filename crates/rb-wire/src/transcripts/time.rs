//! Parser of timestamps, in milliseconds since 1970 in UTC.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::lazy_json::Json;

/// Reads a time: ISO 8601 in a string, or seconds, milliseconds, microseconds or nanoseconds as a number. A time without
/// a zone is UTC.
pub(super) fn time_ms(value: Json<'_>) -> Option<u64> {
    if let Some(number) = value.number() {
        return from_number(number);
    }
    from_text(&value.text()?)
}

/// Derives the unit from the size: all times are after 2001 and before 2286.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the ranges say that it fits"
)]
fn from_number(number: f64) -> Option<u64> {
    match number {
        1e9..1e10 => Some((number * 1e3) as u64),
        1e12..1e13 => Some(number as u64),
        1e15..1e16 => Some((number / 1e3) as u64),
        1e18..1e19 => Some((number / 1e6) as u64),
        _ => None,
    }
}

fn from_text(text: &str) -> Option<u64> {
    let text = text.trim();
    // A date without a time is ignored.
    let ms = match text.parse::<Timestamp>() {
        Ok(time) => time.as_millisecond(),
        Err(_) if text.len() > "2025-10-24".len() => {
            let time: DateTime = text.parse().ok()?;
            time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond()
        }
        Err(_) => return None,
    };
    u64::try_from(ms).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_every_spelling() {
        for (json, expected) in [
            (r#""1970-01-01T00:00:00Z""#, Some(0)),
            (r#""2025-10-24T20:50:22.798Z""#, Some(1_761_339_022_798)),
            (r#""2025-10-24 20:50:22""#, Some(1_761_339_022_000)),
            (r#""2025-10-24T22:50:22.7985+02:00""#, Some(1_761_339_022_798)),
            (r#""2025-10-24T20:50:22.1-0030""#, Some(1_761_340_822_100)),
            (r#""2024-02-29T00:00:00Z""#, Some(1_709_164_800_000)),
            ("1761339022", Some(1_761_339_022_000)),
            ("1761339022.798", Some(1_761_339_022_798)),
            ("1761339022798", Some(1_761_339_022_798)),
            ("1761339022798000", Some(1_761_339_022_798)),
            (r#""1761339022798000000""#, Some(1_761_339_022_798)),
            (r#""2025-13-24T20:50:22Z""#, None),
            (r#""2025-10-24""#, None),
            (r#""yesterday at ten""#, None),
            (r#""éééééééééééééé""#, None),
            ("12", None),
            ("null", None),
        ] {
            let value = Json::first(json).expect("a value");
            assert_eq!(time_ms(value), expected, "{json}");
        }
    }
}
