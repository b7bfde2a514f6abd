//! Gemini CLI: the chats it keeps for each project.
//!
//! **Shape.** One object, `{"sessionId", "projectHash", "startTime", "lastUpdated", "messages": [{"type":
//! "user" | "gemini", "content", "timestamp", "thoughts": [{"subject", "description"}], "tokens", "model",
//! "toolCalls": [{"id", "name", "args", "result", "status"}]}]}`. Or the same as lines: the object without
//! messages, then a message a line.

use std::borrow::Cow;

use super::desk::{Desk, import};
use super::glance::Glance;
use super::messages::{self, flat};
use super::scan::Json;
use super::time::time_ms;
use super::turns::{Answer, Event, Turn, Turns, append};
use super::{Found, Importer, Run, Unit, Usage};

pub(super) const IMPORTER: Importer =
    Importer { id: "gemini-cli", summary: "Gemini CLI chats.", unit: Unit::File, sniff, parse };

fn sniff(glance: &Glance<'_>) -> bool {
    glance.has(&["sessionId", "projectHash"]) || glance.has(&["sessionId", "startTime", "messages"])
}

fn parse(input: &[u8]) -> Found<'_> {
    import(input, read)
}

fn read(desk: &mut Desk<'_>) {
    for document in desk.records() {
        let [session, messages, started, updated] =
            document.fields(["sessionId", "messages", "startTime", "lastUpdated"]);
        if let Some(id) = session.and_then(Json::some_text) {
            desk.runs.push(Run {
                run_id: Some(id.clone()),
                session_id: Some(id),
                agent: Some("gemini-cli".into()),
                started_ms: started.and_then(time_ms),
                ended_ms: updated.and_then(time_ms),
                ..Run::default()
            });
        }
        let Some(run) = desk.runs.last_mut() else { continue };
        let mut turns = Turns::default();
        match messages {
            Some(messages) => messages.items().for_each(|message| said(message, &mut turns)),
            None => said(document, &mut turns),
        }
        join(run, turns);
    }
}

/// Puts more of a run behind what there is of it.
fn join<'a>(run: &mut Run<'a>, turns: Turns<'a>) {
    let before = std::mem::take(run);
    let mut steps = before.steps;
    let (usage, ended) = (before.usage, before.ended_ms);
    *run = turns.into_run(Run {
        steps: Vec::new(),
        usage: Usage::default(),
        ended_ms: None,
        ..before
    });
    run.usage = usage.plus(run.usage);
    run.ended_ms = ended.max(run.ended_ms);
    steps.append(&mut run.steps);
    run.steps = steps;
}

fn said<'a>(message: Json<'a>, turns: &mut Turns<'a>) {
    let [kind, content, at, thoughts, tokens, model, calls] = message.fields([
        "type",
        "content",
        "timestamp",
        "thoughts",
        "tokens",
        "model",
        "toolCalls",
    ]);
    let text = content.map(flat).unwrap_or_default();
    match kind.and_then(Json::text).as_deref() {
        Some("user") => turns.take(Event::User(text)),
        Some("gemini") => {
            turns.take(Event::Begin(Turn {
                at_ms: at.and_then(time_ms),
                model: model.and_then(Json::some_text),
                usage: tokens.map(messages::usage).unwrap_or_default(),
                ..Turn::default()
            }));
            for thought in thoughts.into_iter().flat_map(Json::items) {
                let [subject, description] = thought.fields(["subject", "description"]);
                let mut text = subject.and_then(Json::some_text).unwrap_or_default();
                append(&mut text, description.and_then(Json::some_text).unwrap_or_default());
                turns.take(Event::Reasons(text));
            }
            turns.take(Event::Says(text));
            let calls = || calls.into_iter().flat_map(Json::items);
            calls().for_each(|call| turns.take(Event::Calls(messages::tool_call(call))));
            calls().filter_map(answered).for_each(|answer| turns.take(Event::Answers(answer)));
        }
        // Notes of the program itself.
        Some(_) | None => {}
    }
}

/// What came back from a call; `None` while it is still going on.
fn answered(call: Json<'_>) -> Option<Answer<'_>> {
    let [id, name, result, status, display] =
        call.fields(["id", "name", "result", "status", "resultDisplay"]);
    status.or(result)?;
    let mut text = Cow::default();
    let mut is_error = status.is_some_and(|status| status.is("error"));
    for part in result.into_iter().flat_map(Json::items) {
        let response = part.at(&["functionResponse", "response"]).map(messages::google_response);
        let (own, failed) = response.unwrap_or_else(|| (flat(part), false));
        append(&mut text, own);
        is_error |= failed;
    }
    if text.is_empty() {
        text = display.map(flat).unwrap_or_default();
    }
    Some(Answer {
        id: id.and_then(Json::name),
        tool: name.and_then(Json::some_text),
        text,
        is_error,
    })
}
