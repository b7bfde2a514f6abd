//! Measurements; never tests. A benchmark reports what it saw and always ends well, because machines are noisy.

/// How fast transcripts are gone through, beside `jq`.
pub(crate) mod check;
/// Time per step of the engine and of the public Python package.
pub(crate) mod engine;
/// How fast requests and answers are looked at.
pub(crate) mod wire;

/// Requests a second of the server and of a minimal Python one.
pub(crate) mod server;

/// Server time of the pages with many stored steps.
pub(crate) mod pages;
/// One node and two, and growth.
pub(crate) mod scale;

/// What steering costs the providers' prompt caches.
pub(crate) mod cache;
/// What the gateway adds to a call, beside nginx and LiteLLM.
pub(crate) mod gateway;

/// Servers as processes.
pub(crate) mod process;

mod load;
mod python;
mod quiet;
mod report;
mod stored;
mod trace;
