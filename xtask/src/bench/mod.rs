//! Measurements; never tests. A benchmark reports what it saw and always ends well, because machines are noisy.

/// Time per step of the engine and of the public Python package.
pub(crate) mod engine;
/// How fast requests and answers are looked at.
pub(crate) mod wire;

mod python;
mod report;
mod trace;
