//! The mind of ReasonBlocks: it looks at an agent step by step and decides whether and how to steer.
//!
//! **Pure.** No IO, clock, randomness, async or JSON: a run is a fold over its steps, so replaying the stored
//! steps rebuilds the same state on any machine. The host (server, middleware, command line) does the IO.
//!
//! Judging steps, without any server (`examples/evaluate_locally.rs` prints more):
//!
//! ```
//! use rb_engine::monitors::{Panel, SuiteChoice};
//! use rb_engine::rules::RulesConfig;
//! use rb_engine::step::{Input, Step};
//!
//! let rules = RulesConfig { suite: SuiteChoice::Heuristic, ..RulesConfig::default() }.check()?;
//! let mut panel = Panel::new(&rules, "");
//! let thoughts = ["Let me look at this", "Hmm, not sure", "Maybe I missed something"];
//! let steps = thoughts.map(|thought| Step::thought(thought).with_action("read_file", Input::None));
//! let result = steps.iter().map(|step| panel.observe(step)).last().unwrap_or_default();
//! let fired: Vec<_> = result.fired().map(|reading| reading.monitor.id).collect();
//! assert_eq!((result.composite, fired), (0.3325, vec!["streak", "hedge"]));
//! # Ok::<(), rb_engine::rules::RulesError>(())
//! ```
//!
//! Steering a run is [`run::Run`]: `before_model`, `plan`, `record`, `finish`.
#![warn(missing_docs)]

/// What kind of act a step is, what it touches, and how it came out.
pub mod act;
/// Tokens, counted and kept within a budget.
pub mod budget;
/// Why a monitor reads what it reads.
pub mod evidence;
/// The machine that says how hard the run is going.
pub mod fsm;
/// When guidance is due.
pub mod gate;
/// What is looked up, and the one text that reaches the model.
pub mod guidance;
/// What texts mean, as directions.
pub mod meaning;
/// The monitors, one file each, and their table.
pub mod monitors;
/// What is kept of a model call and of a run.
pub mod record;
/// Which model takes the next call.
pub mod route;
/// Everything a user may set, checked once.
pub mod rules;
/// The walk of one step: read this first.
pub mod run;
/// How hard the last step looks.
pub mod score;
/// What the agent did, as the engine sees it.
pub mod step;
/// How texts are read.
pub mod text;
/// What another engine said of the newest steps.
pub mod verdict;
/// How much each monitor counts.
pub mod weights;

mod claims;
mod cues;
mod facts;
mod lexicon;
mod mentions;
mod phrases;
mod scene;
mod seen;
mod sentences;

#[cfg(test)]
mod fixture;
