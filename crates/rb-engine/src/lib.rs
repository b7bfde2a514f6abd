//! Detects failure patterns in an agent's run, step by step, and decides when and how to steer it.
//!
//! **Pure.** No IO, clock, randomness, async or JSON: the state of a run is a fold over its steps, so replaying the
//! stored steps rebuilds the same state on any machine. The host (server, middleware, command line) does the IO.
//!
//! Scoring steps without a server (`examples/evaluate_locally.rs` prints more):
//!
//! ```
//! use rb_engine::config::EngineConfig;
//! use rb_engine::monitors::SuiteChoice;
//! use rb_engine::policy::Policy;
//! use rb_engine::run::MonitorSet;
//! use rb_engine::step::{Input, Step};
//!
//! let engine = EngineConfig::with_policy(Policy::only(SuiteChoice::Heuristic)).check()?;
//! let mut monitors = MonitorSet::new(&engine, "");
//! let thoughts = ["Let me look at this", "Hmm, not sure", "Maybe I missed something"];
//! let steps = thoughts.map(|thought| Step::thought(thought).with_action("read_file", Input::None));
//! let result = steps.iter().map(|step| monitors.observe(step)).last().unwrap_or_default();
//! let fired: Vec<_> = result.fired().map(|reading| reading.monitor.id).collect();
//! assert_eq!((result.composite, fired), (0.3325, vec!["streak", "hedge"]));
//! # Ok::<(), rb_engine::config::ConfigError>(())
//! ```
//!
//! Steering a run is `run::Run`: `before_model`, `plan`, `record`, `finish`.
//!
//! Modules depend on each other in this order: `step`, `analysis`, `evidence`, `guidance`, `monitors`, `policy`,
//! `config`, `run`.
#![warn(missing_docs)]

/// Text and action analysis shared by the monitors.
pub mod analysis;
/// All settings of the engine, validated once.
pub mod config;
/// The facts behind a monitor's score.
pub mod evidence;
/// Retrieved patterns, and the one text that is injected into a model call.
pub mod guidance;
/// The monitors, one file each, and their registry.
pub mod monitors;
/// State machine, guidance gate, model routing and token budget.
pub mod policy;
/// The stages of one model call: read this first.
pub mod run;
/// The input of the engine: one turn of the agent.
pub mod step;

#[cfg(test)]
mod test_util;
