//! OpenAI Responses: a list of items, of which messages are only one kind.
//!
//! The type of a call ends in `_call`. Calls that the agent executes have a `call_id`, and the type of their result ends
//! in `_output`; calls that the provider executes contain their result. Unknown kinds of tools are therefore read too.

use std::borrow::Cow;

use super::fragment::{append_after, append_paragraph, insert_field};
use super::openai_chat::{accepts, channel_role, error_body};
use super::{
    Dialect, Part, Position, RequestFields, SystemPrompt, common_role, input, push_model_text,
    push_user_text, tool_result,
};
use crate::body_edits::BodyEdits;
use crate::channel::Channel;
use crate::conversation_hash::Role;
use crate::json::{Value, quoted, str_bytes};
use crate::model::{RunInput, TokenUsage};
use crate::response::{ProviderError, ResponseBuilder};

/// Type of an item that names an item that the provider stores.
const ITEM_REFERENCE: &[u8] = b"item_reference";

/// The dialect.
#[derive(Debug)]
pub(crate) struct OpenAiResponses;

impl Dialect for OpenAiResponses {
    fn id(&self) -> &'static str {
        "openai-responses"
    }

    fn summary(&self) -> &'static str {
        "OpenAI Responses, the protocol of Codex and the OpenAI Agents SDK."
    }

    fn matches(&self, path: &str) -> bool {
        path.ends_with("/responses")
    }

    fn channels(&self) -> &'static [Channel] {
        &[Channel::DeveloperMessage, Channel::SystemMessage, Channel::UserMessage]
    }

    fn messages_field(&self) -> &'static str {
        "input"
    }

    fn read_field<'a>(&self, name: &[u8], value: Value<'a>, fields: &mut RequestFields<'a>) {
        match name {
            b"instructions" => fields.system = Some(value),
            b"previous_response_id" => fields.previous_response_id = Some(value),
            b"conversation" => {
                let id = if value.is_object() { value.get("id") } else { Some(value) };
                fields.conversation_id = id;
            }
            b"store" if value.is_null() => {}
            b"store" => fields.store = Some(value.is_true()),
            _ => {}
        }
    }

    fn stores_responses(&self) -> bool {
        true
    }

    fn role(&self, role: &[u8], kind: &[u8]) -> Role {
        let is_call = kind.ends_with(b"_call") || kind.starts_with(b"mcp_");
        match common_role(role) {
            Role::Other if kind.ends_with(b"_output") || kind == b"mcp_approval_response" => {
                Role::Tool
            }
            Role::Other if is_call || kind == b"reasoning" || kind == ITEM_REFERENCE => {
                Role::Assistant
            }
            role @ (Role::System | Role::User | Role::Assistant | Role::Tool | Role::Other) => role,
        }
    }

    fn is_reference(&self, kind: &[u8]) -> bool {
        kind == ITEM_REFERENCE
    }

    fn read<'a>(&self, item: Value<'a>, parts: &mut Vec<Part<'a>>) {
        read(item, parts);
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
        let (role, text) = (channel_role(channel), quoted(text));
        let message = format!(
            r#"{{"type":"message","role":"{role}","content":[{{"type":"input_text","text":{text}}}]}}"#
        );
        if position.is_only_value {
            // A string is short for one message of the user.
            let span = position.message.span();
            edits.insert(span.start, r#"[{"role":"user","content":"#);
            edits.insert(span.end, format!("}},{message}]"));
        } else {
            append_after(position.message, &message, edits);
        }
    }

    fn inject_system(&self, prompt: &SystemPrompt<'_>, text: &str, edits: &mut BodyEdits<'_>) {
        match prompt.field {
            None => insert_field(prompt.body, "instructions", &quoted(text), edits),
            Some(base) if base.is_null() => edits.replace(base.span(), quoted(text)),
            Some(base) => append_paragraph(base, text, edits),
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

fn read<'a>(item: Value<'a>, parts: &mut Vec<Part<'a>>) {
    if let Some(text) = item.text() {
        push_user_text(text, parts);
        return;
    }
    match item.str_bytes("type") {
        b"" | b"message" => read_message(item, parts),
        b"reasoning" => {
            for list in ["summary", "content"] {
                let texts = item.get(list).into_iter().flat_map(Value::items);
                texts.for_each(|text| push_model_text(text.text_of("text"), parts));
            }
        }
        ITEM_REFERENCE => parts.push(Part::Reference(item.text_of("id"))),
        kind if kind.ends_with(b"_call") => read_call(kind, item, parts),
        kind if kind.ends_with(b"_output") => {
            let (text, failed) =
                tool_result::text(item.get("output").or_else(|| item.get("tools")));
            parts.push(Part::Result {
                id: id(item),
                tool: "".into(),
                text,
                is_error: failed || has_failed(item),
            });
        }
        _ => {}
    }
}

fn read_message<'a>(item: Value<'a>, parts: &mut Vec<Part<'a>>) {
    let [role, content] = item.fields(["role", "content"]);
    let is_user = match str_bytes(role) {
        b"user" => true,
        b"assistant" => false,
        _ => return,
    };
    let mut add =
        |text| if is_user { push_user_text(text, parts) } else { push_model_text(text, parts) };
    let Some(content) = content else { return };
    if let Some(text) = content.text() {
        add(text);
    }
    for part in content.items() {
        match part.str_bytes("type") {
            b"input_text" | b"output_text" | b"text" => add(part.text_of("text")),
            b"refusal" => add(part.text_of("refusal")),
            _ => {}
        }
    }
}

fn id(item: Value<'_>) -> Cow<'_, str> {
    match item.text_of("call_id") {
        none if none.is_empty() => item.text_of("id"),
        call_id => call_id,
    }
}

fn has_failed(item: Value<'_>) -> bool {
    matches!(item.str_bytes("status"), b"failed" | b"incomplete")
        || item.get("error").is_some_and(|error| !error.is_null())
}

fn tool<'a>(kind: &'a [u8], item: Value<'a>) -> Cow<'a, str> {
    match item.text_of("name") {
        none if none.is_empty() => {
            String::from_utf8_lossy(kind.strip_suffix(b"_call").unwrap_or(kind))
        }
        name => name,
    }
}

fn argument(item: Value<'_>) -> RunInput<'_> {
    input(first_of(
        item,
        ["arguments", "input", "action", "operation", "code", "queries", "prompt"],
    ))
}

/// Returns the first of these fields that is not null.
fn first_of<'a, const N: usize>(item: Value<'a>, names: [&str; N]) -> Option<Value<'a>> {
    item.fields(names).into_iter().flatten().find(|value| !value.is_null())
}

fn read_call<'a>(kind: &'a [u8], item: Value<'a>, parts: &mut Vec<Part<'a>>) {
    parts.push(Part::Call { id: id(item), tool: tool(kind, item), input: argument(item) });
    let is_answered_elsewhere = item.get("call_id").is_some_and(Value::is_string);
    if is_answered_elsewhere {
        return;
    }
    let (text, failed) =
        tool_result::text(first_of(item, ["output", "outputs", "results", "error"]));
    parts.push(Part::Result {
        id: id(item),
        tool: "".into(),
        text,
        is_error: failed || has_failed(item),
    });
}

fn on_event(builder: &mut ResponseBuilder, event: Value<'_>) {
    match event.str_bytes("type") {
        b"response.created" => {
            if let Some(response) = event.get("response") {
                builder.set_identity(response);
            }
        }
        b"response.output_item.done" => {
            let slot = event.get("output_index").and_then(Value::count).unwrap_or_default();
            if let Some(item) = event.get("item") {
                read_item(builder, slot, item);
            }
        }
        b"response.completed" | b"response.failed" | b"response.incomplete" => {
            if let Some(response) = event.get("response") {
                read_end(builder, response);
            }
        }
        b"error" => read_error(builder, event.get("error").unwrap_or(event)),
        _ => {}
    }
}

fn on_body(builder: &mut ResponseBuilder, body: Value<'_>) {
    if body.str_bytes("object") != b"response"
        && let Some(error) = body.get("error").filter(|error| !error.is_null())
    {
        read_error(builder, error);
        return;
    }
    builder.set_identity(body);
    for (slot, item) in (0..).zip(body.get("output").into_iter().flat_map(Value::items)) {
        read_item(builder, slot, item);
    }
    read_end(builder, body);
}

/// Reads an item that is done. Its deltas are ignored, because the event at its end has all of it.
fn read_item(builder: &mut ResponseBuilder, slot: u64, item: Value<'_>) {
    let mut parts = Vec::new();
    read(item, &mut parts);
    builder.add_item(&item.text_of("id"));
    for part in parts {
        match part {
            Part::ModelText(text) => builder.start_text(&text),
            Part::Call { id, tool, input } => {
                let is_structured = matches!(input, RunInput::Structured(_));
                builder.start_tool_call(slot, &id, &tool, is_structured);
                match input {
                    RunInput::Text(text) | RunInput::Structured(text) => {
                        builder.append_arguments(slot, &text);
                    }
                    RunInput::None => {}
                }
            }
            Part::UserText(_) | Part::Reference(_) | Part::Result { .. } => {}
        }
    }
}

fn read_end(builder: &mut ResponseBuilder, response: Value<'_>) {
    builder.set_identity(response);
    let reason = response.get("incomplete_details").map(|why| why.text_of("reason"));
    let reason = reason.filter(|reason| !reason.is_empty());
    builder.set_stop_reason(&reason.unwrap_or_else(|| response.text_of("status")));
    if let Some(error) = response.get("error").filter(|error| !error.is_null()) {
        read_error(builder, error);
    }
    if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
        let count = |value: Option<Value<'_>>| value.and_then(Value::count).unwrap_or_default();
        let details = usage.get("input_tokens_details");
        let of_details = |name| count(details.and_then(|details| details.get(name)));
        let (read, write) = (of_details("cached_tokens"), of_details("cache_write_tokens"));
        builder.response.usage = Some(TokenUsage {
            uncached_input: count(usage.get("input_tokens"))
                .saturating_sub(read)
                .saturating_sub(write),
            cache_read: read,
            cache_write: write,
            cache_write_hour: 0,
            output: count(usage.get("output_tokens")),
        });
    }
    builder.response.is_complete = true;
}

fn read_error(builder: &mut ResponseBuilder, error: Value<'_>) {
    let kind = [error.text_of("code"), error.text_of("type")].into_iter().find(|k| !k.is_empty());
    builder.response.error = Some(ProviderError {
        kind: kind.unwrap_or_default().into(),
        message: error.text_of("message").into(),
    });
}
