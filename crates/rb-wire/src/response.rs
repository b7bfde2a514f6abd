//! What an answer tells while it passes: what it cost, what was said, which tools were asked for, how it ended.
//!
//! The reader is shown the bytes and keeps none of them beyond one event; they go to the client untouched, whatever the
//! reader makes of them. What it does keep is bounded, however long the answer.

use serde::{Deserialize, Serialize};

use crate::json::Value;
use crate::model::{RunInput, TokenUsage};

/// Of an answer's text, this much is kept.
pub const THOUGHT_BYTES_MAX: usize = 64 << 10;
/// Of a call's argument, this much is kept.
pub const INPUT_BYTES_MAX: usize = 256 << 10;
/// So many calls of one answer are kept.
pub const CALLS_MAX: usize = 128;

/// What an answer told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// The provider's name for it.
    pub id: String,
    /// The model that gave it.
    pub model: String,
    /// What it cost; `None` where the provider does not say, as in chat streams without `include_usage`.
    pub usage: Option<TokenUsage>,
    /// The beginning of what the model said and reasoned visibly.
    pub thought: String,
    /// The tools that were asked for.
    pub calls: Vec<ToolCall>,
    /// The provider's names for its parts, where it keeps them under names.
    pub items: Vec<String>,
    /// Why it ended, in the provider's word.
    pub stop: Option<String>,
    /// What went wrong, if the provider said so.
    pub error: Option<ProviderError>,
    /// It came to its end.
    pub is_complete: bool,
}

/// A tool that the model asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolCall {
    /// The name under which it will be answered.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its argument, as text.
    pub input: String,
    /// The argument came as JSON and not inside a string.
    pub is_structured: bool,
    #[serde(skip)]
    slot: u64,
}

impl ToolCall {
    /// A call that is known from elsewhere.
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

    /// The argument with its form.
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
    /// The provider's word for it.
    pub kind: String,
    /// What it says.
    pub message: String,
}

/// An answer in the making: the words in which dialects tell what they see.
#[derive(Debug, Default)]
pub struct ResponseBuilder {
    pub(crate) response: Response,
    /// The last text was reasoning; only used by dialects that stream both without a start of their own.
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

    /// More of the text that the model is at.
    pub(crate) fn append_text(&mut self, text: &str) {
        push(&mut self.response.thought, text, THOUGHT_BYTES_MAX);
    }

    /// A text that stands apart from the one before.
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

    /// A part that has a name.
    pub(crate) fn add_item(&mut self, item: &str) {
        if !item.is_empty() && self.response.items.len() < CALLS_MAX {
            self.response.items.push(item.to_owned());
        }
    }

    /// A call; `slot` is where the answer holds it.
    pub(crate) fn start_tool_call(&mut self, slot: u64, id: &str, tool: &str, is_structured: bool) {
        if self.response.calls.len() < CALLS_MAX {
            let (id, tool) = (id.to_owned(), tool.to_owned());
            let input = String::new();
            self.response.calls.push(ToolCall { id, tool, input, is_structured, slot });
        }
    }

    /// More of the argument of a call.
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

    /// Why it ends, unless that is empty.
    pub(crate) fn set_stop_reason(&mut self, why: &str) {
        if !why.is_empty() {
            self.response.stop = Some(why.to_owned());
        }
    }
}

/// Appends as much as there is room for, cut between characters.
pub(crate) fn push(text: &mut String, more: &str, bytes_max: usize) {
    let room = bytes_max.saturating_sub(text.len());
    text.push_str(&more[..more.floor_char_boundary(room)]);
}
