//! The server: the API that the public SDKs talk to, and what it needs to answer.
//!
//! [`serve`] is the way in: an [`App`] from a checked [`config::Config`] and a store, a listener, and a future that
//! ends when the server should. Requests pass, from the outside in: [`slashes`] (ids with slashes), [`doorkeeper`]
//! (request id, caller, limits, metrics), the routes in [`api`].

/// The routes, one file an area.
mod api;
/// What all requests share.
mod app;
/// Who is calling.
pub mod auth;
/// Bodies and queries in.
mod body;
/// What time it is.
mod clock;
/// Everything the operator may set.
pub mod config;
/// What every request passes: its id, its caller, the limits, the counters.
mod doorkeeper;
/// What goes wrong, as clients see it.
mod error;
/// What happens, told to whoever listens.
mod events;
/// New keys.
pub mod keys;
/// What the server counts.
mod metrics;
/// Ids in addresses.
mod path;
/// What tokens cost.
pub mod prices;
/// Which weights a run is judged with.
mod profiles;
/// Findings by meaning.
mod recall;
/// The report of an experiment.
mod report;
/// Connections in, and the way out.
mod serve;
/// Ids with slashes in addresses.
mod slashes;
/// The statistics of an experiment.
mod stats;
/// A whole server to try requests on.
#[cfg(test)]
mod trial;

pub use api::openapi;
pub use app::{App, Shared};
pub use clock::{iso, now_ms};
pub use serve::serve;
