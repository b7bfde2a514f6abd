//! Middleware.

/// Host and origin checks of a server without keys.
pub(crate) mod origin_guard;
/// Request ids, rate limits and metrics.
pub(crate) mod request_context;
