//! Monthly guidance quota of an organisation.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rb_store::{Result, Store, UsageDay};

use crate::cache::TtlCache;
use crate::clock::{day_of, now_ms};

const CACHE_TTL: Duration = Duration::from_secs(2);
/// Organisations.
const CACHE_CAPACITY: usize = 10_000;

/// Checks the guidance used this month against a limit.
pub struct GuidanceQuota {
    limit: Option<u64>,
    exceeded: TtlCache<String, bool>,
}

impl GuidanceQuota {
    /// `None` sets no limit.
    pub fn new(limit: Option<u64>) -> Self {
        Self { limit, exceeded: TtlCache::new(CACHE_CAPACITY, CACHE_TTL) }
    }

    /// Returns `true` once the organisation has used up this month's quota.
    pub async fn is_exceeded(&self, store: &dyn Store, org: &str) -> Result<bool> {
        let Some(limit) = self.limit else { return Ok(false) };
        if let Some(is_exceeded) = self.exceeded.get(org) {
            return Ok(is_exceeded);
        }
        let days = store.usage(org, first_day_of_month(now_ms())).await?;
        let used: u64 = days.iter().map(|day: &UsageDay| day.interventions).sum();
        self.exceeded.insert(org.to_owned(), used >= limit);
        Ok(used >= limit)
    }
}

/// First day of the month that contains a time, in days since 1970.
fn first_day_of_month(ms: i64) -> i64 {
    let time = Timestamp::from_millisecond(ms).unwrap_or_default();
    let day_of_month = i64::from(time.to_zoned(TimeZone::UTC).day());
    day_of(ms) - (day_of_month - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::format_day;

    #[test]
    fn months_begin_on_their_first_day() {
        for (ms, first) in [(0, "1970-01-01"), (1_763_251_200_042, "2025-11-01")] {
            assert_eq!(format_day(first_day_of_month(ms)), first);
        }
    }
}
