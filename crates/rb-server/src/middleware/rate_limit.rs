//! Rate limits per key, shared by all surfaces.

use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::middleware::Next;
use axum::response::Response;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

/// Keys in memory; beyond this, idle ones are dropped, and new ones share a limit.
const MAX_KEYS: usize = 10_000;
/// Limit of the requests without a key.
const ANONYMOUS: u64 = 0;

/// Token buckets by hash of the presented key, so that a flood is rejected before keys are looked up.
#[derive(Clone)]
pub(crate) struct RateLimits {
    buckets: Arc<DefaultKeyedRateLimiter<u64>>,
    hasher: RandomState,
}

/// Rate limit of a surface with its response for rejected requests.
#[derive(Clone)]
pub(crate) struct RateLimit {
    pub(crate) limits: RateLimits,
    pub(crate) reject: fn(&Request) -> Response,
}

impl RateLimits {
    pub(crate) fn new(per_sec: u32, burst: u32) -> Self {
        let at_least_one = |count: u32| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(at_least_one(per_sec)).allow_burst(at_least_one(burst));
        Self { buckets: Arc::new(RateLimiter::keyed(quota)), hasher: RandomState::new() }
    }

    fn allow(&self, request: &Request) -> bool {
        if self.buckets.len() > MAX_KEYS {
            self.buckets.retain_recent();
        }
        let has_room = self.buckets.len() <= MAX_KEYS;
        let key = presented_key(request).filter(|_| has_room);
        let bucket = key.map_or(ANONYMOUS, |key| self.hasher.hash_one(key));
        self.buckets.check_key(&bucket).is_ok()
    }
}

/// Rejects requests above the limit of their key.
pub(crate) async fn rate_limit(
    State(RateLimit { limits, reject }): State<RateLimit>,
    request: Request,
    next: Next,
) -> Response {
    if limits.allow(&request) { next.run(request).await } else { reject(&request) }
}

/// Returns the key of a request, valid or not: the gateway's header, the API's bearer token, the dashboard's session.
fn presented_key(request: &Request) -> Option<&[u8]> {
    let headers = request.headers();
    let mut names = [rb_gateway::KEY_HEADER, AUTHORIZATION.as_str(), COOKIE.as_str()].into_iter();
    names.find_map(|name| headers.get(name)).map(HeaderValue::as_bytes)
}
