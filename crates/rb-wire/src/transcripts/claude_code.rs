//! Importer of Claude Code session files.
//!
//! **Shape.** One record per line: `{"type": "user" | "assistant" | …, "sessionId", "uuid", "parentUuid",
//! "isSidechain", "timestamp", "message": {…}}`. The message is in Anthropic's format; a model response is split
//! over several lines with the same `message.id`. Other types of line are skipped.
//!
//! **Sub-agents** become separate runs. They are in the same file with `isSidechain`, or in separate files in which
//! every line has an `agentId`. Their parent is the session.
//!
//! **Not user input:** lines with `isMeta`, summaries after compaction, and the echo of commands.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::documents::{ImportContext, import};
use super::lazy_json::Json;
use super::messages::{self, truth};
use super::sniff::FilePreview;
use super::step_builder::{Event, StepBuilder, Turn};
use super::time::time_ms;
use super::{DiagnosticKind, Imported, Importer, Unit};
use crate::model::Run;

pub(super) const IMPORTER: Importer = Importer {
    id: "claude-code",
    summary: "Claude Code sessions, with their sub-agents.",
    unit: Unit::File,
    sniff,
    parse,
};

fn sniff(preview: &FilePreview<'_>) -> bool {
    preview.has(&["type", "sessionId", "uuid"]) || preview.has(&["type", "sessionId", "parentUuid"])
}

fn parse(input: &[u8]) -> Imported<'_> {
    import(input, read)
}

/// Conversation of a file: the session itself or one of its sub-agents.
#[derive(Default)]
struct Thread<'a> {
    run: Run<'a>,
    builder: StepBuilder<'a>,
}

fn read(context: &mut ImportContext<'_>) {
    let mut threads: Vec<Thread<'_>> = Vec::new();
    let mut by_name: BTreeMap<Cow<'_, str>, usize> = BTreeMap::new();
    // A line belongs to the same sub-agent as its parent line.
    let mut by_line: BTreeMap<Cow<'_, str>, usize> = BTreeMap::new();
    let mut first = None;
    let mut events = Vec::new();
    for line in context.records() {
        first = first.or(Some(line));
        let [kind, session, uuid, parent, side, agent, at, message] = line.fields([
            "type",
            "sessionId",
            "uuid",
            "parentUuid",
            "isSidechain",
            "agentId",
            "timestamp",
            "message",
        ]);
        let (Some(kind), Some(message)) = (kind.and_then(Json::text), message) else { continue };
        let is_model = kind == "assistant";
        if (!is_model && kind != "user") || is_machine(line, message) {
            continue;
        }
        let session = session.and_then(Json::some_text);
        let uuid = uuid.and_then(Json::text).unwrap_or_default();
        let thread = match (truth(side), agent.and_then(Json::some_text)) {
            (false, None) => session.clone().unwrap_or_default(),
            (_, Some(agent)) => side_name(session.as_deref(), &agent),
            (true, None) => {
                let before =
                    parent.and_then(Json::text).and_then(|parent| by_line.get(&parent).copied());
                let known = before.and_then(|at| threads.get(at)?.run.run_id.clone());
                known.unwrap_or_else(|| side_name(session.as_deref(), &uuid))
            }
        };
        let is_side = Some(&thread) != session.as_ref() && session.is_some();
        let number = *by_name.entry(thread.clone()).or_insert_with(|| {
            threads.push(new_thread(thread, session, is_side));
            threads.len() - 1
        });
        if truth(side) {
            by_line.insert(uuid, number);
        }
        let Some(thread) = threads.get_mut(number) else { continue };
        let at_ms = at.and_then(time_ms);
        thread.run.started_ms = thread.run.started_ms.or(at_ms);
        thread.run.ended_ms = at_ms.or(thread.run.ended_ms);
        said(message, is_model, at_ms, &mut events);
        thread.builder.take_all(events.drain(..));
    }
    let lost: usize = threads.iter().map(|thread| thread.builder.lost_answers).sum();
    if let Some(first) = first.filter(|_| lost > 0) {
        context.report(first, DiagnosticKind::NoCallFor { count: lost });
    }
    context.runs.extend(threads.into_iter().map(|thread| thread.builder.into_run(thread.run)));
}

fn side_name(session: Option<&str>, name: &str) -> Cow<'static, str> {
    Cow::Owned(format!("{}/{name}", session.unwrap_or_default()))
}

fn new_thread<'a>(name: Cow<'a, str>, session: Option<Cow<'a, str>>, is_side: bool) -> Thread<'a> {
    let run = Run {
        run_id: Some(name).filter(|name| !name.is_empty()),
        parent_id: session.clone().filter(|_| is_side),
        session_id: session,
        agent: Some("claude-code".into()),
        ..Run::default()
    };
    Thread { run, builder: StepBuilder::default() }
}

/// Reads a message; also used for the JSON stream, which contains the same messages.
pub(super) fn said<'a>(
    message: Json<'a>,
    is_model: bool,
    at_ms: Option<u64>,
    events: &mut Vec<Event<'a>>,
) {
    let before = events.len();
    messages::message(message, events);
    events.retain(|event| !matches!(event, Event::User(text) if is_echo(text)));
    if let Some(Event::Begin(turn)) = events.get_mut(before).filter(|_| is_model) {
        let id = message.get("id").and_then(Json::some_text);
        *turn = Turn { id, at_ms, ..std::mem::take(turn) };
    }
}

/// Returns `true` for lines that Claude Code generates itself.
fn is_machine(line: Json<'_>, message: Json<'_>) -> bool {
    let [meta, summary, api_error, model, content] = [
        line.get("isMeta"),
        line.get("isCompactSummary"),
        line.get("isApiErrorMessage"),
        message.get("model"),
        message.get("content"),
    ];
    truth(meta)
        || truth(summary)
        || truth(api_error)
        || model.is_some_and(|model| model.is("<synthetic>"))
        || content.and_then(Json::text).is_some_and(|text| is_echo(&text))
}

/// Returns `true` for user messages that Claude Code generates.
fn is_echo(text: &str) -> bool {
    const MARKS: [&str; 5] = [
        "<command-name>",
        "<command-message>",
        "<local-command-",
        "<system-reminder>",
        "[Request interrupted",
    ];
    MARKS.iter().any(|mark| text.trim_start().starts_with(mark))
}
