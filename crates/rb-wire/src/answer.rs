//! What an answer tells while it passes: what it cost, what was said, which tools were asked for, how it ended.
//!
//! The reader is shown the bytes and keeps none of them beyond one event; they go to the client untouched, whatever the
//! reader makes of them. What it does keep is bounded, however long the answer.

use serde::{Deserialize, Serialize};

use crate::dialects::Dialect;
use crate::json::Value;
use crate::sse::{Event, Framer};
use crate::transcripts::RunInput;
use crate::usage::TokenUse;

/// Of an answer's text, this much is kept.
pub const THOUGHT_BYTES_MAX: usize = 64 << 10;
/// Of a call's argument, this much is kept.
pub const INPUT_BYTES_MAX: usize = 256 << 10;
/// So many calls of one answer are kept.
pub const CALLS_MAX: usize = 128;
/// An answer that is not streamed is read if it is no longer than this.
pub const BODY_BYTES_MAX: usize = 32 << 20;

/// What an answer told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// The provider's name for it.
    pub id: String,
    /// The model that gave it.
    pub model: String,
    /// What it cost; `None` where the provider does not say, as in chat streams without `include_usage`.
    pub usage: Option<TokenUse>,
    /// The beginning of what the model said and reasoned visibly.
    pub thought: String,
    /// The tools that were asked for.
    pub calls: Vec<AskedCall>,
    /// The provider's names for its parts, where it keeps them under names.
    pub items: Vec<String>,
    /// Why it ended, in the provider's word.
    pub stop: Option<String>,
    /// What went wrong, if the provider said so.
    pub fault: Option<Fault>,
    /// It came to its end.
    pub is_complete: bool,
}

/// A tool that the model asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AskedCall {
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

impl AskedCall {
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
pub struct Fault {
    /// The provider's word for it.
    pub kind: String,
    /// What it says.
    pub message: String,
}

/// Reads an answer as it passes.
#[derive(Debug)]
pub struct AnswerReader {
    dialect: &'static Dialect,
    form: Form,
    draft: Draft,
}

#[derive(Debug)]
enum Form {
    Stream(Framer),
    Body(Vec<u8>),
    /// Longer than we read.
    Lost,
}

impl AnswerReader {
    /// For an answer that is a stream of events.
    pub fn stream(dialect: &'static Dialect) -> Self {
        Self { dialect, form: Form::Stream(Framer::default()), draft: Draft::default() }
    }

    /// For an answer that is one body.
    pub fn body(dialect: &'static Dialect) -> Self {
        Self { dialect, form: Form::Body(Vec::new()), draft: Draft::default() }
    }

    /// Looks at what has arrived, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        match &mut self.form {
            Form::Stream(framer) => {
                let (dialect, draft) = (self.dialect, &mut self.draft);
                framer.feed(bytes, &mut |event| take(dialect, draft, event));
            }
            Form::Body(body) if body.len() + bytes.len() <= BODY_BYTES_MAX => {
                body.extend_from_slice(bytes);
            }
            Form::Body(_) => self.form = Form::Lost,
            Form::Lost => {}
        }
    }

    /// What is known so far of an answer that is streamed.
    pub fn so_far(&self) -> &Answer {
        &self.draft.answer
    }

    /// The answer has ended, or was cut off.
    pub fn finish(mut self) -> Answer {
        let (dialect, draft) = (self.dialect, &mut self.draft);
        match self.form {
            Form::Stream(framer) => framer.finish(&mut |event| take(dialect, draft, event)),
            Form::Body(body) => {
                if let Some(value) = Value::parse(&body) {
                    (dialect.on_body)(draft, value);
                }
            }
            Form::Lost => {}
        }
        self.draft.answer
    }
}

impl Answer {
    /// Reads an answer that is there as a whole.
    pub fn of_body(dialect: &'static Dialect, body: &[u8]) -> Self {
        let mut draft = Draft::default();
        if let Some(value) = Value::parse(body) {
            (dialect.on_body)(&mut draft, value);
        }
        draft.answer
    }
}

fn take(dialect: &Dialect, draft: &mut Draft, event: Event<'_>) {
    // `[DONE]` and whatever else is no object tells nothing.
    if let Some(value) = Value::parse(event.data).filter(|value| value.is_object()) {
        (dialect.on_event)(draft, value);
    }
}

/// An answer in the making: the words in which dialects tell what they see.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) answer: Answer,
}

impl Draft {
    /// Takes the id and the model of an object that has them.
    pub(crate) fn names(&mut self, object: Value<'_>) {
        for (name, kept) in [("id", &mut self.answer.id), ("model", &mut self.answer.model)] {
            if kept.is_empty() {
                *kept = object.text_of(name).into_owned();
            }
        }
    }

    /// More of the text that the model is at.
    pub(crate) fn thinks(&mut self, text: &str) {
        push(&mut self.answer.thought, text, THOUGHT_BYTES_MAX);
    }

    /// A text that stands apart from the one before.
    pub(crate) fn begins_text(&mut self, text: &str) {
        if !self.answer.thought.is_empty() {
            self.thinks("\n\n");
        }
        self.thinks(text);
    }

    /// A part that has a name.
    pub(crate) fn holds(&mut self, item: &str) {
        if !item.is_empty() && self.answer.items.len() < CALLS_MAX {
            self.answer.items.push(item.to_owned());
        }
    }

    /// A call; `slot` is where the answer holds it.
    pub(crate) fn asks(&mut self, slot: u64, id: &str, tool: &str, is_structured: bool) {
        if self.answer.calls.len() < CALLS_MAX {
            let (id, tool) = (id.to_owned(), tool.to_owned());
            let input = String::new();
            self.answer.calls.push(AskedCall { id, tool, input, is_structured, slot });
        }
    }

    /// More of the argument of a call.
    pub(crate) fn gives(&mut self, slot: u64, input: &str) {
        if let Some(call) = self.answer.calls.iter_mut().rev().find(|call| call.slot == slot) {
            push(&mut call.input, input, INPUT_BYTES_MAX);
        }
    }

    pub(crate) fn has(&self, slot: u64) -> bool {
        self.answer.calls.iter().any(|call| call.slot == slot)
    }

    pub(crate) fn slot_of(&self, id: &str) -> Option<u64> {
        self.answer.calls.iter().find(|call| call.id == id).map(|call| call.slot)
    }

    pub(crate) fn last_slot(&self) -> Option<u64> {
        self.answer.calls.last().map(|call| call.slot)
    }

    pub(crate) fn next_slot(&self) -> u64 {
        self.last_slot().map_or(0, |slot| slot.saturating_add(1))
    }

    /// Why it ends, unless that is empty.
    pub(crate) fn stops(&mut self, why: &str) {
        if !why.is_empty() {
            self.answer.stop = Some(why.to_owned());
        }
    }
}

/// Appends as much as there is room for, cut between characters.
pub(crate) fn push(text: &mut String, more: &str, bytes_max: usize) {
    let room = bytes_max.saturating_sub(text.len());
    text.push_str(&more[..more.floor_char_boundary(room)]);
}

#[cfg(test)]
mod tests;
