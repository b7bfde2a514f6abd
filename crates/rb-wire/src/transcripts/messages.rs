//! Messages of every dialect: OpenAI's two, Anthropic's, Google's, LangChain's and OpenTelemetry's.
//!
//! The dialects differ in field names but not in meaning, and files mix them, so a single reader handles all of
//! them: the role determines the speaker, parts contain the content, and items without a role are calls and
//! results. Unknown items are skipped.

use std::borrow::Cow;

use super::lazy_json::Json;
use super::step_builder::{Answer, Call, Event, Turn, append};
use super::time::time_ms;
use super::usage::tokens;
use crate::model::RunInput;

type Events<'a> = Vec<Event<'a>>;

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    /// System prompt; produces no step.
    System,
    User,
    Model,
    Tool,
}

fn speaker(role: &str) -> Option<Speaker> {
    Some(match role {
        "system" | "developer" | "SystemMessage" | "system_prompt" => Speaker::System,
        "user" | "human" | "HumanMessage" | "User" => Speaker::User,
        "assistant" | "ai" | "model" | "agent" | "AIMessage" | "AIMessageChunk" => Speaker::Model,
        "tool" | "function" | "tool_result" | "ToolMessage" | "FunctionMessage" | "ipython" => {
            Speaker::Tool
        }
        _ => return None,
    })
}

/// Reads one message or item.
pub(super) fn message<'a>(json: Json<'a>, events: &mut Events<'a>) {
    let (json, class) = unwrapped(json);
    let [role, kind, content, parts] = json.fields(["role", "type", "content", "parts"]);
    let named = [role, kind].into_iter().flatten().find_map(|word| speaker(&word.text()?));
    let body = content.or(parts);
    match named.or(class) {
        None => item(json, events),
        Some(Speaker::System) => {}
        Some(Speaker::User) => spoken(body, Speaker::User, events),
        Some(Speaker::Tool) if body.is_some_and(holds_results) => {
            spoken(body, Speaker::Tool, events);
        }
        Some(Speaker::Tool) => events.push(Event::Answers(tool_message(json, body))),
        Some(Speaker::Model) => model_message(json, body, events),
    }
}

/// Returns `true` if a body consists of tool results instead of being one.
fn holds_results(body: Json<'_>) -> bool {
    let is_result = |part: Json<'_>| match part.get("type") {
        Some(kind) => !kind.is("text"),
        None => google_part(part).is_some(),
    };
    body.items().any(is_result)
}

/// Reads a tool result from a separate message.
fn tool_message<'a>(json: Json<'a>, body: Option<Json<'a>>) -> Answer<'a> {
    let [call_id, tool_use_id, id, name, is_error, error, status] =
        json.fields(["tool_call_id", "tool_use_id", "id", "name", "is_error", "error", "status"]);
    Answer {
        id: call_id.or(tool_use_id).or(id).and_then(Json::name),
        tool: name.and_then(Json::some_text),
        text: body.map(flat).unwrap_or_default(),
        is_error: truth(is_error)
            || truth(error)
            || status.is_some_and(|status| status.is("error")),
    }
}

fn model_message<'a>(json: Json<'a>, body: Option<Json<'a>>, events: &mut Events<'a>) {
    events.push(Event::Begin(turn(json)));
    let [reasoning, thinking, tool_calls, function_call, extra] = json.fields([
        "reasoning_content",
        "reasoning",
        "tool_calls",
        "function_call",
        "additional_kwargs",
    ]);
    let reasons = [reasoning, thinking].into_iter().flatten().find_map(Json::some_text);
    events.extend(reasons.map(Event::Reasons));
    let before = events.len();
    spoken(body, Speaker::Model, events);
    // LangChain repeats the calls, in the body and next to it.
    let told = events[before..].iter().any(|event| matches!(event, Event::Calls(_)));
    let listed = tool_calls.or_else(|| extra?.get("tool_calls")).filter(|_| !told);
    let calls = listed.into_iter().flat_map(Json::items).chain(function_call);
    events.extend(calls.map(|call| Event::Calls(tool_call(call))));
}

/// Returns the inner message of a wrapper, and the speaker if only the wrapper contains it. LangChain puts messages
/// under `data`, or under `kwargs` next to a class name.
fn unwrapped(json: Json<'_>) -> (Json<'_>, Option<Speaker>) {
    let [role, kind, id, data, kwargs] = json.fields(["role", "type", "id", "data", "kwargs"]);
    let Some(inner) = kwargs.or(data).filter(|inner| role.is_none() && inner.is_object()) else {
        return (json, None);
    };
    let class = id.filter(|id| id.is_list()).and_then(|id| id.items().last());
    (inner, class.or(kind).and_then(|word| speaker(&word.text()?)))
}

pub(super) fn turn(json: Json<'_>) -> Turn<'_> {
    let [model, usage, usage_metadata, timestamp, cost, metadata] =
        json.fields(["model", "usage", "usage_metadata", "timestamp", "cost", "response_metadata"]);
    let usage = usage.or(usage_metadata).map(tokens).unwrap_or_default();
    let model = model.or_else(|| metadata?.get("model_name"));
    Turn {
        id: None,
        at_ms: timestamp.and_then(time_ms),
        agent: None,
        model: model.and_then(Json::some_text),
        usage,
        cost_usd: cost.and_then(Json::number),
    }
}

/// Reads the body of a message.
fn spoken<'a>(body: Option<Json<'a>>, speaker: Speaker, events: &mut Events<'a>) {
    let Some(body) = body else { return };
    if body.is_list() {
        body.items().for_each(|part| self::part(part, speaker, events));
    } else if body.is_object() {
        part(body, speaker, events);
    } else if let Some(text) = body.some_text() {
        say(text, speaker, events);
    }
}

fn say<'a>(text: Cow<'a, str>, speaker: Speaker, events: &mut Events<'a>) {
    match speaker {
        Speaker::User => events.push(Event::User(text)),
        Speaker::Model => events.push(Event::Says(text)),
        Speaker::Tool => events.push(Event::Answers(Answer { text, ..Answer::default() })),
        Speaker::System => {}
    }
}

/// Reads one part of a message.
fn part<'a>(part: Json<'a>, speaker: Speaker, events: &mut Events<'a>) {
    if part.is_string() {
        return part.some_text().into_iter().for_each(|text| say(text, speaker, events));
    }
    let [kind, text, content] = part.fields(["type", "text", "content"]);
    let kind = kind.and_then(Json::text);
    match kind.as_deref() {
        Some("text" | "input_text" | "output_text" | "refusal" | "message_text") | None => {
            if let Some(event) = google_part(part) {
                events.push(event);
            } else if let Some(text) =
                text.or(content).or_else(|| part.get("refusal")).and_then(Json::some_text)
            {
                let is_thought = part.get("thought").and_then(Json::truth) == Some(true);
                if is_thought {
                    events.push(Event::Reasons(text));
                } else {
                    say(text, speaker, events);
                }
            }
        }
        Some("thinking" | "reasoning" | "reasoning_text" | "summary_text") => {
            let text =
                text.or(content).or_else(|| part.get("thinking")).or_else(|| part.get("reasoning"));
            events.extend(text.and_then(Json::some_text).map(Event::Reasons));
        }
        Some(_) => item(part, events),
    }
}

/// Reads a part of a Google message. It has no type field; the key determines its kind.
fn google_part(part: Json<'_>) -> Option<Event<'_>> {
    let [call, call_too, response, response_too] =
        part.fields(["functionCall", "function_call", "functionResponse", "function_response"]);
    if let Some(call) = call.or(call_too) {
        return Some(Event::Calls(tool_call(call)));
    }
    let [id, name, answer] = response.or(response_too)?.fields(["id", "name", "response"]);
    let (text, is_error) = answer.map(google_response).unwrap_or_default();
    Some(Event::Answers(Answer {
        id: id.and_then(Json::name),
        tool: name.and_then(Json::some_text),
        text,
        is_error,
    }))
}

/// Reads a tool response of Google: an object with the text under one of these keys.
pub(super) fn google_response(answer: Json<'_>) -> (Cow<'_, str>, bool) {
    let [output, result, error] = answer.fields(["output", "result", "error"]);
    let text = output.or(result).or(error).unwrap_or(answer);
    (flat(text), output.is_none() && result.is_none() && error.is_some())
}

/// Reads an item without a surrounding message: a call, a result, or another type.
pub(super) fn item<'a>(json: Json<'a>, events: &mut Events<'a>) {
    let Some(kind) = json.get("type").and_then(Json::text) else {
        // Bare tool call of a tracing library.
        if json.get("tool.name").is_some() {
            events.push(Event::Calls(tool_call(json)));
        }
        return;
    };
    match kind.as_ref() {
        "message" => spoken(json.get("content"), Speaker::Model, events),
        "reasoning" => {
            let [summary, content, text] = json.fields(["summary", "content", "text"]);
            let shown =
                summary.filter(|summary| summary.items().next().is_some() || summary.is_string());
            let text = shown.or(content).or(text).map(flat).unwrap_or_default();
            events.push(Event::Reasons(text));
        }
        "function_call" | "custom_tool_call" | "tool_use" | "server_tool_use" | "tool_call"
        | "function" => {
            events.push(Event::Calls(tool_call(json)));
        }
        "mcp_call"
        | "mcp_tool_use"
        | "local_shell_call"
        | "shell_call"
        | "web_search_call"
        | "file_search_call"
        | "code_interpreter_call"
        | "computer_call"
        | "image_generation_call"
        | "apply_patch_call" => {
            hosted_call(json, &kind, events);
        }
        kind if kind.ends_with("_output")
            || kind.ends_with("tool_result")
            || kind == "tool_call_response" =>
        {
            events.push(Event::Answers(answer(json)));
        }
        _ => {}
    }
}

/// Reads a call of a tool that the provider runs; the item may include the result.
fn hosted_call<'a>(json: Json<'a>, kind: &str, events: &mut Events<'a>) {
    let [id, call_id, name, arguments, input, action, code, queries, output, error] =
        json.fields([
            "id",
            "call_id",
            "name",
            "arguments",
            "input",
            "action",
            "code",
            "queries",
            "output",
            "error",
        ]);
    let id = call_id.or(id).and_then(Json::name);
    // MCP items contain the tool name; for other items, the type determines the name.
    let own = if kind.starts_with("mcp_") { "" } else { kind.trim_end_matches("_call") };
    let tool = name.and_then(Json::some_text).unwrap_or_else(|| Cow::Owned(own.to_owned()));
    let input = arguments.or(input).or(action).or(code).or(queries);
    events.push(Event::Calls(Call {
        id: id.clone(),
        tool,
        input: input.map(self::input).unwrap_or_default(),
    }));
    if let Some(text) = output.or(error).map(flat) {
        events.push(Event::Answers(Answer { id, tool: None, text, is_error: output.is_none() }));
    }
}

/// Reads a tool call with any of the known field names.
pub(super) fn tool_call(json: Json<'_>) -> Call<'_> {
    let [function, id, call_id, tool_call_id] =
        json.fields(["function", "id", "call_id", "tool_call_id"]);
    let inner = function.filter(|function| function.is_object()).unwrap_or(json);
    let [name, tool_name, traced, function_name, arguments, args, given, traced_args] = inner
        .fields([
            "name",
            "tool_name",
            "tool.name",
            "function_name",
            "arguments",
            "args",
            "input",
            "tool.args",
        ]);
    let name = name.or(tool_name).or(traced).or(function_name);
    Call {
        // A Responses item has both; results name the `call_id`.
        id: call_id.or(tool_call_id).or(id).and_then(Json::name),
        tool: name.and_then(Json::some_text).unwrap_or_default(),
        input: arguments.or(args).or(given).or(traced_args).map(input).unwrap_or_default(),
    }
}

/// Reads the argument of a call.
pub(super) fn input(json: Json<'_>) -> RunInput<'_> {
    match json.text() {
        Some(text) => RunInput::Text(text),
        None => json.text_or_json().map_or(RunInput::None, RunInput::Structured),
    }
}

fn answer(json: Json<'_>) -> Answer<'_> {
    let [
        tool_use_id,
        call_id,
        tool_call_id,
        id,
        name,
        output,
        content,
        response,
        result,
        is_error,
        status,
    ] = json.fields([
        "tool_use_id",
        "call_id",
        "tool_call_id",
        "id",
        "name",
        "output",
        "content",
        "response",
        "result",
        "is_error",
        "status",
    ]);
    Answer {
        id: tool_use_id.or(call_id).or(tool_call_id).or(id).and_then(Json::name),
        tool: name.and_then(Json::some_text),
        text: output.or(content).or(response).or(result).map(flat).unwrap_or_default(),
        is_error: truth(is_error)
            || status.is_some_and(|status| status.is("failed") || status.is("error")),
    }
}

/// Returns `true` if a flag is set to true.
pub(super) fn truth(flag: Option<Json<'_>>) -> bool {
    flag.and_then(Json::truth) == Some(true)
}

/// Joins all text of a body: strings unchanged, parts separated by line breaks, objects as JSON.
pub(super) fn flat(json: Json<'_>) -> Cow<'_, str> {
    if !json.is_list() {
        let own = json
            .get("text")
            .or_else(|| json.get("content"))
            .filter(|own| own.is_string() || own.is_list());
        return match own {
            Some(own) if json.entries().count() <= 3 => flat(own),
            _ => json.text_or_json().unwrap_or_default(),
        };
    }
    let mut text = Cow::default();
    for part in json.items() {
        let [own, content, kind] = part.fields(["text", "content", "type"]);
        match own.or(content) {
            Some(own) if own.is_string() => append(&mut text, own.text().unwrap_or_default()),
            Some(_) | None if part.is_string() => {
                append(&mut text, part.text().unwrap_or_default());
            }
            // Images and files contain no text.
            Some(_) | None if kind.is_some() => {}
            Some(_) | None => append(&mut text, part.text_or_json().unwrap_or_default()),
        }
    }
    text
}
