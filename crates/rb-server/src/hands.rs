//! What people want to say to running agents: it waits here until the next model call takes it along.
//!
//! In memory only. Whoever takes the words and cannot deliver them puts them back; what nobody took for an hour is
//! dropped, since the situation it was about has passed.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use rb_store::RunKey;

use crate::error::{ApiError, ApiResult, unprocessable};

/// Words may be this long; what a model reads of one piece of guidance is not much more.
pub(crate) const CHARS_MAX: usize = 1_500;
/// So many words may wait for one run.
const WAITING_MAX: usize = 3;
/// So many words a minute may be said to one run.
const A_MINUTE: NonZeroU32 = NonZeroU32::new(6).unwrap();
/// Words wait at most this long.
const WAIT_MAX: Duration = Duration::from_hours(1);
/// When words wait for more runs than this, or more runs were spoken to, the old ones are forgotten.
const RUNS_MAX: usize = 10_000;

/// The words that wait, by run.
pub(crate) struct Hands {
    waiting: Mutex<HashMap<RunKey, Vec<(Instant, String)>>>,
    rates: DefaultKeyedRateLimiter<RunKey>,
}

impl Default for Hands {
    fn default() -> Self {
        let quota = Quota::per_minute(A_MINUTE);
        Self { waiting: Mutex::default(), rates: RateLimiter::keyed(quota) }
    }
}

impl Hands {
    fn lock(&self) -> MutexGuard<'_, HashMap<RunKey, Vec<(Instant, String)>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets words wait for a run, and says how many wait now.
    pub(crate) fn add(&self, run: &RunKey, words: &str) -> ApiResult<usize> {
        let words = words.trim();
        if words.is_empty() {
            return Err(unprocessable(
                &["body", "text"],
                "there is nothing to say; write some words",
            ));
        }
        if words.chars().count() > CHARS_MAX {
            let said = format!("longer than {CHARS_MAX} characters; shorten it");
            return Err(unprocessable(&["body", "text"], said));
        }
        let mut waiting = self.lock();
        if waiting.len() >= RUNS_MAX {
            waiting.values_mut().for_each(drop_old);
            waiting.retain(|_, words| !words.is_empty());
        }
        let here = waiting.entry(run.clone()).or_default();
        drop_old(here);
        if here.len() >= WAITING_MAX {
            let said = "three messages wait for this run already; the next model call takes them";
            return Err(ApiError::Conflict(said.to_owned()));
        }
        if self.rates.len() > RUNS_MAX {
            self.rates.retain_recent();
        }
        if self.rates.check_key(run).is_err() {
            return Err(ApiError::TooSoon("this run was spoken to often; wait a moment"));
        }
        here.push((Instant::now(), words.to_owned()));
        Ok(here.len())
    }

    /// Takes what waits, to say it now.
    pub(crate) fn take(&self, run: &RunKey) -> Vec<String> {
        let mut words = self.lock().remove(run).unwrap_or_default();
        drop_old(&mut words);
        words.into_iter().map(|(_, words)| words).collect()
    }

    /// What was taken could not be said.
    pub(crate) fn put_back(&self, run: &RunKey, words: Vec<String>) {
        if words.is_empty() {
            return;
        }
        let now = Instant::now();
        let words = words.into_iter().map(|words| (now, words));
        self.lock().entry(run.clone()).or_default().splice(0..0, words);
    }

    /// What waits.
    pub(crate) fn waiting(&self, run: &RunKey) -> Vec<String> {
        let waiting = self.lock();
        let words = waiting.get(run).into_iter().flatten();
        let fresh = words.filter(|(since, _)| since.elapsed() < WAIT_MAX);
        fresh.map(|(_, words)| words.clone()).collect()
    }
}

fn drop_old(words: &mut Vec<(Instant, String)>) {
    words.retain(|(since, _)| since.elapsed() < WAIT_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wait_for_their_run_and_are_said_once() {
        let hands = Hands::default();
        let key = |id: &str| RunKey { org: "o".to_owned(), run_id: id.to_owned() };
        assert_eq!(hands.add(&key("a"), "  Look there. ").unwrap(), 1);
        assert_eq!(hands.add(&key("a"), "And there.").unwrap(), 2);
        assert!(hands.take(&key("b")).is_empty());
        let taken = hands.take(&key("a"));
        assert_eq!(taken, ["Look there.", "And there."]);
        assert!(hands.take(&key("a")).is_empty());
        hands.put_back(&key("a"), taken);
        assert_eq!(hands.waiting(&key("a")).len(), 2);
    }

    #[test]
    fn what_is_empty_too_long_or_too_much_is_refused() {
        let hands = Hands::default();
        let run = RunKey { org: "o".to_owned(), run_id: "r".to_owned() };
        for wrong in [" \n", &"x".repeat(CHARS_MAX + 1)] {
            assert!(matches!(hands.add(&run, wrong), Err(ApiError::Unprocessable(_))));
        }
        for count in 1..=WAITING_MAX {
            assert_eq!(hands.add(&run, "words").unwrap(), count);
        }
        assert!(matches!(hands.add(&run, "words"), Err(ApiError::Conflict(_))));
        for _ in WAITING_MAX..6 {
            hands.take(&run);
            hands.add(&run, "words").unwrap();
        }
        hands.take(&run);
        assert!(matches!(hands.add(&run, "words"), Err(ApiError::TooSoon(_))));
    }
}
