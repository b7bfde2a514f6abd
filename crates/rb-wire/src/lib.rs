//! Everything that comes or goes is unpacked here: transcripts become runs, requests and answers become steps.
//!
//! **No IO.** Bytes come in as slices; what comes out borrows from them wherever it can.
//!
//! A request on its way to a model, from the bytes that came to the bytes that go:
//!
//! ```
//! use rb_wire::chain::Continuity;
//! use rb_wire::chat::Chat;
//! use rb_wire::steps::{self, Carry};
//! use rb_wire::{dialects, steer};
//!
//! let body = br#"{"model":"m","messages":[{"role":"user","content":"Fix it"},
//!     {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"bash","input":{"command":"ls"}}]},
//!     {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a.py"}]}]}"#;
//! let dialect = dialects::by_path("/anthropic/v1/messages").ok_or("no dialect")?;
//! let chat = Chat::scan(dialect, body)?;
//!
//! // What is kept of a conversation between its requests: links, carry, and what was planted. Here: nothing yet.
//! let (links, carry, planted) = (vec![], Carry::default(), vec![]);
//! let new = steps::advance(&chat, Continuity::between(&links, &chat.links()), &carry);
//! assert_eq!((new.steps.len(), new.steps[0].tool.as_ref()), (1, "bash"));
//!
//! let tail = steer::tail(&chat, &planted, Some("[REASONBLOCKS]\nLook again."), dialect.channels);
//! assert!(tail.splices.apply().ends_with(br#",{"role":"system","content":"[REASONBLOCKS]\nLook again."}]}"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The answer is shown to an [`answer::AnswerReader`] while it passes.
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
/// OpenTelemetry's protocol: spans in, events out.
pub mod otlp;
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
/// Calls that are written into the text.
mod spoken;

pub use json::{Malformed, Span};
