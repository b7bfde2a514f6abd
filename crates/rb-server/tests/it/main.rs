//! The whole server: its surfaces, its middleware and its connections.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "clippy does not recognise helpers of tests as test code"
)]

/// API.
mod api;
mod connection;
mod cors;
/// Dashboard.
mod dashboard;
/// Gateway.
mod gateway;
/// Middleware on all surfaces.
mod middleware;
mod origin_guard;
/// A server with keys of several tenants.
mod test_server;
