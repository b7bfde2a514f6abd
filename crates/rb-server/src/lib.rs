//! The server: the API that the public SDKs talk to, and what it needs to answer.
//!
//! `serve` is the way in: an `App` from a checked `config::Config` and a store, a listener, and a future that
//! ends when the server should. Requests pass, from the outside in: `front` (ids with slashes, pages of others, slow
//! bodies, panics), `doorkeeper` (request id, caller, limits, metrics), the routes in `api`.

/// The routes, one file an area.
mod api;
/// What all requests share.
mod app;
/// A question to a running server.
pub mod ask;
/// Everything the operator may set.
pub mod config;
/// One connection in.
mod connection;
/// The pages at `/`.
mod dashboard;
/// A demonstration without any key.
pub mod demo;
/// Checks of a set-up, from the outside.
pub mod doctor;
/// What every request passes: its id, its caller, the limits, the counters.
mod doorkeeper;
/// What every request passes before it reaches its route.
mod front;
/// Pages of others on this machine.
mod neighbours;
/// Connections in, and the way out.
mod serve;
/// Ids with slashes in addresses.
mod slashes;
/// A whole server to try requests on.
#[cfg(test)]
mod trial;

pub use api::openapi;
pub use app::{App, Shared};
pub use serve::serve;
