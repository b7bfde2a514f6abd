//! The server: configuration, composition of the surfaces, router, middleware and listener.
//!
//! `App` is built from a checked `config::Config` and a store; `serve` runs it on a listener until it is stopped.

/// HTTP client of a running server, for the command line.
pub mod api_client;
/// Composition of the surfaces.
mod app;
/// Settings.
pub mod config;
/// Incoming connections.
mod connection;
/// Demonstration without any key.
pub mod demo;
/// Checks of a setup, from the outside.
pub mod doctor;
/// Listener and shutdown.
mod listener;
/// Middleware.
mod middleware;
/// Routes of all surfaces.
mod router;

pub use app::{App, Shared};
pub use listener::serve;
pub use rb_api::openapi;
pub use router::{HttpService, service};
