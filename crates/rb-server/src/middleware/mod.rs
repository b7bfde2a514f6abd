//! Middleware; `crate::router::service` lists it in order.

/// Cross-origin requests.
pub(crate) mod cors;
/// Host and origin checks of a server without keys.
pub(crate) mod origin_guard;
/// Rate limits.
pub(crate) mod rate_limit;
/// Request ids, spans and metrics.
pub(crate) mod request_context;
