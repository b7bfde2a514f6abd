//! OpenAI Chat Completions: one message each for the user, the model and every tool result.

use std::borrow::Cow;

use super::fragment::{append_after, append_block, append_paragraph, text_block};
use super::{
    Dialect, Part, Position, RequestFields, SystemPrompt, common_role, input, push_model_text,
    push_user_text, tool_result,
};
use crate::body_edits::BodyEdits;
use crate::channel::Channel;
use crate::conversation_hash::Role;
use crate::json::{Value, quoted, str_bytes, text};
use crate::model::{RunInput, TokenUsage};
use crate::response::{ProviderError, ResponseBuilder};

/// The dialect.
#[derive(Debug)]
pub(crate) struct OpenAiChat;

impl Dialect for OpenAiChat {
    fn id(&self) -> &'static str {
        "openai-chat"
    }

    fn summary(&self) -> &'static str {
        "OpenAI Chat Completions, the protocol of most other servers."
    }

    fn matches(&self, path: &str) -> bool {
        path.ends_with("/chat/completions")
    }

    fn channels(&self) -> &'static [Channel] {
        &[Channel::DeveloperMessage, Channel::SystemMessage, Channel::UserMessage]
    }

    fn messages_field(&self) -> &'static str {
        "messages"
    }

    fn read_field<'a>(&self, _name: &[u8], _value: Value<'a>, _fields: &mut RequestFields<'a>) {}

    fn role(&self, role: &[u8], _kind: &[u8]) -> Role {
        common_role(role)
    }

    fn read<'a>(&self, message: Value<'a>, parts: &mut Vec<Part<'a>>) {
        read(message, parts);
    }

    fn accepts(&self, channel: Channel, position: &Position<'_>) -> bool {
        accepts(channel, position)
    }

    fn inject(
        &self,
        channel: Channel,
        position: &Position<'_>,
        text: &str,
        edits: &mut BodyEdits<'_>,
    ) {
        append_after(position.message, &message(channel_role(channel), text), edits);
    }

    fn inject_system(&self, prompt: &SystemPrompt<'_>, text: &str, edits: &mut BodyEdits<'_>) {
        let Some(list) = prompt.messages.filter(|list| list.is_list()) else { return };
        let system = prompt.first_message.filter(|(role, _)| *role == Role::System);
        match system.and_then(|(_, first)| first.get("content")) {
            Some(base) if base.is_string() => append_paragraph(base, text, edits),
            Some(base) if base.is_list() => append_block(base, &text_block(text), edits),
            Some(_) | None => {
                let comma = if prompt.first_message.is_some() { "," } else { "" };
                edits.insert(list.span().start + 1, message("system", text) + comma);
            }
        }
    }

    fn on_event(&self, builder: &mut ResponseBuilder, event: Value<'_>) {
        on_event(builder, event);
    }

    fn on_body(&self, builder: &mut ResponseBuilder, body: Value<'_>) {
        on_body(builder, body);
    }

    fn error_body(&self, status: u16, message: &str) -> String {
        error_body(status, message)
    }
}

/// Returns whether an injection may follow a message, in both protocols of OpenAI: never between a call and its result.
pub(super) fn accepts(channel: Channel, position: &Position<'_>) -> bool {
    match channel {
        Channel::TextBlock => false,
        Channel::SystemMessage | Channel::DeveloperMessage | Channel::UserMessage => {
            matches!(position.role, Role::User | Role::Tool | Role::System)
                && position.next != Some(Role::Tool)
        }
    }
}

/// Returns the role of an injected message, in both protocols of OpenAI.
pub(super) fn channel_role(channel: Channel) -> &'static str {
    match channel {
        Channel::SystemMessage => "system",
        Channel::DeveloperMessage => "developer",
        Channel::UserMessage | Channel::TextBlock => "user",
    }
}

fn message(role: &str, text: &str) -> String {
    format!(r#"{{"role":"{role}","content":{}}}"#, quoted(text))
}

fn read<'a>(message: Value<'a>, parts: &mut Vec<Part<'a>>) {
    let [role, content, id, name] = message.fields(["role", "content", "tool_call_id", "name"]);
    let id = match str_bytes(role) {
        b"user" => return texts(content, |text| push_user_text(text, parts)),
        b"assistant" => return read_assistant(message, parts),
        b"tool" => text(id),
        b"function" => text(name),
        _ => return,
    };
    let (text, is_error) = tool_result::text(content);
    parts.push(Part::Result { id, tool: "".into(), text, is_error });
}

/// Calls `each` with the texts of a content, which is a string or a list of parts.
fn texts<'a>(content: Option<Value<'a>>, mut each: impl FnMut(Cow<'a, str>)) {
    let Some(content) = content else { return };
    if let Some(text) = content.text() {
        each(text);
    }
    for part in content.items() {
        match part.str_bytes("type") {
            b"text" => each(part.text_of("text")),
            b"refusal" => each(part.text_of("refusal")),
            _ => {}
        }
    }
}

fn read_assistant<'a>(message: Value<'a>, parts: &mut Vec<Part<'a>>) {
    // Compatible servers return the reasoning under one of two names.
    let [shown, reasoning, content, refusal, calls, old_call] = message.fields([
        "reasoning_content",
        "reasoning",
        "content",
        "refusal",
        "tool_calls",
        "function_call",
    ]);
    push_model_text(text(shown), parts);
    push_model_text(text(reasoning), parts);
    texts(content, |text| push_model_text(text, parts));
    push_model_text(text(refusal), parts);
    for call in calls.into_iter().flat_map(Value::items) {
        let (tool, input) = tool_and_input(call);
        parts.push(Part::Call { id: call.text_of("id"), tool, input });
    }
    // The older form of a call; its result repeats the name of the function.
    if let Some(call) = old_call.filter(|call| call.is_object()) {
        let [name, arguments] = call.fields(["name", "arguments"]);
        parts.push(Part::Call { id: text(name), tool: text(name), input: input(arguments) });
    }
}

fn tool_and_input(call: Value<'_>) -> (Cow<'_, str>, RunInput<'_>) {
    let [custom, function] = call.fields(["custom", "function"]);
    let inner = custom.or(function).unwrap_or(call);
    let [name, emitted, arguments] = inner.fields(["name", "input", "arguments"]);
    (text(name), input(if custom.is_some() { emitted } else { arguments }))
}

fn on_event(builder: &mut ResponseBuilder, chunk: Value<'_>) {
    if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
        read_error(builder, error);
        return;
    }
    builder.set_identity(chunk);
    for choice in chunk.get("choices").into_iter().flat_map(Value::items) {
        if choice.get("index").and_then(Value::count).unwrap_or_default() != 0 {
            continue;
        }
        if let Some(delta) = choice.get("delta") {
            read_message(builder, delta);
        }
        builder.set_stop_reason(&choice.text_of("finish_reason"));
    }
    read_usage(builder, chunk.get("usage"));
    builder.response.is_complete |= builder.response.stop.is_some();
}

fn on_body(builder: &mut ResponseBuilder, body: Value<'_>) {
    if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
        read_error(builder, error);
        return;
    }
    builder.set_identity(body);
    let choice = body.get("choices").and_then(|choices| choices.items().next());
    if let Some(choice) = choice {
        if let Some(message) = choice.get("message") {
            read_message(builder, message);
        }
        builder.set_stop_reason(&choice.text_of("finish_reason"));
    }
    read_usage(builder, body.get("usage"));
    builder.response.is_complete = builder.response.stop.is_some();
}

/// Reads a message, or the delta of one.
fn read_message(builder: &mut ResponseBuilder, message: Value<'_>) {
    let names = ["tool_calls", "reasoning_content", "reasoning", "content", "refusal"];
    let [calls, said @ ..] = message.fields(names);
    for said in said {
        builder.append_text(&text(said));
    }
    for (place, call) in (0..).zip(calls.into_iter().flat_map(Value::items)) {
        let id = call.text_of("id");
        // Some servers omit the index of a delta; it then belongs to the previous call unless it has a new id.
        let slot = match call.get("index").and_then(Value::count) {
            Some(index) => index,
            None if id.is_empty() => builder.last_slot().unwrap_or(place),
            None => builder.slot_of(&id).unwrap_or(builder.next_slot()),
        };
        let (tool, input) = tool_and_input(call);
        if !builder.has_tool_call(slot) {
            builder.start_tool_call(slot, &id, &tool, false);
        }
        match input {
            RunInput::Text(text) | RunInput::Structured(text) => {
                builder.append_arguments(slot, &text);
            }
            RunInput::None => {}
        }
    }
}

fn read_usage(builder: &mut ResponseBuilder, usage: Option<Value<'_>>) {
    let Some(usage) = usage.filter(|usage| usage.is_object()) else { return };
    let count = |value: Option<Value<'_>>| value.and_then(Value::count);
    let details = usage.get("prompt_tokens_details");
    let of_details = |name| count(details.and_then(|details| details.get(name)));
    let read = of_details("cached_tokens").or_else(|| count(usage.get("prompt_cache_hit_tokens")));
    let (read, write) =
        (read.unwrap_or_default(), of_details("cache_write_tokens").unwrap_or_default());
    let prompt = count(usage.get("prompt_tokens")).unwrap_or_default();
    builder.response.usage = Some(TokenUsage {
        uncached_input: prompt.saturating_sub(read).saturating_sub(write),
        cache_read: read,
        cache_write: write,
        cache_write_hour: 0,
        output: count(usage.get("completion_tokens")).unwrap_or_default(),
    });
}

fn read_error(builder: &mut ResponseBuilder, error: Value<'_>) {
    let kind = [error.text_of("code"), error.text_of("type")].into_iter().find(|k| !k.is_empty());
    let message = error.text().unwrap_or_else(|| error.text_of("message"));
    builder.response.error =
        Some(ProviderError { kind: kind.unwrap_or_default().into(), message: message.into() });
}

/// Formats an error, in both protocols of OpenAI.
pub(super) fn error_body(status: u16, message: &str) -> String {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        500..=599 => "server_error",
        _ => "invalid_request_error",
    };
    let message = quoted(message);
    format!(r#"{{"error":{{"message":{message},"type":"{kind}","param":null,"code":null}}}}"#)
}
