//! Everything that comes or goes is unpacked here: transcripts become runs, requests and answers become steps.
//!
//! **No IO.** Bytes come in as slices; what comes out borrows from them wherever it can.
#![warn(missing_docs)]

/// What an answer tells while it passes.
pub mod answer;
/// What a message is known by: a running hash over the conversation.
pub mod chain;
/// A request to a model, seen where it stands.
pub mod chat;
/// The protocols that models are spoken to in, one file each, and their table.
pub mod dialects;
/// Which run a request belongs to.
pub mod identity;
/// Edits of a body that leave every other byte as it was.
pub mod splice;
/// Event streams, cut into events.
pub mod sse;
/// Where guidance goes in a request, and how it stays there.
pub mod steer;
/// From a conversation to steps.
pub mod steps;
/// Recorded runs of agents, in the formats they are kept in.
pub mod transcripts;
/// What an answer cost in tokens.
pub mod usage;

mod json;

pub use json::{Malformed, Span};
