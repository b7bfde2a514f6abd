//! Importer of mini-swe-agent trajectories, in plain text or with tool calls.
//!
//! **Shape.** One object, `{"info": {"exit_status", "model_stats", "config"}, "messages": […], "trajectory_format",
//! "instance_id"}`. In the older form the model writes its command in a code fence and the next user message is the
//! output; the newer form uses OpenAI's tool calls.
//!
//! **Results** begin with `<returncode>`; a non-zero value is an error.

use std::borrow::Cow;

use super::documents::{ImportContext, import};
use super::lazy_json::Json;
use super::messages::{self, flat};
use super::sniff::FilePreview;
use super::step_builder::{Answer, Call, Event, StepBuilder, Turn};
use super::time::time_ms;
use super::usage::tokens;
use super::{Imported, Importer, Unit};
use crate::code_fences::{Fenced, all_fenced};
use crate::model::{Run, RunInput};
use crate::text_tool_calls::{COMMAND_FENCES, return_code};

pub(super) const IMPORTER: Importer = Importer {
    id: "mini-swe-agent",
    summary: "mini-swe-agent trajectories, with commands in the text or as tool calls.",
    unit: Unit::Document,
    sniff,
    parse,
};

fn sniff(preview: &FilePreview<'_>) -> bool {
    preview.any(|record| {
        let is_named = record
            .get("trajectory_format")
            .and_then(Json::text)
            .is_some_and(|name| name.starts_with("mini-swe-agent"));
        let info = record.get("info");
        let is_told = info.is_some_and(|info| {
            info.get("mini_version").is_some() || info.get("model_stats").is_some()
        });
        is_named || (is_told && record.get("trajectory").is_none())
    })
}

fn parse(input: &[u8]) -> Imported<'_> {
    import(input, read)
}

fn read(context: &mut ImportContext<'_>) {
    for document in context.records() {
        let [info, messages, instance] = document.fields(["info", "messages", "instance_id"]);
        let Some(messages) = messages else { continue };
        let mut builder = StepBuilder::default();
        let mut has_begun = false;
        for message in messages.items() {
            said(message, &mut has_begun, &mut builder);
        }
        let find = |path: &[&str]| info.and_then(|info| info.at(path));
        let run = Run {
            run_id: instance.and_then(Json::some_text),
            agent: Some("mini-swe-agent".into()),
            model: find(&["config", "model", "model_name"]).and_then(Json::some_text),
            outcome: find(&["exit_status"]).and_then(Json::some_text),
            cost_usd: find(&["model_stats", "instance_cost"]).and_then(Json::number),
            ..Run::default()
        };
        context.runs.push(builder.into_run(run));
    }
}

fn said<'a>(message: Json<'a>, has_begun: &mut bool, builder: &mut StepBuilder<'a>) {
    let [role, content, extra, tool_calls] =
        message.fields(["role", "content", "extra", "tool_calls"]);
    let role = role.and_then(Json::text).unwrap_or_default();
    match role.as_ref() {
        "assistant" => {
            *has_begun = true;
            builder.take(Event::Begin(turn(extra)));
            if tool_calls.is_some_and(|calls| calls.items().next().is_some()) {
                let mut events = Vec::new();
                messages::message(message, &mut events);
                // The turn is already open, with the metadata of `extra`.
                builder
                    .take_all(events.into_iter().filter(|event| !matches!(event, Event::Begin(_))));
            } else {
                typed(content.map(flat).unwrap_or_default(), builder);
            }
        }
        "user" if !*has_begun => builder.take(Event::User(content.map(flat).unwrap_or_default())),
        "user" | "tool" => {
            let id = message.get("tool_call_id").and_then(Json::name);
            let text = content.map(flat).unwrap_or_default();
            let is_error = return_code(&text).is_some_and(|(code, _)| code != "0");
            if let Err(answer) = builder.answer(Answer { id, tool: None, text, is_error }) {
                builder.remark(answer.text);
            }
        }
        // System prompts, and `exit`, which repeats the submission.
        _ => {}
    }
}

/// Reads a turn in plain text, with the command in a code fence.
fn typed<'a>(text: Cow<'a, str>, builder: &mut StepBuilder<'a>) {
    let is_command = |found: &Fenced<'_>| COMMAND_FENCES.contains(&found.language);
    let found = all_fenced(&text).find(is_command);
    let found = found.map(|found| (found.before.to_owned(), found.code.to_owned()));
    let Some((thought, code)) = found else { return builder.take(Event::Says(text)) };
    builder.take(Event::Says(thought.into()));
    let input = RunInput::Text(code.into());
    builder.take(Event::Calls(Call { id: None, tool: "bash".into(), input }));
}

fn turn(extra: Option<Json<'_>>) -> Turn<'_> {
    let Some(extra) = extra else { return Turn::default() };
    let [response, cost, at] = extra.fields(["response", "cost", "timestamp"]);
    let usage = response.and_then(|response| response.get("usage"));
    let created = response.and_then(|response| response.get("created"));
    Turn {
        at_ms: at.or(created).and_then(time_ms),
        model: response.and_then(|response| response.get("model")).and_then(Json::some_text),
        usage: usage.map(tokens).unwrap_or_default(),
        cost_usd: cost.or_else(|| usage?.get("cost")).and_then(Json::number),
        ..Turn::default()
    }
}
