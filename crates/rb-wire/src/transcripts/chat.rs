//! Bare conversations: messages as they go to and come from a provider, with little around them.
//!
//! **Shape.** A list of messages; an object that holds one under `messages` or `input`, perhaps with the answer
//! under `response`, `output` or `choices`; a list or lines of either; or a message a line. The rows differ in
//! how they are recognised, not in how they are read: files mix the dialects.

use super::desk::{Desk, import};
use super::glance::{Glance, Record};
use super::messages;
use super::scan::Json;
use super::search::{self, Plain};
use super::turns::{Event, Turns};
use super::{Found, Importer, Run, Trouble, Unit};

pub(super) const ANTHROPIC: Importer = Importer {
    id: "anthropic-messages",
    summary: "Anthropic messages, with or without the request around them.",
    unit: Unit::Document,
    sniff: |glance| glance.any(|record| any_message(record, is_anthropic)) && !is_line_each(glance),
    parse,
};

pub(super) const RESPONSES: Importer = Importer {
    id: "openai-responses",
    summary: "Items of OpenAI's Responses, with or without the request around them.",
    unit: Unit::Document,
    sniff: |glance| glance.any(|record| any_message(record, is_responses)) && !is_line_each(glance),
    parse,
};

pub(super) const CHAT: Importer = Importer {
    id: "openai-chat",
    summary: "OpenAI chat messages, with or without the request around them.",
    unit: Unit::Document,
    sniff: |glance| glance.any(|record| any_message(record, is_message)) && !is_line_each(glance),
    parse,
};

pub(super) const LINES: Importer = Importer {
    id: "message-lines",
    summary: "Messages of any of these dialects, one a line.",
    unit: Unit::File,
    sniff: is_line_each,
    parse,
};

fn is_line_each(glance: &Glance<'_>) -> bool {
    let is_bare = |record: &Record<'_>| {
        let has_body =
            ["content", "parts", "tool_calls"].iter().any(|key| record.get(key).is_some());
        record.get("role").is_some() && has_body
            || record.is("type", &["function_call", "function_call_output"])
    };
    !glance.is_list() && glance.any(is_bare)
}

/// Whether a record is such a message or holds one.
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

fn parse(input: &[u8]) -> Found<'_> {
    import(input, read)
}

fn read(desk: &mut Desk<'_>) {
    let mut lines = Turns::default();
    let (mut any_line, mut others) = (false, Vec::new());
    for document in desk.documents() {
        if is_one(document) {
            any_line = true;
            said(document, &mut lines);
        } else if document.is_object() {
            desk.runs.push(request(document));
        } else if document
            .items()
            .next()
            .is_some_and(|first| is_one(first) || first.get("type").is_some())
        {
            conversation(document, desk);
        } else {
            for inner in document.items() {
                match inner.raw().as_bytes().first() {
                    Some(b'[') => conversation(inner, desk),
                    Some(b'{') => desk.runs.push(request(inner)),
                    Some(_) | None => others.push(inner),
                }
            }
        }
    }
    desk.complain_about_others(&others);
    if any_line {
        desk.runs.push(lines.into_run(Run::default()));
    }
}

/// Whether a value is a message or an item, rather than something that holds some.
fn is_one(json: Json<'_>) -> bool {
    is_message(json) || is_responses(json)
}

/// A list of messages.
fn conversation<'a>(list: Json<'a>, desk: &mut Desk<'a>) {
    let mut turns = Turns::default();
    list.items().for_each(|message| said(message, &mut turns));
    if turns.lost_answers > 0 {
        desk.complain(list, Trouble::NoCallFor { count: turns.lost_answers });
    }
    desk.runs.push(turns.into_run(Run::default()));
}

fn said<'a>(message: Json<'a>, turns: &mut Turns<'a>) {
    let mut events = Vec::new();
    messages::message(message, &mut events);
    turns.take_all(events);
}

/// A request, perhaps with its answer.
fn request(document: Json<'_>) -> Run<'_> {
    let [request, body, response, id, model] =
        document.fields(["request", "body", "response", "id", "model"]);
    let asked = request.or(body).filter(|inner| inner.is_object()).unwrap_or(document);
    let [messages, input, contents, conversation, items] =
        asked.fields(["messages", "input", "contents", "conversation", "items"]);
    let mut events = Vec::new();
    if let Some(list) = messages.or(input).or(contents).or(conversation).or(items) {
        search::anywhere(list, Plain::User, &mut events);
    }
    let answered = response.filter(|inner| inner.is_object()).unwrap_or(document);
    let [output, choices, content] = answered.fields(["output", "choices", "content"]);
    if let Some(answer) = output.or(choices).or(content.filter(|it| it.is_list())) {
        events.push(Event::Begin(messages::turn(answered)));
        search::anywhere(answer, Plain::Model, &mut events);
    }
    let mut turns = Turns::default();
    turns.take_all(events);
    let model = model.or_else(|| asked.get("model")).and_then(Json::some_text);
    turns.into_run(Run { run_id: id.and_then(Json::name), model, ..Run::default() })
}
