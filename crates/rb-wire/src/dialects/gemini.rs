//! Gemini `generateContent`: contents of typed parts, with the model and the mode in the URL.
//!
//! Calls and results are matched by `id` where clients send one, and by the name of the function otherwise. Field names
//! are read in the spelling of the REST API and in snake case, which the API accepts as well.

use std::borrow::Cow;

use super::fragment::{append_after, append_item, insert_field};
use super::{
    Dialect, Part, Position, RequestFields, SystemPrompt, input, push_model_text, push_user_text,
    tool_result,
};
use crate::body_edits::BodyEdits;
use crate::channel::Channel;
use crate::conversation_hash::Role;
use crate::json::{Value, quoted, text};
use crate::model::{RunInput, TokenUsage};
use crate::response::{ProviderError, ResponseBuilder};

/// The dialect.
#[derive(Debug)]
pub(crate) struct Gemini;

/// Methods of a model that hold a conversation.
const METHODS: [&str; 2] = ["generateContent", "streamGenerateContent"];

/// Returns the model and the method at the end of a path such as `/v1beta/models/gemini-2.5-pro:generateContent`.
fn model_and_method(path: &str) -> Option<(&str, &str)> {
    let path = path.split('?').next().unwrap_or_default();
    path.rsplit('/').next()?.rsplit_once(':')
}

impl Dialect for Gemini {
    fn id(&self) -> &'static str {
        "gemini"
    }

    fn summary(&self) -> &'static str {
        "Gemini `generateContent`, the protocol of Gemini CLI and the Google Gen AI SDKs."
    }

    fn matches(&self, path: &str) -> bool {
        model_and_method(path)
            .is_some_and(|(model, method)| !model.is_empty() && METHODS.contains(&method))
    }

    fn channels(&self) -> &'static [Channel] {
        &[Channel::UserMessage, Channel::TextBlock]
    }

    fn messages_field(&self) -> &'static str {
        "contents"
    }

    fn read_field<'a>(&self, name: &[u8], value: Value<'a>, fields: &mut RequestFields<'a>) {
        if matches!(name, b"systemInstruction" | b"system_instruction") {
            fields.system = Some(value);
        }
    }

    fn model<'a>(&self, path: &'a str, _fields: &RequestFields<'a>) -> Cow<'a, str> {
        Cow::Borrowed(model_and_method(path).map_or("", |(model, _)| model))
    }

    fn role(&self, role: &[u8], _kind: &[u8]) -> Role {
        match role {
            // A content without a role is the user's.
            b"user" | b"" => Role::User,
            b"model" => Role::Assistant,
            b"function" => Role::Tool,
            _ => Role::Other,
        }
    }

    fn read<'a>(&self, message: Value<'a>, parts: &mut Vec<Part<'a>>) {
        let [role, content] = message.fields(["role", "parts"]);
        let role = self.role(role.map(Value::raw_str).unwrap_or_default(), b"");
        for part in content.into_iter().flat_map(Value::items) {
            read_part(part, role, parts);
        }
    }

    fn accepts(&self, channel: Channel, position: &Position<'_>) -> bool {
        let is_turn_end = matches!(position.role, Role::User | Role::Tool)
            && matches!(position.next, None | Some(Role::Assistant));
        match channel {
            Channel::TextBlock => {
                is_turn_end && position.message.get("parts").is_some_and(Value::is_list)
            }
            Channel::UserMessage => is_turn_end,
            Channel::SystemMessage | Channel::DeveloperMessage => false,
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
            if let Some(list) = position.message.get("parts") {
                append_item(list, &text_part(text), edits);
            }
            return;
        }
        let message = format!(r#"{{"role":"user","parts":[{}]}}"#, text_part(text));
        append_after(position.message, &message, edits);
    }

    fn inject_system(&self, prompt: &SystemPrompt<'_>, text: &str, edits: &mut BodyEdits<'_>) {
        let whole = format!(r#"{{"parts":[{}]}}"#, text_part(text));
        match prompt.field {
            None => insert_field(prompt.body, "systemInstruction", &whole, edits),
            Some(base) => match base.get("parts") {
                Some(list) if list.is_list() => append_item(list, &text_part(text), edits),
                Some(_) | None if base.is_null() => edits.replace(base.span(), whole),
                Some(_) | None => {}
            },
        }
    }

    fn set_model(
        &self,
        _current: Option<Value<'_>>,
        name: &str,
        target: &mut String,
        _edits: &mut BodyEdits<'_>,
    ) {
        let Some((model, _)) = model_and_method(target) else { return };
        let end = model.as_ptr().addr() - target.as_ptr().addr() + model.len();
        target.replace_range(end - model.len()..end, name);
    }

    fn on_event(&self, builder: &mut ResponseBuilder, event: Value<'_>) {
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            builder.response.error = Some(ProviderError {
                kind: error.text_of("status").into(),
                message: error.text_of("message").into(),
            });
            return;
        }
        let [id, model, candidates, feedback, usage] = event.fields([
            "responseId",
            "modelVersion",
            "candidates",
            "promptFeedback",
            "usageMetadata",
        ]);
        builder.set_id(&text(id));
        builder.set_model(&text(model));
        if let Some(candidate) = candidates.and_then(|list| list.items().next()) {
            read_candidate(builder, candidate);
        }
        builder.set_stop_reason(&feedback.map(|it| it.text_of("blockReason")).unwrap_or_default());
        read_usage(builder, usage);
        builder.response.is_complete = builder.response.stop.is_some();
    }

    fn on_body(&self, builder: &mut ResponseBuilder, body: Value<'_>) {
        if body.is_list() {
            // Without `alt=sse`, a stream is one list of the same objects.
            body.items().for_each(|chunk| self.on_event(builder, chunk));
        } else {
            self.on_event(builder, body);
        }
    }

    fn error_body(&self, status: u16, message: &str) -> String {
        let (kind, message) = (quoted(error_status(status)), quoted(message));
        format!(r#"{{"error":{{"code":{status},"message":{message},"status":{kind}}}}}"#)
    }
}

fn text_part(text: &str) -> String {
    format!(r#"{{"text":{}}}"#, quoted(text))
}

fn read_part<'a>(part: Value<'a>, role: Role, parts: &mut Vec<Part<'a>>) {
    let [own, call, snake_call, result, snake_result, code, outcome] = part.fields([
        "text",
        "functionCall",
        "function_call",
        "functionResponse",
        "function_response",
        "executableCode",
        "codeExecutionResult",
    ]);
    if let Some(call) = call.or(snake_call) {
        let [id, name, arguments] = call.fields(["id", "name", "args"]);
        parts.push(Part::Call { id: text(id), tool: text(name), input: input(arguments) });
    } else if let Some(result) = result.or(snake_result) {
        let [id, name, response] = result.fields(["id", "name", "response"]);
        let (output, is_error) = response_text(response);
        parts.push(Part::Result { id: text(id), tool: text(name), text: output, is_error });
    } else if let Some(code) = code {
        let tool = Cow::Borrowed(CODE_TOOL);
        parts.push(Part::Call { id: "".into(), tool, input: input(code.get("code")) });
    } else if let Some(outcome) = outcome {
        let is_error = outcome.str_bytes("outcome") != b"OUTCOME_OK";
        let (tool, text) = (Cow::Borrowed(CODE_TOOL), outcome.text_of("output"));
        parts.push(Part::Result { id: "".into(), tool, text, is_error });
    } else if role == Role::Assistant {
        push_model_text(text(own), parts);
    } else {
        push_user_text(text(own), parts);
    }
}

/// Name of the tool with which the provider runs code.
const CODE_TOOL: &str = "code_execution";

/// Returns the output of a function and whether it failed. The response is an object; the text has one of these names.
fn response_text(response: Option<Value<'_>>) -> (Cow<'_, str>, bool) {
    let Some(response) = response else { return (Cow::Borrowed(""), false) };
    let [output, result, error] = response.fields(["output", "result", "error"]);
    let has_failed = output.is_none() && result.is_none() && error.is_some();
    match output.or(result).or(error) {
        Some(value) if value.is_string() || value.is_list() => {
            let (text, failed) = tool_result::text(Some(value));
            (text, failed || has_failed)
        }
        Some(value) => (value.json(), has_failed),
        None => (response.json(), has_failed),
    }
}

fn read_candidate(builder: &mut ResponseBuilder, candidate: Value<'_>) {
    let mut parts = Vec::new();
    let content = candidate.get("content").and_then(|content| content.get("parts"));
    for part in content.into_iter().flat_map(Value::items) {
        if let Some(own) = part.get("text") {
            // A chunk is a piece of a text, so it is not trimmed and may be blank.
            let is_thought = part.get("thought").is_some_and(Value::is_true);
            builder.append_marked_text(&own.text().unwrap_or_default(), is_thought);
        } else {
            read_part(part, Role::Assistant, &mut parts);
        }
    }
    for part in parts {
        let Part::Call { id, tool, input } = part else { continue };
        let slot = builder.next_slot();
        builder.start_tool_call(slot, &id, &tool, matches!(input, RunInput::Structured(_)));
        match input {
            RunInput::Text(text) | RunInput::Structured(text) => {
                builder.append_arguments(slot, &text);
            }
            RunInput::None => {}
        }
    }
    builder.set_stop_reason(&candidate.text_of("finishReason"));
}

/// Reads the token counts; each chunk has the totals so far.
fn read_usage(builder: &mut ResponseBuilder, usage: Option<Value<'_>>) {
    let Some(usage) = usage.filter(|usage| usage.is_object()) else { return };
    let [prompt, tool_prompt, cached, candidates, thoughts] = usage
        .fields([
            "promptTokenCount",
            "toolUsePromptTokenCount",
            "cachedContentTokenCount",
            "candidatesTokenCount",
            "thoughtsTokenCount",
        ])
        .map(|count| count.and_then(Value::count).unwrap_or_default());
    builder.response.usage = Some(TokenUsage {
        uncached_input: prompt.saturating_sub(cached).saturating_add(tool_prompt),
        cache_read: cached,
        cache_write: 0,
        cache_write_hour: 0,
        output: candidates.saturating_add(thoughts),
    });
}

fn error_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500..=599 => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}
