//! The protocols that models are spoken to in: one file each, one row each in `DIALECTS`.
//!
//! A dialect knows what the messages of a request say, what an answer tells as it passes, and in which shape the
//! provider reports an error. It never rewrites anything. Fields, blocks, items and events that it does not know are
//! passed over.

/// Anthropic Messages.
pub mod anthropic;
/// OpenAI Chat Completions, spoken by most other servers too.
pub mod openai_chat;
/// OpenAI Responses.
pub mod openai_responses;

pub(crate) mod tool_result;
mod user_text;

use std::borrow::Cow;

use crate::channel::Channel;
use crate::json::Value;
use crate::model::RunInput;
use crate::response::ResponseBuilder;

/// One row of the table.
#[derive(Debug)]
pub struct Dialect {
    /// Stable name: stored, shown and configured by this.
    pub id: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
    /// How the path of a request in this dialect ends.
    pub path: &'static str,
    /// Where guidance may stand at the tail of a conversation, best first.
    pub channels: &'static [Channel],
    /// The field that holds the messages.
    pub(crate) messages_field: &'static str,
    /// The field that holds the system prompt; `None` where it is a message.
    pub(crate) system: Option<&'static str>,
    /// The provider keeps answers unless it is told not to, and requests may go on from them.
    pub(crate) keeps_answers: bool,
    /// The provider keeps a conversation that asks for it, as a thread.
    pub(crate) has_threads: bool,
    /// What a message says.
    pub(crate) read: for<'a> fn(Value<'a>, &mut Vec<Part<'a>>),
    /// What an event of a streamed answer tells.
    pub(crate) on_event: fn(&mut ResponseBuilder, Value<'_>),
    /// What a whole answer tells.
    pub(crate) on_body: fn(&mut ResponseBuilder, Value<'_>),
    /// The name of an error with that status.
    pub(crate) error_kind: fn(u16) -> &'static str,
    /// An error as a body.
    pub(crate) error_body: fn(&str, &str) -> String,
    /// An error as the last event of a stream that has begun.
    pub(crate) error_event: fn(&str, &str) -> String,
}

/// Every protocol.
pub static DIALECTS: [Dialect; 3] =
    [anthropic::DIALECT, openai_chat::DIALECT, openai_responses::DIALECT];

/// The dialect of that name.
pub fn by_id(id: &str) -> Option<&'static Dialect> {
    DIALECTS.iter().find(|dialect| dialect.id == id)
}

/// The dialect of a request to that path; its query does not matter.
pub fn by_path(path: &str) -> Option<&'static Dialect> {
    let path = path.split('?').next().unwrap_or_default();
    DIALECTS.iter().find(|dialect| path.ends_with(dialect.path))
}

impl Dialect {
    /// An error in the provider's own shape, for an answer with that status.
    pub fn error_body(&self, status: u16, message: &str) -> String {
        (self.error_body)((self.error_kind)(status), message)
    }

    /// The same as the end of a stream that has begun with status 200.
    pub fn error_event(&self, status: u16, message: &str) -> String {
        (self.error_event)((self.error_kind)(status), message)
    }
}

/// Something that a message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// A person speaks: no tool, no harness, not us.
    Said(Cow<'a, str>),
    /// The model speaks or reasons where it can be seen.
    Thought(Cow<'a, str>),
    /// The model asks for a tool.
    Call { id: Cow<'a, str>, tool: Cow<'a, str>, input: RunInput<'a> },
    /// Something that the model said, as the provider keeps it: its name alone.
    Reference(Cow<'a, str>),
    /// The tool answers.
    Result { id: Cow<'a, str>, text: Cow<'a, str>, is_error: bool },
}

/// Adds a text of the user's side, if a person wrote any of it.
fn push_user_text<'a>(text: Cow<'a, str>, parts: &mut Vec<Part<'a>>) {
    let text = match text {
        Cow::Borrowed(text) => Cow::Borrowed(user_text::strip_harness_text(text)),
        Cow::Owned(text) => Cow::Owned(user_text::strip_harness_text(&text).to_owned()),
    };
    if !text.is_empty() {
        parts.push(Part::Said(text));
    }
}

/// Adds a text of the model, if there is any.
fn push_model_text<'a>(text: Cow<'a, str>, parts: &mut Vec<Part<'a>>) {
    if !text.trim().is_empty() {
        parts.push(Part::Thought(text));
    }
}

/// An argument as it came.
fn input(value: Option<Value<'_>>) -> RunInput<'_> {
    match value {
        Some(value) if value.is_string() => RunInput::Text(value.text().unwrap_or_default()),
        Some(value) if !value.is_null() => RunInput::Structured(value.json()),
        Some(_) | None => RunInput::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_complete() {
        for (at, dialect) in DIALECTS.iter().enumerate() {
            let id = dialect.id;
            assert!(id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{id}");
            assert!(dialect.summary.ends_with('.'), "{id}");
            assert!(!dialect.channels.is_empty(), "{id}");
            assert!(DIALECTS[at + 1..].iter().all(|other| other.id != id), "{id} twice");
            assert!(by_id(id).is_some_and(|found| std::ptr::eq(found, dialect)));
        }
    }

    #[test]
    fn a_path_tells_the_dialect() {
        let cases = [
            ("/anthropic/v1/messages?beta=true", Some("anthropic")),
            ("/v1/messages", Some("anthropic")),
            ("/v1/messages/count_tokens", None),
            ("/openai/v1/chat/completions", Some("openai-chat")),
            ("/up/local/v1/responses", Some("openai-responses")),
            ("/v1/responses/resp_1", None),
            ("/v1/models", None),
        ];
        for (path, expected) in cases {
            assert_eq!(by_path(path).map(|dialect| dialect.id), expected, "{path}");
        }
    }

    #[test]
    fn errors_have_the_shape_of_the_provider() {
        let message = "the budget of this run (\"r1\") is used up";
        let bodies: Vec<String> = DIALECTS
            .iter()
            .flat_map(|dialect| [429, 400].map(|status| dialect.error_body(status, message)))
            .collect();
        for body in &bodies {
            serde_json::from_str::<serde_json::Value>(body).expect("JSON");
        }
        insta::assert_snapshot!(bodies.join("\n"), @r#"
        {"type":"error","error":{"type":"rate_limit_error","message":"the budget of this run (\"r1\") is used up"}}
        {"type":"error","error":{"type":"invalid_request_error","message":"the budget of this run (\"r1\") is used up"}}
        {"error":{"message":"the budget of this run (\"r1\") is used up","type":"rate_limit_error","param":null,"code":null}}
        {"error":{"message":"the budget of this run (\"r1\") is used up","type":"invalid_request_error","param":null,"code":null}}
        {"error":{"message":"the budget of this run (\"r1\") is used up","type":"rate_limit_error","param":null,"code":null}}
        {"error":{"message":"the budget of this run (\"r1\") is used up","type":"invalid_request_error","param":null,"code":null}}
        "#);
        let events: Vec<String> =
            DIALECTS.iter().map(|dialect| dialect.error_event(529, "gone")).collect();
        insta::assert_snapshot!(events.concat(), @r#"
        event: error
        data: {"type":"error","error":{"type":"overloaded_error","message":"gone"}}

        data: {"error":{"message":"gone","type":"server_error","param":null,"code":null}}

        event: response.failed
        data: {"type":"response.failed","response":{"object":"response","status":"failed","error":{"code":"server_error","message":"gone"}}}
        "#);
    }
}
