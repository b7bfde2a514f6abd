//! How much guidance an organisation may use a month.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rb_store::{Result, Store, UsageDay};

use crate::clock::{day_of, now_ms};

/// For how long an answer is believed.
const BELIEVED_FOR: Duration = Duration::from_secs(2);
/// Organisations remembered at once.
const REMEMBERED_MAX: usize = 10_000;

/// The cap, and who is over it.
pub(crate) struct Cap {
    cap: Option<u64>,
    remembered: Mutex<HashMap<String, (Instant, bool)>>,
}

impl Cap {
    /// `None` sets no cap.
    pub(crate) fn new(cap: Option<u64>) -> Self {
        Self { cap, remembered: Mutex::default() }
    }

    /// Whether the organisation has used up this month's allowance.
    pub(crate) async fn is_over(&self, store: &dyn Store, org: &str) -> Result<bool> {
        let Some(cap) = self.cap else { return Ok(false) };
        let known = {
            let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
            remembered.get(org).copied().filter(|(at, _)| at.elapsed() < BELIEVED_FOR)
        };
        if let Some((_, is_over)) = known {
            return Ok(is_over);
        }
        let days = store.usage(org, month_begin_day(now_ms())).await?;
        let used: u64 = days.iter().map(|day: &UsageDay| day.interventions).sum();
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(org.to_owned(), (Instant::now(), used >= cap));
        Ok(used >= cap)
    }
}

/// The first day of the month a time is in, in days since 1970.
fn month_begin_day(ms: i64) -> i64 {
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    let day_of_month = i64::from(time.to_zoned(TimeZone::UTC).day());
    day_of(ms) - (day_of_month - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::iso_day;

    #[test]
    fn months_begin_on_their_first() {
        for (ms, first) in [(0, "1970-01-01"), (1_763_251_200_042, "2025-11-01")] {
            assert_eq!(iso_day(month_begin_day(ms)), first);
        }
    }
}
