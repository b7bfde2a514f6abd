//! The mind of ReasonBlocks: it looks at an agent step by step and decides whether and how to steer.
//!
//! **Pure.** No IO, clock, randomness, async or JSON: a run is a fold over its steps, so replaying the stored
//! steps rebuilds the same state on any machine. The host (server, middleware, command line) does the IO.
#![warn(missing_docs)]

/// Why a monitor reads what it reads.
pub mod evidence;
/// The machine that says how hard the run is going.
pub mod fsm;
/// The monitors, one file each, and their table.
pub mod monitors;
/// How hard the last step looks.
pub mod score;
/// What the agent did, as the engine sees it.
pub mod step;
/// How texts are read.
pub mod text;
/// How much each monitor counts.
pub mod weights;

mod facts;
mod lexicon;

#[cfg(test)]
mod fixture;
