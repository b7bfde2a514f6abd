//! The `/v1` API that the SDKs call: routes and their OpenAPI document.

/// Compressed request bodies.
mod body_decoding;
/// OpenAPI document.
mod openapi;
/// Ids with slashes in paths.
pub mod path_ids;
/// Routes, one file per area.
mod routes;
/// Checks of ids and indices.
mod validate;

pub use routes::{authenticated_routes, open_routes, openapi};

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rb_http::Surface;
use rb_runtime::Runtime;
use rb_runtime::cache::TtlCache;
use rb_runtime::runs::trace_cache::TraceHash;

/// TTL of cached `evaluate` replies; weights and patterns may change after it.
const REPLY_TTL: Duration = Duration::from_secs(5);
/// Capacity of the cache of `evaluate` replies, one or two kilobytes each.
const REPLY_CAPACITY: usize = 4_096;

/// The API: its services and the replies it caches.
pub struct Api {
    runtime: Arc<Runtime>,
    max_body_bytes: usize,
    /// Interventions per organisation and month.
    intervention_cap: Option<u64>,
    evaluate_replies: TtlCache<TraceHash, Bytes>,
}

/// State of the handlers.
type ApiState = Arc<Api>;

impl Api {
    pub fn new(
        runtime: Arc<Runtime>,
        max_body_bytes: usize,
        intervention_cap: Option<u64>,
    ) -> Self {
        let evaluate_replies = TtlCache::new(REPLY_CAPACITY, REPLY_TTL);
        Self { runtime, max_body_bytes, intervention_cap, evaluate_replies }
    }
}

impl Surface for Api {
    fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    fn max_body_bytes(&self) -> usize {
        self.max_body_bytes
    }
}
