//! Parsed responses: token counts, text, tool calls and stop reason.
//!
//! Every part has a maximum size, however long the
//! response is.

use serde::{Deserialize, Serialize};

use crate::json::Value;
use crate::model::{RunInput, TokenUsage};

/// Maximum length of the text, in bytes.
pub const THOUGHT_BYTES_MAX: usize = 64 << 10;
/// Maximum length of the arguments of a call, in bytes.
pub const INPUT_BYTES_MAX: usize = 256 << 10;
/// Maximum number of calls.
pub const CALLS_MAX: usize = 128;

/// A response, complete or up to where it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// Identifier of the provider.
    pub id: String,
    /// Model that generated it.
    pub model: String,
    /// Token counts; `None` if the provider sends none, as in chat streams without `include_usage`.
    pub usage: Option<TokenUsage>,
    /// Text and visible reasoning, up to the maximum.
    pub thought: String,
    /// Tool calls.
    pub calls: Vec<ToolCall>,
    /// Identifiers of its items, if the provider stores them.
    pub items: Vec<String>,
    /// Stop reason of the provider.
    pub stop: Option<String>,
    /// Error of the provider.
    pub error: Option<ProviderError>,
    /// The response is complete.
    pub is_complete: bool,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolCall {
    /// Identifier that the result repeats.
    pub id: String,
    /// Name of the tool.
    pub tool: String,
    /// Arguments, as text.
    pub input: String,
    /// The arguments are JSON, not a string.
    pub is_structured: bool,
    #[serde(skip)]
    slot: u64,
}

impl ToolCall {
    /// Creates a call.
    pub fn new(id: &str, tool: &str, input: &RunInput<'_>) -> Self {
        let (text, is_structured) = match input {
            RunInput::None => ("", false),
            RunInput::Text(text) => (text.as_ref(), false),
            RunInput::Structured(json) => (json.as_ref(), true),
        };
        let mut call = Self { id: id.into(), tool: tool.into(), is_structured, ..Self::default() };
        push(&mut call.input, text, INPUT_BYTES_MAX);
        call
    }

    /// Returns the arguments in their form.
    pub fn run_input(&self) -> RunInput<'_> {
        match (self.input.as_str(), self.is_structured) {
            ("", false) => RunInput::None,
            ("", true) => RunInput::Structured("{}".into()),
            (json, true) => RunInput::Structured(json.into()),
            (text, false) => RunInput::Text(text.into()),
        }
    }
}

/// An error of the provider.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProviderError {
    /// Type or code.
    pub kind: String,
    /// Message.
    pub message: String,
}

/// Builder of a response, filled by the dialects.
#[derive(Debug, Default)]
pub struct ResponseBuilder {
    pub(crate) response: Response,
    /// The last text was reasoning; used by dialects that stream text and reasoning without start events.
    is_reasoning: bool,
}

impl ResponseBuilder {
    /// Sets id and model from the fields of an object.
    pub(crate) fn set_identity(&mut self, object: Value<'_>) {
        self.set_id(&object.text_of("id"));
        self.set_model(&object.text_of("model"));
    }

    /// Sets the id, unless it is known.
    pub(crate) fn set_id(&mut self, id: &str) {
        if self.response.id.is_empty() {
            id.clone_into(&mut self.response.id);
        }
    }

    /// Sets the model, unless it is known.
    pub(crate) fn set_model(&mut self, model: &str) {
        if self.response.model.is_empty() {
            model.clone_into(&mut self.response.model);
        }
    }

    /// Appends to the current text.
    pub(crate) fn append_text(&mut self, text: &str) {
        push(&mut self.response.thought, text, THOUGHT_BYTES_MAX);
    }

    /// Starts a new text.
    pub(crate) fn start_text(&mut self, text: &str) {
        if !self.response.thought.is_empty() {
            self.append_text("\n\n");
        }
        self.append_text(text);
    }

    /// Appends a text, apart from the previous one if only one of them is reasoning.
    pub(crate) fn append_marked_text(&mut self, text: &str, is_reasoning: bool) {
        if std::mem::replace(&mut self.is_reasoning, is_reasoning) == is_reasoning {
            self.append_text(text);
        } else {
            self.start_text(text);
        }
    }

    /// Adds an item.
    pub(crate) fn add_item(&mut self, item: &str) {
        if !item.is_empty() && self.response.items.len() < CALLS_MAX {
            self.response.items.push(item.to_owned());
        }
    }

    /// Starts a call; `slot` is its index in the response.
    pub(crate) fn start_tool_call(&mut self, slot: u64, id: &str, tool: &str, is_structured: bool) {
        if self.response.calls.len() < CALLS_MAX {
            let (id, tool) = (id.to_owned(), tool.to_owned());
            let input = String::new();
            self.response.calls.push(ToolCall { id, tool, input, is_structured, slot });
        }
    }

    /// Appends to the arguments of a call.
    pub(crate) fn append_arguments(&mut self, slot: u64, input: &str) {
        if let Some(call) = self.response.calls.iter_mut().rev().find(|call| call.slot == slot) {
            push(&mut call.input, input, INPUT_BYTES_MAX);
        }
    }

    pub(crate) fn has_tool_call(&self, slot: u64) -> bool {
        self.response.calls.iter().any(|call| call.slot == slot)
    }

    pub(crate) fn slot_of(&self, id: &str) -> Option<u64> {
        self.response.calls.iter().find(|call| call.id == id).map(|call| call.slot)
    }

    pub(crate) fn last_slot(&self) -> Option<u64> {
        self.response.calls.last().map(|call| call.slot)
    }

    pub(crate) fn next_slot(&self) -> u64 {
        self.last_slot().map_or(0, |slot| slot.saturating_add(1))
    }

    /// Sets the stop reason, unless it is empty.
    pub(crate) fn set_stop_reason(&mut self, why: &str) {
        if !why.is_empty() {
            self.response.stop = Some(why.to_owned());
        }
    }
}

/// Appends up to the maximum length, at a character boundary.
pub(crate) fn push(text: &mut String, more: &str, bytes_max: usize) {
    let room = bytes_max.saturating_sub(text.len());
    text.push_str(&more[..more.floor_char_boundary(room)]);
}
