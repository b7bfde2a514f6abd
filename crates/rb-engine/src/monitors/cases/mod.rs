//! Cases for the semantic monitors, written by hand: runs of many kinds of agents that a monitor must notice, and runs
//! that look alike and must stay silent.
//!
//! Where the rule leaves the exact step open, a line says `any`; the run must be noticed at its last line.

mod claim_contradiction;
mod cyclic_compression;
mod late_sprawl;
mod semantic_loop;
mod silent_topic_drift;
mod verification_skip;
