//! Anthropic Messages: content blocks, with the answers of tools inside the user's messages.

use super::{Dialect, Part, input, push_model_text, push_user_text, tool_result};
use crate::channel::Channel;
use crate::json::{Value, quoted, str_bytes, text};
use crate::model::TokenUsage;
use crate::response::{ProviderError, ResponseBuilder};

/// The event that tells a silent client that the stream is alive.
pub const PING: &[u8] = b"event: ping\ndata: {\"type\": \"ping\"}\n\n";

pub(super) const DIALECT: Dialect = Dialect {
    id: "anthropic",
    summary: "Anthropic Messages, as Claude Code and the Anthropic SDKs speak it.",
    path: "/v1/messages",
    channels: &[Channel::SystemMessage, Channel::TextBlock],
    messages_field: "messages",
    system: Some("system"),
    keeps_answers: false,
    has_threads: true,
    read,
    on_event,
    on_body,
    error_kind,
    error_body,
    error_event,
};

fn read<'a>(message: Value<'a>, parts: &mut Vec<Part<'a>>) {
    let [role, content] = message.fields(["role", "content"]);
    let Some(content) = content else { return };
    match str_bytes(role) {
        b"user" => match content.text() {
            Some(text) => push_user_text(text, parts),
            None => content.items().for_each(|block| read_user(block, parts)),
        },
        b"assistant" => match content.text() {
            Some(text) => push_model_text(text, parts),
            None => content.items().for_each(|block| read_assistant(block, parts)),
        },
        _ => {}
    }
}

fn read_user<'a>(block: Value<'a>, parts: &mut Vec<Part<'a>>) {
    let [kind, said, id, content, is_error] =
        block.fields(["type", "text", "tool_use_id", "content", "is_error"]);
    match str_bytes(kind) {
        b"text" => push_user_text(text(said), parts),
        b"tool_result" => parts.push(answer(id, content, is_error)),
        _ => {}
    }
}

fn read_assistant<'a>(block: Value<'a>, parts: &mut Vec<Part<'a>>) {
    let [kind, said, thinking, id, tool, emitted] =
        block.fields(["type", "text", "thinking", "id", "name", "input"]);
    match str_bytes(kind) {
        b"text" => push_model_text(text(said), parts),
        b"thinking" => push_model_text(text(thinking), parts),
        b"tool_use" | b"server_tool_use" | b"mcp_tool_use" => {
            parts.push(Part::Call { id: text(id), tool: text(tool), input: input(emitted) });
        }
        kind if kind.ends_with(b"_tool_result") => {
            let [id, content, is_error] = block.fields(["tool_use_id", "content", "is_error"]);
            parts.push(answer(id, content, is_error));
        }
        _ => {}
    }
}

fn answer<'a>(
    id: Option<Value<'a>>,
    content: Option<Value<'a>>,
    is_error: Option<Value<'a>>,
) -> Part<'a> {
    let (answer, failed) = tool_result::text(content);
    let is_error = failed || is_error.is_some_and(Value::is_true);
    Part::Result { id: text(id), text: answer, is_error }
}

fn on_event(builder: &mut ResponseBuilder, event: Value<'_>) {
    let [kind, index, delta, block, message, usage, error] =
        event.fields(["type", "index", "delta", "content_block", "message", "usage", "error"]);
    let slot = index.and_then(Value::count).unwrap_or_default();
    match (str_bytes(kind), delta, block) {
        (b"message_start", ..) => {
            let Some(message) = message else { return };
            builder.set_identity(message);
            read_usage(builder, message.get("usage"));
        }
        (b"content_block_start", _, Some(block)) => start_block(builder, slot, block),
        (b"content_block_delta", Some(delta), _) => {
            let [kind, said, thinking, json] =
                delta.fields(["type", "text", "thinking", "partial_json"]);
            match str_bytes(kind) {
                b"text_delta" => builder.append_text(&text(said)),
                b"thinking_delta" => builder.append_text(&text(thinking)),
                b"input_json_delta" => builder.append_arguments(slot, &text(json)),
                _ => {}
            }
        }
        (b"message_delta", delta, _) => {
            builder.set_stop_reason(
                &delta.map(|delta| delta.text_of("stop_reason")).unwrap_or_default(),
            );
            read_usage(builder, usage);
        }
        (b"message_stop", ..) => builder.response.is_complete = true,
        (b"error", ..) => read_error(builder, error),
        _ => {}
    }
}

fn start_block(builder: &mut ResponseBuilder, slot: u64, block: Value<'_>) {
    match block.str_bytes("type") {
        b"text" => builder.start_text(&block.text_of("text")),
        b"thinking" => builder.start_text(&block.text_of("thinking")),
        b"tool_use" | b"server_tool_use" | b"mcp_tool_use" => {
            builder.start_tool_call(slot, &block.text_of("id"), &block.text_of("name"), true);
            // The input of a streamed call comes in pieces behind an empty object.
            let whole = block.get("input").map(Value::bytes).filter(|json| *json != b"{}");
            builder.append_arguments(slot, &String::from_utf8_lossy(whole.unwrap_or_default()));
        }
        _ => {}
    }
}

fn on_body(builder: &mut ResponseBuilder, body: Value<'_>) {
    if body.str_bytes("type") == b"error" {
        read_error(builder, body.get("error"));
        return;
    }
    builder.set_identity(body);
    for (slot, block) in (0..).zip(body.get("content").into_iter().flat_map(Value::items)) {
        start_block(builder, slot, block);
    }
    builder.set_stop_reason(&body.text_of("stop_reason"));
    read_usage(builder, body.get("usage"));
    builder.response.is_complete = builder.response.stop.is_some();
}

/// Counts are totals so far: a later one takes the place of an earlier one, and one that is absent changes nothing.
fn read_usage(builder: &mut ResponseBuilder, usage: Option<Value<'_>>) {
    let Some(usage) = usage.filter(|usage| usage.is_object()) else { return };
    let known = builder.response.usage.get_or_insert_with(TokenUsage::default);
    for (key, value) in usage.members() {
        match (key, value.count()) {
            (b"input_tokens", Some(count)) => known.uncached_input = count,
            (b"cache_read_input_tokens", Some(count)) => known.cache_read = count,
            (b"cache_creation_input_tokens", Some(count)) => known.cache_write = count,
            (b"output_tokens", Some(count)) => known.output = count,
            (b"cache_creation", None) => {
                let hour = value.get("ephemeral_1h_input_tokens").and_then(Value::count);
                known.cache_write_hour = hour.unwrap_or(known.cache_write_hour);
            }
            _ => {}
        }
    }
}

fn read_error(builder: &mut ResponseBuilder, error: Option<Value<'_>>) {
    let part = |name| error.map(|error| error.text_of(name).into_owned()).unwrap_or_default();
    builder.response.error = Some(ProviderError { kind: part("type"), message: part("message") });
}

fn error_kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500..=599 => "api_error",
        _ => "invalid_request_error",
    }
}

fn error_body(kind: &str, message: &str) -> String {
    let (kind, message) = (quoted(kind), quoted(message));
    format!(r#"{{"type":"error","error":{{"type":{kind},"message":{message}}}}}"#)
}

fn error_event(kind: &str, message: &str) -> String {
    format!("event: error\ndata: {}\n\n", error_body(kind, message))
}
