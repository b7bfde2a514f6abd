//! Importer of bare conversations: messages in the format of a provider's API, with few other fields.
//!
//! **Shape.** A list of messages; an object with a list under `messages` or `input`, optionally with the response
//! under `response`, `output` or `choices`; a list or lines of either; or one message per line. The importers
//! differ only in detection, not in parsing, because files mix the dialects.

use super::documents::{ImportContext, import};
use super::find_messages::{self, Plain};
use super::lazy_json::Json;
use super::messages;
use super::sniff::{FilePreview, Record};
use super::step_builder::{Event, StepBuilder};
use super::{DiagnosticKind, Imported, Importer, Unit};
use crate::model::Run;

pub(super) const ANTHROPIC: Importer = Importer {
    id: "anthropic-messages",
    summary: "Anthropic messages, with or without the request around them.",
    unit: Unit::Document,
    sniff: |preview| {
        preview.any(|record| any_message(record, is_anthropic)) && !is_line_each(preview)
    },
    parse,
};

pub(super) const RESPONSES: Importer = Importer {
    id: "openai-responses",
    summary: "Items of OpenAI's Responses, with or without the request around them.",
    unit: Unit::Document,
    sniff: |preview| {
        preview.any(|record| any_message(record, is_responses)) && !is_line_each(preview)
    },
    parse,
};

pub(super) const CHAT: Importer = Importer {
    id: "openai-chat",
    summary: "OpenAI chat messages, with or without the request around them.",
    unit: Unit::Document,
    sniff: |preview| {
        preview.any(|record| any_message(record, is_message)) && !is_line_each(preview)
    },
    parse,
};

pub(super) const LINES: Importer = Importer {
    id: "message-lines",
    summary: "Messages of any of these dialects, one a line.",
    unit: Unit::File,
    sniff: is_line_each,
    parse,
};

fn is_line_each(preview: &FilePreview<'_>) -> bool {
    let is_bare = |record: &Record<'_>| {
        let has_body =
            ["content", "parts", "tool_calls"].iter().any(|key| record.get(key).is_some());
        record.get("role").is_some() && has_body
            || record.is("type", &["function_call", "function_call_output"])
    };
    !preview.is_list() && preview.any(is_bare)
}

/// Returns `true` if a record is such a message or contains one.
fn any_message(record: &Record<'_>, is_it: fn(Json<'_>) -> bool) -> bool {
    let lists = ["messages", "input", "output", "items", "conversation", "contents"];
    let held = lists.iter().filter_map(|key| record.get(key));
    let logged = ["request", "body", "response"].iter().filter_map(|key| record.get(key));
    let in_logged =
        logged.flat_map(|it| it.fields(["messages", "input", "output"]).into_iter().flatten());
    is_it(record.value()) || held.chain(in_logged).any(|list| list.items().any(is_it))
}

fn is_message(message: Json<'_>) -> bool {
    let [role, content, calls, parts] = message.fields(["role", "content", "tool_calls", "parts"]);
    role.is_some() && (content.is_some() || calls.is_some() || parts.is_some())
}

fn is_anthropic(message: Json<'_>) -> bool {
    let parts = message.get("content").into_iter().flat_map(Json::items);
    let kinds = ["tool_use", "tool_result", "thinking", "redacted_thinking"];
    let mut types = parts.filter_map(|part| part.get("type"));
    message.get("role").is_some() && types.any(|kind| kinds.iter().any(|known| kind.is(known)))
}

fn is_responses(item: Json<'_>) -> bool {
    let kinds = [
        "function_call",
        "function_call_output",
        "reasoning",
        "custom_tool_call",
        "local_shell_call",
    ];
    let [kind, content] = item.fields(["type", "content"]);
    let mut parts = content.into_iter().flat_map(Json::items).filter_map(|part| part.get("type"));
    kind.is_some_and(|kind| kinds.iter().any(|known| kind.is(known)))
        || parts.any(|kind| kind.is("output_text") || kind.is("input_text"))
}

fn parse(input: &[u8]) -> Imported<'_> {
    import(input, read)
}

fn read(context: &mut ImportContext<'_>) {
    let mut lines = StepBuilder::default();
    let (mut any_line, mut others) = (false, Vec::new());
    for document in context.documents() {
        if is_one(document) {
            any_line = true;
            said(document, &mut lines);
        } else if document.is_object() {
            context.runs.push(request(document));
        } else if document
            .items()
            .next()
            .is_some_and(|first| is_one(first) || first.get("type").is_some())
        {
            conversation(document, context);
        } else {
            for inner in document.items() {
                match inner.raw().as_bytes().first() {
                    Some(b'[') => conversation(inner, context),
                    Some(b'{') => context.runs.push(request(inner)),
                    Some(_) | None => others.push(inner),
                }
            }
        }
    }
    context.report_non_objects(&others);
    if any_line {
        context.runs.push(lines.into_run(Run::default()));
    }
}

/// Returns `true` if a value is a message or an item, instead of a container.
fn is_one(json: Json<'_>) -> bool {
    is_message(json) || is_responses(json)
}

/// Reads a list of messages.
fn conversation<'a>(list: Json<'a>, context: &mut ImportContext<'a>) {
    let mut builder = StepBuilder::default();
    list.items().for_each(|message| said(message, &mut builder));
    if builder.lost_answers > 0 {
        context.report(list, DiagnosticKind::NoCallFor { count: builder.lost_answers });
    }
    context.runs.push(builder.into_run(Run::default()));
}

fn said<'a>(message: Json<'a>, builder: &mut StepBuilder<'a>) {
    let mut events = Vec::new();
    messages::message(message, &mut events);
    builder.take_all(events);
}

/// Reads a request, with its response if present.
fn request(document: Json<'_>) -> Run<'_> {
    let [request, body, response, id, model] =
        document.fields(["request", "body", "response", "id", "model"]);
    let asked = request.or(body).filter(|inner| inner.is_object()).unwrap_or(document);
    let [messages, input, contents, conversation, items] =
        asked.fields(["messages", "input", "contents", "conversation", "items"]);
    let mut events = Vec::new();
    if let Some(list) = messages.or(input).or(contents).or(conversation).or(items) {
        find_messages::anywhere(list, Plain::User, &mut events);
    }
    let answered = response.filter(|inner| inner.is_object()).unwrap_or(document);
    let [output, choices, content] = answered.fields(["output", "choices", "content"]);
    if let Some(answer) = output.or(choices).or(content.filter(|it| it.is_list())) {
        events.push(Event::Begin(messages::turn(answered)));
        find_messages::anywhere(answer, Plain::Model, &mut events);
    }
    let mut builder = StepBuilder::default();
    builder.take_all(events);
    let model = model.or_else(|| asked.get("model")).and_then(Json::some_text);
    builder.into_run(Run { run_id: id.and_then(Json::name), model, ..Run::default() })
}
