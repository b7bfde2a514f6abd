//! Times as transcripts write them, as milliseconds since 1970 in UTC.

use super::lazy_json::Json;

/// A time in any of the ways people write one: ISO 8601 in a string, or seconds, milliseconds,
/// microseconds or nanoseconds as a number. A time without a zone is taken as UTC.
pub(super) fn time_ms(value: Json<'_>) -> Option<u64> {
    if let Some(number) = value.number() {
        return from_number(number);
    }
    from_text(&value.text()?)
}

/// Which unit is meant shows in the size: all of them are after 2001 and before 2286.
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
    let (date, rest) = text.trim().split_at_checked(10)?;
    let [year, month, day] = numbers(date, '-')?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let end = rest.find(['Z', 'z', '+', '-', ' ']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at_checked(end)?;
    let (clock, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, ""));
    let [hour, minute, second] = numbers(clock, ':')?;
    let is_right = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_right || hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    let ms = (seconds - zone_seconds(zone.trim())?) * 1_000 + milliseconds(fraction)?;
    u64::try_from(ms).ok()
}

fn numbers(text: &str, between: char) -> Option<[i64; 3]> {
    let mut parts = text.split(between).map(|part| {
        let is_number =
            !part.is_empty() && part.len() <= 4 && part.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| part.parse::<i64>().ok()).flatten()
    });
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

fn milliseconds(fraction: &str) -> Option<i64> {
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    format!("{fraction:0<3}").get(..3)?.parse().ok()
}

/// `Z`, nothing, or `+hh:mm` with or without the colon.
fn zone_seconds(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first() {
        None | Some(b'Z' | b'z') => return Some(0),
        Some(b'+') => 1,
        Some(b'-') => -1,
        Some(_) => return None,
    };
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    let hours: i64 = digits.get(..2)?.parse().ok()?;
    let minutes: i64 = digits.get(2..4).map_or(Some(0), |minutes| minutes.parse().ok())?;
    Some(sign * (hours * 3_600 + minutes * 60))
}

/// Counts in eras of 400 years whose years begin in March, so that the leap day comes last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
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
