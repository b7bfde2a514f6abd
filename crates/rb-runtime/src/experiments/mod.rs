//! Experiments: comparison of runs with and without guidance.

mod caveats;
mod report;
mod stats;
#[cfg(test)]
mod tests;

pub use report::{Report, report};
