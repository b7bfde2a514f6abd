//! Importer of Gemini CLI chat files.
//!
//! **Shape.** One object, `{"sessionId", "projectHash", "startTime", "lastUpdated", "messages": [{"type": "user" |
//! "gemini", "content", "timestamp", "thoughts": [{"subject", "description"}], "tokens", "model", "toolCalls":
//! [{"id", "name", "args", "result", "status"}]}]}`. Or the same as lines: the object without messages, then one
//! message per line.

use std::borrow::Cow;

use super::documents::{ImportContext, import};
use super::lazy_json::Json;
use super::messages::{self, flat};
use super::sniff::FilePreview;
use super::step_builder::{Answer, Event, StepBuilder, Turn, append};
use super::time::time_ms;
use super::usage::tokens;
use super::{Imported, Importer, Unit};
use crate::model::Run;

pub(super) const IMPORTER: Importer =
    Importer { id: "gemini-cli", summary: "Gemini CLI chats.", unit: Unit::File, sniff, parse };

fn sniff(preview: &FilePreview<'_>) -> bool {
    preview.has(&["sessionId", "projectHash"])
        || preview.has(&["sessionId", "startTime", "messages"])
}

fn parse(input: &[u8]) -> Imported<'_> {
    import(input, read)
}

fn read<'a>(context: &mut ImportContext<'a>) {
    let mut sessions: Vec<(Run<'a>, StepBuilder<'a>)> = Vec::new();
    for document in context.records() {
        let [session, messages, started, updated] =
            document.fields(["sessionId", "messages", "startTime", "lastUpdated"]);
        if let Some(id) = session.and_then(Json::some_text) {
            let run = Run {
                run_id: Some(id.clone()),
                session_id: Some(id),
                agent: Some("gemini-cli".into()),
                started_ms: started.and_then(time_ms),
                // In the line format, the header is written first, so its time is not the end of the run.
                ended_ms: updated.filter(|_| messages.is_some()).and_then(time_ms),
                ..Run::default()
            };
            sessions.push((run, StepBuilder::default()));
        }
        let Some((_, builder)) = sessions.last_mut() else { continue };
        match messages {
            Some(messages) => messages.items().for_each(|message| said(message, builder)),
            None => said(document, builder),
        }
    }
    context.runs.extend(sessions.into_iter().map(|(run, builder)| builder.into_run(run)));
}

fn said<'a>(message: Json<'a>, builder: &mut StepBuilder<'a>) {
    let [kind, content, at, thoughts, spent, model, calls] = message.fields([
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
        Some("user") => builder.take(Event::User(text)),
        Some("gemini") => {
            builder.take(Event::Begin(Turn {
                at_ms: at.and_then(time_ms),
                model: model.and_then(Json::some_text),
                usage: spent.map(tokens).unwrap_or_default(),
                ..Turn::default()
            }));
            for thought in thoughts.into_iter().flat_map(Json::items) {
                let [subject, description] = thought.fields(["subject", "description"]);
                let mut text = subject.and_then(Json::some_text).unwrap_or_default();
                append(&mut text, description.and_then(Json::some_text).unwrap_or_default());
                builder.take(Event::Reasons(text));
            }
            builder.take(Event::Says(text));
            let calls = || calls.into_iter().flat_map(Json::items);
            calls().for_each(|call| builder.take(Event::Calls(messages::tool_call(call))));
            calls().filter_map(answered).for_each(|answer| builder.take(Event::Answers(answer)));
        }
        // Messages of the CLI itself.
        Some(_) | None => {}
    }
}

/// Returns the result of a call; `None` while the call is in progress.
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
