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
/// Who is calling.
pub mod auth;
/// Bodies and queries in.
mod body;
/// How much guidance an organisation may use a month.
mod cap;
/// What time it is.
mod clock;
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
/// What goes wrong, as clients see it.
mod error;
/// What happens, told to whoever listens.
mod events;
/// Findings out, as OpenTelemetry events.
mod export;
/// What every request passes before it reaches its route.
mod front;
/// Any program that calls a provider, steered by changing its base URL.
pub mod gateway;
/// What people want to say to running agents.
mod hands;
/// Which organisation a run belongs to.
mod homes;
/// What the monitors say, as rows and replies have it.
mod judge;
/// New keys.
pub mod keys;
/// The patterns, found by meaning.
mod library;
/// Runs that are going on.
mod live;
/// What the server counts.
mod metrics;
/// Pages of others on this machine.
mod neighbours;
/// The other nodes on the same database.
mod nodes;
/// Calls to other servers.
mod outbound;
/// Ids in addresses.
mod path;
/// Traces that grow.
mod prefix;
/// What tokens cost.
pub mod prices;
/// Which weights a run is judged with.
mod profiles;
/// Findings by meaning.
mod recall;
/// Recorded runs on their way into the store.
pub mod recorded;
/// What going through a stored step again needs.
mod replay;
/// The report of an experiment.
mod report;
/// Old runs go.
mod retention;
/// What the monitors compare meanings by, and who confirms it.
pub mod seconded;
/// Connections in, and the way out.
mod serve;
/// Ids with slashes in addresses.
mod slashes;
/// Spans of traces that may still go on.
mod spans;
/// The statistics of an experiment.
mod stats;
/// Look-ups for a run that is steered.
mod steering;
/// Metrics and events of stored steps.
mod telemetry;
/// A whole server to try requests on.
#[cfg(test)]
mod trial;

pub use api::openapi;
pub use app::{App, Shared};
pub use clock::{iso, now_ms, read_iso};
pub use events::RunsHeard;
pub use export::{ExportConfig, ExportRaw};
pub use serve::serve;
