//! The measuring room: how good the monitors are, on runs whose end is known.
//!
//! **No IO.** The caller reads files and hands over [`corpus::LabelledRun`]s; it gets back a
//! [`report::Report`], as a text table, as JSON or as one HTML page.
//!
//! **Deterministic.** Whatever is drawn (resamples, places of plants, wording) comes from the seed in
//! [`measure::Options`]; the same runs and the same seed give the same report on any machine.
//!
//! ```
//! use rb_quality::judge::{Judge, StepCount, SuiteJudge};
//! use rb_quality::measure::{Options, measure};
//! use rb_engine::config::Engine;
//!
//! let monitors = SuiteJudge::new(Engine::default());
//! let judges: [&dyn Judge; 2] = [&monitors, &StepCount];
//! let report = measure(&[], &judges, &Options::default(), &());
//! assert!(report.sets.is_empty());
//! ```
#![warn(missing_docs)]

/// Runs whose outcome, and perhaps whose mistakes, are known.
pub mod corpus;
/// Whoever gives a run its scores: a suite of monitors, or something to compare it with.
pub mod judge;
/// From runs and judges to a report.
pub mod measure;
/// What is reported, and how it is shown.
pub mod report;
/// Real successful runs with a known fault planted into them.
pub mod splice;
/// The numbers: rates, areas, intervals, agreement.
pub mod stats;

/// Chance from a seed.
mod dice;
/// Texts cut for reading.
mod text;
/// The targets, met or missed.
mod verdict;
