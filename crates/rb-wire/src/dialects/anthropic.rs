//! Anthropic Messages: content blocks, with tool results inside the messages of the user.

use super::fragment::{append_after, append_block, insert_field, text_block};
use super::{
    Dialect, Part, Position, RequestFields, SystemPrompt, common_role, input, push_model_text,
    push_user_text, tool_result,
};
use crate::body_edits::BodyEdits;
use crate::channel::Channel;
use crate::conversation_hash::Role;
use crate::json::{Value, quoted, str_bytes, text};
use crate::model::TokenUsage;
use crate::response::{ProviderError, ResponseBuilder};

/// Event that the provider sends on an idle stream.
const PING: &[u8] = b"event: ping\ndata: {\"type\": \"ping\"}\n\n";

/// Maximum number of cache markers in a request.
const MAX_CACHE_MARKERS: usize = 4;

/// The dialect.
#[derive(Debug)]
pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    fn id(&self) -> &'static str {
        "anthropic"
    }

    fn summary(&self) -> &'static str {
        "Anthropic Messages, the protocol of Claude Code and the Anthropic SDKs."
    }

    fn matches(&self, path: &str) -> bool {
        path.ends_with("/v1/messages")
    }

    fn channels(&self) -> &'static [Channel] {
        &[Channel::SystemMessage, Channel::TextBlock]
    }

    fn messages_field(&self) -> &'static str {
        "messages"
    }

    fn read_field<'a>(&self, name: &[u8], value: Value<'a>, fields: &mut RequestFields<'a>) {
        match name {
            b"system" => fields.system = Some(value),
            b"thread" => {
                fields.store = Some(true);
                fields.previous_response_id = value.get("previous_message_id");
            }
            _ => {}
        }
    }

    fn role(&self, role: &[u8], _kind: &[u8]) -> Role {
        common_role(role)
    }

    fn read<'a>(&self, message: Value<'a>, parts: &mut Vec<Part<'a>>) {
        read(message, parts);
    }

    fn accepts(&self, channel: Channel, position: &Position<'_>) -> bool {
        let is_user = position.role == Role::User;
        match channel {
            Channel::TextBlock => {
                is_user
                    && matches!(position.next, None | Some(Role::Assistant | Role::System))
                    && position
                        .message
                        .get("content")
                        .is_some_and(|content| content.is_string() || content.is_list())
            }
            Channel::SystemMessage => {
                is_user && matches!(position.next, None | Some(Role::Assistant))
            }
            Channel::DeveloperMessage | Channel::UserMessage => false,
        }
    }

    fn inject(
        &self,
        channel: Channel,
        position: &Position<'_>,
        text: &str,
        edits: &mut BodyEdits<'_>,
    ) {
        if channel == Channel::TextBlock {
            if let Some(content) = position.message.get("content") {
                append_block(content, &text_block(text), edits);
            }
            return;
        }
        let message = format!(r#"{{"role":"system","content":{}}}"#, quoted(text));
        append_after(position.message, &message, edits);
    }

    /// A base that is a string becomes a block with a cache marker, so that it stays cached while the next block changes.
    /// A base that is a list already has the markers that the client wants; it only gets the block.
    fn inject_system(&self, prompt: &SystemPrompt<'_>, text: &str, edits: &mut BodyEdits<'_>) {
        let block = text_block(text);
        match prompt.field {
            None => insert_field(prompt.body, "system", &format!("[{block}]"), edits),
            Some(base) if base.is_null() || base.bytes() == b"\"\"" => {
                edits.replace(base.span(), format!("[{block}]"));
            }
            Some(base) if base.is_string() => {
                let markers = memchr::memmem::find_iter(prompt.body, br#""cache_control""#).count();
                let has_room = markers < MAX_CACHE_MARKERS;
                let marker = if has_room { r#","cache_control":{"type":"ephemeral"}"# } else { "" };
                edits.insert(base.span().start, r#"[{"type":"text","text":"#);
                edits.insert(base.span().end, format!("{marker}}},{block}]"));
            }
            Some(base) if base.is_list() => append_block(base, &block, edits),
            Some(_) => {}
        }
    }

    fn on_event(&self, builder: &mut ResponseBuilder, event: Value<'_>) {
        on_event(builder, event);
    }

    fn on_body(&self, builder: &mut ResponseBuilder, body: Value<'_>) {
        on_body(builder, body);
    }

    fn keep_alive(&self) -> Option<&'static [u8]> {
        Some(PING)
    }

    fn error_body(&self, status: u16, message: &str) -> String {
        let (kind, message) = (quoted(error_kind(status)), quoted(message));
        format!(r#"{{"type":"error","error":{{"type":{kind},"message":{message}}}}}"#)
    }
}

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
        b"tool_result" => parts.push(result(id, content, is_error)),
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
            parts.push(result(id, content, is_error));
        }
        _ => {}
    }
}

fn result<'a>(
    id: Option<Value<'a>>,
    content: Option<Value<'a>>,
    is_error: Option<Value<'a>>,
) -> Part<'a> {
    let (output, failed) = tool_result::text(content);
    let is_error = failed || is_error.is_some_and(Value::is_true);
    Part::Result { id: text(id), tool: "".into(), text: output, is_error }
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
            // The arguments of a streamed call arrive in pieces after an empty object.
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

/// Reads the token counts. They are totals so far: a later count replaces an earlier one.
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
