//! Protocols and transcripts: requests and responses of providers become steps, recorded files become runs.
//!
//! **No IO.** Input is byte slices, and the output borrows from them where possible.
//!
//! The path of a request to a model:
//!
//! ```
//! use rb_wire::conversation_hash::Continuity;
//! use rb_wire::request::ParsedRequest;
//! use rb_wire::steps::{self, PendingTurn};
//! use rb_wire::{dialects, inject};
//!
//! let body = br#"{"model":"m","messages":[{"role":"user","content":"Fix it"},
//!     {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"bash","input":{"command":"ls"}}]},
//!     {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a.py"}]}]}"#;
//! let path = "/v1/messages";
//! let dialect = dialects::by_path(path).ok_or("no dialect")?;
//! let request = ParsedRequest::parse(dialect, path, body)?;
//!
//! // State of a conversation between its requests: hashes, pending turn and injections. Empty at the start.
//! let (hashes, pending, injections) = (vec![], PendingTurn::default(), vec![]);
//! let new = steps::advance(&request, Continuity::between(&hashes, &request.hashes()), &pending);
//! assert_eq!((new.steps.len(), new.steps[0].tool.as_ref()), (1, "bash"));
//!
//! let text = Some("[REASONBLOCKS]\nLook again.");
//! let tail = inject::inject_tail(&request, &injections, text, dialect.channels());
//! assert!(tail.edits.apply().ends_with(br#",{"role":"system","content":"[REASONBLOCKS]\nLook again."}]}"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A `response_reader::ResponseReader` reads the response while it passes.
#![warn(missing_docs)]

/// Edits of a request body that keep every other byte.
pub mod body_edits;
/// Forms in which guidance is put into a conversation.
pub mod channel;
/// Running hash over the messages of a conversation.
pub mod conversation_hash;
/// Provider protocols, one file each, and their table.
pub mod dialects;
/// Run identity of a request.
pub mod identity;
/// Injection of guidance into requests.
pub mod inject;
/// Runs, steps and token counts.
pub mod model;
/// OpenTelemetry protocol: spans in, events out.
pub mod otlp;
/// Model providers.
pub mod providers;
/// Parsed requests.
pub mod request;
/// Parsed responses.
pub mod response;
/// Incremental reader of responses.
pub mod response_reader;
/// Parser for server-sent events.
pub mod sse;
/// Steps of a conversation.
pub mod steps;
/// Importers of recorded runs.
pub mod transcripts;

/// Fenced code blocks in text.
mod code_fences;
mod json;
/// Tool calls that are written in text.
mod text_tool_calls;

pub use json::{Malformed, Span};
