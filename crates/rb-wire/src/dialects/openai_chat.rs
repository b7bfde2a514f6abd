//! OpenAI Chat Completions: a message each for the user, the model and every answer of a tool.

use std::borrow::Cow;

use super::{Dialect, Part, input, push_model_text, push_user_text, tool_result};
use crate::channel::Channel;
use crate::json::{Value, quoted, str_bytes, text};
use crate::model::RunInput;
use crate::model::TokenUsage;
use crate::response::{ProviderError, ResponseBuilder};

pub(super) const DIALECT: Dialect = Dialect {
    id: "openai-chat",
    summary: "OpenAI Chat Completions, which most other servers speak too.",
    path: "/chat/completions",
    channels: &[Channel::DeveloperMessage, Channel::SystemMessage, Channel::UserMessage],
    messages_field: "messages",
    system: None,
    keeps_answers: false,
    has_threads: false,
    read,
    on_event,
    on_body,
    error_kind,
    error_body,
    error_event,
};

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
    parts.push(Part::Result { id, text, is_error });
}

/// The texts of a content, whether it is one or a list of parts.
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
    // Servers of others show the reasoning under one of two names.
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
    // The way of asking before there were several calls at once: the answer names the function.
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

/// A whole message, or what is new of it.
fn read_message(builder: &mut ResponseBuilder, message: Value<'_>) {
    let names = ["tool_calls", "reasoning_content", "reasoning", "content", "refusal"];
    let [calls, said @ ..] = message.fields(names);
    for said in said {
        builder.append_text(&text(said));
    }
    for (place, call) in (0..).zip(calls.into_iter().flat_map(Value::items)) {
        let id = call.text_of("id");
        // Some servers leave the index out of a piece; then it belongs to the call before, unless it brings a new id.
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

/// What OpenAI calls errors, in both of its protocols.
pub(super) fn error_kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        500..=599 => "server_error",
        _ => "invalid_request_error",
    }
}

pub(super) fn error_body(kind: &str, message: &str) -> String {
    let (kind, message) = (quoted(kind), quoted(message));
    format!(r#"{{"error":{{"message":{message},"type":{kind},"param":null,"code":null}}}}"#)
}

/// There is no event for errors in this protocol; clients look for the field.
fn error_event(kind: &str, message: &str) -> String {
    format!("data: {}\n\n", error_body(kind, message))
}
