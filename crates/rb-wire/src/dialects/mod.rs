//! Provider protocols: one file each, one row each in `DIALECTS`.
//!
//! A dialect reads the messages of a request and the events of a response, inserts text into a request, and formats
//! errors as the provider does. Unknown fields, blocks, items and events are ignored.

/// Anthropic Messages.
mod anthropic;
/// Gemini `generateContent`.
mod gemini;
/// OpenAI Chat Completions, also the protocol of most other servers.
mod openai_chat;
/// OpenAI Responses.
mod openai_responses;

/// JSON fragments that several dialects insert.
mod fragment;
pub(crate) mod tool_result;
mod user_text;

pub(crate) use self::anthropic::Anthropic;
pub(crate) use self::gemini::Gemini;
pub(crate) use self::openai_chat::OpenAiChat;
pub(crate) use self::openai_responses::OpenAiResponses;

use std::borrow::Cow;
use std::fmt;

use crate::body_edits::BodyEdits;
use crate::channel::Channel;
use crate::conversation_hash::Role;
use crate::json::{self, Value};
use crate::model::RunInput;
use crate::response::ResponseBuilder;

/// A provider protocol.
pub trait Dialect: fmt::Debug + Sync {
    /// Stable identifier: stored, displayed and used in configuration.
    fn id(&self) -> &'static str;

    /// One sentence for documentation.
    fn summary(&self) -> &'static str;

    /// Returns whether a request to this path, without its query, is a conversation in this dialect.
    fn matches(&self, path: &str) -> bool;

    /// Channels for an injection at the tail of a conversation, best first.
    fn channels(&self) -> &'static [Channel];

    /// Name of the field with the messages.
    fn messages_field(&self) -> &'static str;

    /// Reads a field of the request that only this dialect has.
    fn read_field<'a>(&self, name: &[u8], value: Value<'a>, fields: &mut RequestFields<'a>);

    /// Returns the requested model.
    fn model<'a>(&self, path: &'a str, fields: &RequestFields<'a>) -> Cow<'a, str> {
        let _ = path;
        json::text(fields.model)
    }

    /// Returns whether the provider stores responses unless a request disables that.
    fn stores_responses(&self) -> bool {
        false
    }

    /// Returns the role of a message, by its `role` and its `type`.
    fn role(&self, role: &[u8], kind: &[u8]) -> Role;

    /// Returns whether a message of this `type` only names an item that the provider stores.
    fn is_reference(&self, kind: &[u8]) -> bool {
        let _ = kind;
        false
    }

    /// Appends the parts of a message.
    fn read<'a>(&self, message: Value<'a>, parts: &mut Vec<Part<'a>>);

    /// Returns whether an injection may go to this position in this form.
    fn accepts(&self, channel: Channel, position: &Position<'_>) -> bool;

    /// Inserts a text at a position that was accepted.
    fn inject(
        &self,
        channel: Channel,
        position: &Position<'_>,
        text: &str,
        edits: &mut BodyEdits<'_>,
    );

    /// Adds a text to the system prompt.
    fn inject_system(&self, prompt: &SystemPrompt<'_>, text: &str, edits: &mut BodyEdits<'_>);

    /// Requests another model; `target` is path and query of the request. Does nothing if the request names no model.
    fn set_model(
        &self,
        current: Option<Value<'_>>,
        name: &str,
        target: &mut String,
        edits: &mut BodyEdits<'_>,
    ) {
        let _ = target;
        if let Some(value) = current.filter(|value| value.is_string()) {
            edits.replace(value.span(), json::quoted(name));
        }
    }

    /// Reads an event of a streamed response.
    fn on_event(&self, builder: &mut ResponseBuilder, event: Value<'_>);

    /// Reads a response that is one JSON body.
    fn on_body(&self, builder: &mut ResponseBuilder, body: Value<'_>);

    /// Event that keeps an idle stream open, if the protocol has one.
    fn keep_alive(&self) -> Option<&'static [u8]> {
        None
    }

    /// Formats an error as the provider does, for a response with this status.
    fn error_body(&self, status: u16, message: &str) -> String;
}

/// Every dialect.
pub static DIALECTS: [&dyn Dialect; 4] = [&Anthropic, &OpenAiChat, &OpenAiResponses, &Gemini];

/// Returns the dialect with this identifier.
pub fn by_id(id: &str) -> Option<&'static dyn Dialect> {
    DIALECTS.into_iter().find(|dialect| dialect.id() == id)
}

/// Returns the dialect of a request to this path; the query is ignored.
pub fn by_path(path: &str) -> Option<&'static dyn Dialect> {
    let path = path.split('?').next().unwrap_or_default();
    DIALECTS.into_iter().find(|dialect| dialect.matches(path))
}

/// Fields of a request outside its messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestFields<'a> {
    pub(crate) model: Option<Value<'a>>,
    /// System prompt, if it is not a message.
    pub(crate) system: Option<Value<'a>>,
    /// Response that the request continues, if the provider stores the conversation.
    pub(crate) previous_response_id: Option<Value<'a>>,
    /// Identifier of a conversation that the provider stores.
    pub(crate) conversation_id: Option<Value<'a>>,
    /// The request enables or disables storage of the response.
    pub(crate) store: Option<bool>,
    pub(crate) cache_key: Option<Value<'a>>,
    pub(crate) metadata: Option<Value<'a>>,
}

/// Place of an injection: directly behind a message.
#[derive(Debug, Clone, Copy)]
pub struct Position<'a> {
    pub(crate) message: Value<'a>,
    pub(crate) role: Role,
    /// Role of the next message.
    pub(crate) next: Option<Role>,
    /// The message is the value of the messages field, which is not a list.
    pub(crate) is_only_value: bool,
}

/// System prompt of a request, with everything that is needed to add one.
#[derive(Debug, Clone, Copy)]
pub struct SystemPrompt<'a> {
    pub(crate) body: &'a [u8],
    /// Field with the prompt, if it is not a message.
    pub(crate) field: Option<Value<'a>>,
    pub(crate) messages: Option<Value<'a>>,
    pub(crate) first_message: Option<(Role, Value<'a>)>,
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'a> {
    /// Text of a person, without text of tools, of the harness or of an injection.
    UserText(Cow<'a, str>),
    /// Text or visible reasoning of the model.
    ModelText(Cow<'a, str>),
    /// Tool call.
    Call {
        /// Identifier that the result repeats; may be empty.
        id: Cow<'a, str>,
        /// Name of the tool.
        tool: Cow<'a, str>,
        /// Arguments.
        input: RunInput<'a>,
    },
    /// Identifier of an item that the provider stores.
    Reference(Cow<'a, str>),
    /// Result of a tool call.
    Result {
        /// Identifier of the call; may be empty.
        id: Cow<'a, str>,
        /// Name of the tool; empty if the result has none.
        tool: Cow<'a, str>,
        /// Output of the tool.
        text: Cow<'a, str>,
        /// The call failed.
        is_error: bool,
    },
}

/// Appends a text of the user side, if a person wrote any of it.
fn push_user_text<'a>(text: Cow<'a, str>, parts: &mut Vec<Part<'a>>) {
    let text = match text {
        Cow::Borrowed(text) => Cow::Borrowed(user_text::strip_harness_text(text)),
        Cow::Owned(text) => Cow::Owned(user_text::strip_harness_text(&text).to_owned()),
    };
    if !text.is_empty() {
        parts.push(Part::UserText(text));
    }
}

/// Appends a text of the model, unless it is blank.
fn push_model_text<'a>(text: Cow<'a, str>, parts: &mut Vec<Part<'a>>) {
    if !text.trim().is_empty() {
        parts.push(Part::ModelText(text));
    }
}

/// Returns the arguments of a call.
fn input(value: Option<Value<'_>>) -> RunInput<'_> {
    match value {
        Some(value) if value.is_string() => RunInput::Text(value.text().unwrap_or_default()),
        Some(value) if !value.is_null() => RunInput::Structured(value.json()),
        Some(_) | None => RunInput::None,
    }
}

/// Returns the role of a message in the dialects of OpenAI and Anthropic.
fn common_role(role: &[u8]) -> Role {
    match role {
        b"user" => Role::User,
        b"assistant" => Role::Assistant,
        b"system" | b"developer" => Role::System,
        b"tool" | b"function" => Role::Tool,
        _ => Role::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_complete() {
        for (at, dialect) in DIALECTS.iter().enumerate() {
            let id = dialect.id();
            assert!(id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{id}");
            assert!(dialect.summary().ends_with('.'), "{id}");
            assert!(!dialect.channels().is_empty(), "{id}");
            assert!(DIALECTS[at + 1..].iter().all(|other| other.id() != id), "{id} twice");
            assert_eq!(by_id(id).map(Dialect::id), Some(id));
        }
    }

    #[test]
    fn the_path_determines_the_dialect() {
        let cases = [
            ("/anthropic/v1/messages?beta=true", Some("anthropic")),
            ("/v1/messages", Some("anthropic")),
            ("/v1/messages/count_tokens", None),
            ("/openai/v1/chat/completions", Some("openai-chat")),
            ("/up/local/v1/responses", Some("openai-responses")),
            ("/v1/responses/resp_1", None),
            ("/v1/models", None),
            ("/gemini/v1beta/models/gemini-2.5-pro:generateContent", Some("gemini")),
            ("/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", Some("gemini")),
            ("/v1beta/models/gemini-2.5-pro:countTokens", None),
            ("/v1beta/models/gemini-2.5-pro", None),
            ("/v1beta/openai/chat/completions", Some("openai-chat")),
        ];
        for (path, expected) in cases {
            assert_eq!(by_path(path).map(Dialect::id), expected, "{path}");
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
        {"error":{"code":429,"message":"the budget of this run (\"r1\") is used up","status":"RESOURCE_EXHAUSTED"}}
        {"error":{"code":400,"message":"the budget of this run (\"r1\") is used up","status":"INVALID_ARGUMENT"}}
        "#);
    }
}
