//! Evaluation of the monitors on labelled runs: how often they fire on successes and failures, how well the composite
//! separates the two, and how well alarms agree with labelled steps.
//!
//! No IO: the caller reads files and passes `corpus::LabelledRun`s. Deterministic: the same runs and the same seed give
//! the same report on any machine.
//!
//! ```
//! use rb_engine::config::Engine;
//! use rb_quality::evaluation::{Options, evaluate};
//! use rb_quality::scorer::{Scorer, StepCount, SuiteScorer};
//!
//! let suite = SuiteScorer::new(Engine::default());
//! let scorers: [&dyn Scorer; 2] = [&suite, &StepCount];
//! let report = evaluate(&[], &scorers, &Options::default(), &());
//! assert!(report.sets.is_empty());
//! ```
#![warn(missing_docs)]

/// Labelled runs and the split into tuning and held-out tasks.
pub mod corpus;
/// The evaluation.
pub mod evaluation;
/// The result of an evaluation.
pub mod report;
/// Seeded random numbers.
pub mod rng;
/// Monitor suites and the baseline they are compared with.
pub mod scorer;
/// Proportions, ROC areas, intervals and agreement.
pub mod stats;
/// The report as a text table.
pub mod table;
