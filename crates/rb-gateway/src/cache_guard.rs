//! Prompt cache tracking of a run, and the circuit breaker that stops steering after a miss caused by the gateway.
//!
//! Providers cache the prefix of a conversation, so a request that continues the previous one should read that one from
//! the cache. If it does not although the client kept its history, and the gateway changed this request or the one
//! before, the gateway may be the cause.

use rb_wire::model::TokenUsage;
use serde::{Deserialize, Serialize};

/// Fraction of the previous cached share below which a request counts as a miss.
const MISS_THRESHOLD: f64 = 0.5;
/// Minimum input for which providers cache.
const MIN_INPUT_TOKENS: u64 = 2_048;

/// Cause of a cache miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The gateway changed this request or the one before.
    Gateway,
    /// The client changed the history.
    Client,
    /// The provider evicted the prefix.
    Expired,
}

/// Prompt cache of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct CacheGuard {
    input_tokens: u64,
    cache_read_tokens: u64,
    /// Steering has stopped.
    #[serde(rename = "is_blown")]
    pub(crate) tripped: bool,
    /// Cached share of the newest request.
    last_share: Option<f64>,
    last_changed: bool,
}

/// Properties of a request that explain a miss.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    /// The gateway injected new guidance.
    pub(crate) is_changed: bool,
    /// The client extended its history without changing it.
    pub(crate) is_continued: bool,
}

impl CacheGuard {
    /// Records the usage of a response and returns the cause of a miss.
    pub(crate) fn note(&mut self, used: &TokenUsage, request: Request) -> Option<Cause> {
        self.input_tokens += used.input();
        self.cache_read_tokens += used.cache_read;
        let share = used.cache_read_share().filter(|_| used.input() >= MIN_INPUT_TOKENS);
        let before = self.last_share;
        let is_gateway = request.is_changed || self.last_changed;
        self.last_changed = request.is_changed;
        if share.is_some() {
            self.last_share = share;
        }
        let (share, before) = (share?, before?);
        if before == 0.0 || share >= before * MISS_THRESHOLD {
            return None;
        }
        let cause = match (request.is_continued, is_gateway) {
            (false, _) => Cause::Client,
            (true, true) => Cause::Gateway,
            (true, false) => Cause::Expired,
        };
        self.tripped |= cause == Cause::Gateway;
        Some(cause)
    }

    /// Returns the share of all input that was read from the cache.
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
    fn a_miss_has_a_cause_and_one_of_the_gateway_stops_steering() {
        let plain = Request { is_changed: false, is_continued: true };
        let changed = Request { is_changed: true, is_continued: true };
        let edited = Request { is_changed: false, is_continued: false };
        let cases = [
            // Calls of a run, cause of the last one.
            (vec![(used(5_000, 0), plain), (used(100, 5_000), plain)], None),
            (vec![(used(100, 5_000), plain), (used(5_100, 0), plain)], Some(Cause::Expired)),
            (vec![(used(100, 5_000), plain), (used(5_100, 0), edited)], Some(Cause::Client)),
            (vec![(used(100, 5_000), plain), (used(5_100, 0), changed)], Some(Cause::Gateway)),
            (vec![(used(100, 5_000), changed), (used(5_100, 0), plain)], Some(Cause::Gateway)),
            (vec![(used(100, 5_000), plain), (used(300, 5_000), changed)], None),
            (vec![(used(0, 500), plain), (used(500, 0), changed)], None),
        ];
        for (calls, expected) in cases {
            let mut guard = CacheGuard::default();
            let mut last = None;
            for (used, request) in &calls {
                last = guard.note(used, *request);
            }
            assert_eq!(last, expected, "{calls:?}");
            assert_eq!(guard.tripped, expected == Some(Cause::Gateway), "{calls:?}");
        }
    }
}
