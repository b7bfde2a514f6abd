//! Finds messages inside any JSON value; recorders combine requests, responses and metadata in one value.

use super::lazy_json::Json;
use super::messages;
use super::step_builder::Event;

/// Maximum nesting depth of message containers.
const DEPTH_MAX: usize = 5;

type Events<'a> = Vec<Event<'a>>;

/// Reads all messages in a value: a list, one message, or an object that contains them under a field name of
/// requests, responses or recorders. Bare text is attributed to `plain`.
pub(super) fn anywhere<'a>(json: Json<'a>, plain: Plain, events: &mut Events<'a>) {
    find_messages(json, plain, events, DEPTH_MAX);
}

/// Author of bare text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    User,
    Model,
}

fn find_messages<'a>(json: Json<'a>, plain: Plain, events: &mut Events<'a>, depth: usize) {
    if depth == 0 {
        return;
    }
    if json.is_list() {
        return json.items().for_each(|inner| find_messages(inner, plain, events, depth - 1));
    }
    if !json.is_object() {
        let text = json.some_text().filter(|text| !text.trim().is_empty());
        return events.extend(text.map(|text| match plain {
            Plain::User => Event::User(text),
            Plain::Model => Event::Says(text),
        }));
    }
    let [
        role,
        kind,
        choices,
        generations,
        messages,
        contents,
        content,
        message,
        text,
        traced,
        output,
        lc,
        given,
        prompt,
    ] = json.fields([
        "role",
        "type",
        "choices",
        "generations",
        "messages",
        "contents",
        "content",
        "message",
        "text",
        "tool.name",
        "output",
        "lc",
        "input",
        "prompt",
    ]);
    if let Some(inner) = message.filter(|inner| inner.is_object()) {
        return find_messages(inner, plain, events, depth - 1);
    }
    if role.is_some() || kind.is_some() || traced.is_some() || lc.is_some() {
        return messages::message(json, events);
    }
    // Bare `content` without a role is read only from model output.
    let content = content.filter(|content| !content.is_string() || plain == Plain::Model);
    let held = [
        choices,
        generations,
        messages,
        contents,
        content.filter(|it| !it.is_string()),
        output,
        text,
        content,
        given,
        prompt,
    ];
    if let Some(inner) = held.into_iter().flatten().next() {
        find_messages(inner, plain, events, depth - 1);
    }
}

/// Reads messages from a text that may contain JSON, as recorders store it in attributes.
pub(super) fn in_text(text: &str, plain: Plain) -> Vec<Event<'static>> {
    let mut events = Vec::new();
    let is_json = text.trim_ascii_start().starts_with(['{', '[']);
    if let Some(json) = Json::first(text).filter(|_| is_json) {
        anywhere(json, plain, &mut events);
    }
    if events.is_empty() && !text.trim().is_empty() {
        events.push(match plain {
            Plain::User => Event::User(text.into()),
            Plain::Model => Event::Says(text.into()),
        });
    }
    events.into_iter().map(Event::into_owned).collect()
}
