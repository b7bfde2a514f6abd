//! The cache of a run: what was read from it, what each miss cost, and whose doing it was.
//!
//! Providers cache the beginning of a conversation. A request that goes on from the one before should read that one from
//! the cache. When it does not although the client changed nothing, and the last request was one that we changed, we
//! may be the cause: then the fuse blows and the run is steered no more.

use rb_wire::model::TokenUsage;
use serde::{Deserialize, Serialize};

/// A share lower than this part of the share before is a miss.
const MISS_BELOW: f64 = 0.5;
/// Short requests are not cached, so they say nothing.
const INPUT_TOKENS_MIN: u64 = 2_048;

/// Why a request read less from the cache than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cause {
    /// We changed this request or the one before.
    Ours,
    /// The client changed the history.
    Client,
    /// Nobody: the provider forgot, or time passed.
    Expired,
}

/// What is known of a run's cache.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Ledger {
    pub(crate) calls: u64,
    pub(crate) input_tokens: u64,
    pub(crate) cache_read_tokens: u64,
    pub(crate) misses_ours: u64,
    pub(crate) misses_client: u64,
    pub(crate) misses_expired: u64,
    /// Tokens that were read at the full price because of misses of ours.
    pub(crate) lost_tokens: u64,
    /// Steering has stopped for the sake of the cache.
    pub(crate) is_blown: bool,
    /// The share read from the cache last time.
    last_share: Option<f64>,
    last_changed: bool,
}

/// What is known about a request beside its tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    /// New text of ours went into it.
    pub(crate) is_changed: bool,
    /// The client sent the same history as before, and more.
    pub(crate) is_continued: bool,
}

impl Ledger {
    /// Takes what an answer used, and says what a miss was due to.
    pub(crate) fn note(&mut self, used: &TokenUsage, request: Request) -> Option<Cause> {
        self.calls += 1;
        self.input_tokens += used.input();
        self.cache_read_tokens += used.cache_read;
        let share = used.cache_read_share().filter(|_| used.input() >= INPUT_TOKENS_MIN);
        let before = self.last_share;
        let ours = request.is_changed || self.last_changed;
        self.last_changed = request.is_changed;
        if share.is_some() {
            self.last_share = share;
        }
        let (share, before) = (share?, before?);
        if before == 0.0 || share >= before * MISS_BELOW {
            return None;
        }
        let cause = match (request.is_continued, ours) {
            (false, _) => Cause::Client,
            (true, true) => Cause::Ours,
            (true, false) => Cause::Expired,
        };
        match cause {
            Cause::Ours => {
                self.misses_ours += 1;
                self.lost_tokens += used.input().saturating_sub(used.cache_read);
                self.is_blown = true;
            }
            Cause::Client => self.misses_client += 1,
            Cause::Expired => self.misses_expired += 1,
        }
        Some(cause)
    }

    /// The share of all input that came from the cache.
    pub(crate) fn read_share(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a share needs no more than 52 bits")]
        let share = self.cache_read_tokens as f64 / self.input_tokens as f64;
        (self.input_tokens > 0).then_some(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(uncached_input: u64, cache_read: u64) -> TokenUsage {
        TokenUsage { uncached_input, cache_read, ..TokenUsage::default() }
    }

    #[test]
    fn a_miss_has_a_cause_and_ours_blows_the_fuse() {
        let plain = Request { is_changed: false, is_continued: true };
        let changed = Request { is_changed: true, is_continued: true };
        let edited = Request { is_changed: false, is_continued: false };
        let cases = [
            // The calls of a run, and what the last one is found to be.
            (vec![(used(5_000, 0), plain), (used(100, 5_000), plain)], None),
            (vec![(used(100, 5_000), plain), (used(5_100, 0), plain)], Some(Cause::Expired)),
            (vec![(used(100, 5_000), plain), (used(5_100, 0), edited)], Some(Cause::Client)),
            (vec![(used(100, 5_000), plain), (used(5_100, 0), changed)], Some(Cause::Ours)),
            (vec![(used(100, 5_000), changed), (used(5_100, 0), plain)], Some(Cause::Ours)),
            (vec![(used(100, 5_000), plain), (used(300, 5_000), changed)], None),
            (vec![(used(0, 500), plain), (used(500, 0), changed)], None),
        ];
        for (calls, expected) in cases {
            let mut ledger = Ledger::default();
            let mut last = None;
            for (used, request) in &calls {
                last = ledger.note(used, *request);
            }
            assert_eq!(last, expected, "{calls:?}");
            assert_eq!(ledger.is_blown, expected == Some(Cause::Ours), "{calls:?}");
        }
    }
}
