//! Importer of SWE-agent `.traj` files, version 0 and 1.
//!
//! **Shape.** One object, `{"trajectory": [{"thought", "action", "observation", "response", …}], "history", "info":
//! {"exit_status", "model_stats"}, "replay_config"}`. The action is a command line. If it begins with a command of
//! SWE-agent, that is the tool; everything else is a shell command.
//!
//! **Task, model and name** are in `replay_config` from version 1 on, in later versions as JSON in a string. In
//! version 0, the task is the first message of the history that is not a demonstration.

use std::borrow::Cow;

use super::documents::{ImportContext, import};
use super::lazy_json::Json;
use super::messages::{flat, truth};
use super::sniff::FilePreview;
use super::{Imported, Importer, Unit};
use crate::model::owned;
use crate::model::{RecordedUsage, Run, RunInput, RunStep};

pub(super) const IMPORTER: Importer = Importer {
    id: "swe-agent",
    summary: "SWE-agent trajectories, versions 0 and 1.",
    unit: Unit::Document,
    sniff,
    parse,
};

/// Commands of SWE-agent; the rest of the line is their argument.
const COMMANDS: [&str; 21] = [
    "append",
    "create",
    "edit",
    "exit_context",
    "exit_cost",
    "exit_error",
    "exit_format",
    "exit_forfeit",
    "filemap",
    "find_file",
    "goto",
    "insert",
    "open",
    "scroll_down",
    "scroll_up",
    "search_dir",
    "search_file",
    "skip",
    "str_replace_editor",
    "submit",
    "view_image",
];

fn sniff(preview: &FilePreview<'_>) -> bool {
    let is_step = |step: Json<'_>| step.get("action").is_some() && step.get("source").is_none();
    preview.any(|record| {
        let steps = record.get("trajectory").filter(|steps| steps.is_list());
        steps.is_some_and(|steps| steps.items().next().is_none_or(is_step))
    })
}

fn parse(input: &[u8]) -> Imported<'_> {
    import(input, read)
}

fn read(context: &mut ImportContext<'_>) {
    for document in context.records() {
        let [trajectory, history, info, config] =
            document.fields(["trajectory", "history", "info", "replay_config"]);
        let Some(trajectory) = trajectory else { continue };
        let mut run = Run { agent: Some("swe-agent".into()), ..Run::default() };
        configured(&mut run, config);
        run.task = run.task.or_else(|| history.and_then(task));
        if let Some(info) = info {
            run.outcome = info.get("exit_status").and_then(Json::some_text);
            spent(&mut run, info.get("model_stats"));
        }
        run.steps = trajectory
            .items()
            .filter(|step| step.is_object() && step.is_whole())
            .map(step)
            .collect();
        context.runs.push(run);
    }
}

fn step(step: Json<'_>) -> RunStep<'_> {
    let [thought, response, action, observation] =
        step.fields(["thought", "response", "action", "observation"]);
    let thought = thought.and_then(Json::some_text).or_else(|| response.and_then(Json::some_text));
    let action = action.and_then(Json::text).unwrap_or_default();
    let (tool, input) = typed(action);
    RunStep {
        thought: thought.unwrap_or_default(),
        tool,
        input,
        observation: observation.map(flat).unwrap_or_default(),
        ..RunStep::default()
    }
}

/// Splits a command line into tool and argument.
fn typed(line: Cow<'_, str>) -> (Cow<'_, str>, RunInput<'_>) {
    if line.trim().is_empty() {
        return (Cow::default(), RunInput::None);
    }
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    if COMMANDS.contains(&word) {
        return (Cow::Owned(word.to_owned()), RunInput::Text(Cow::Owned(rest.to_owned())));
    }
    ("bash".into(), RunInput::Text(line))
}

fn configured<'a>(run: &mut Run<'a>, config: Option<Json<'a>>) {
    let Some(config) = config else { return };
    let text = config.text();
    let (config, is_text) = match &text {
        Some(text) => (Json::first(text), true),
        None => (Some(config), false),
    };
    let Some(config) = config else { return };
    let find = |path: &[&str]| {
        let found = config.at(path).and_then(Json::some_text);
        // A value from JSON in a string must be owned, because the decoded string is local.
        found.map(|found| if is_text { owned(found) } else { Cow::Owned(found.into_owned()) })
    };
    run.run_id = find(&["problem_statement", "id"]);
    run.task = find(&["problem_statement", "text"]);
    run.model = find(&["agent", "model", "name"]);
}

fn task(history: Json<'_>) -> Option<Cow<'_, str>> {
    let is_task = |message: &Json<'_>| {
        let [role, demo] = message.fields(["role", "is_demo"]);
        role.is_some_and(|role| role.is("user")) && !truth(demo)
    };
    history.items().find(is_task)?.get("content").map(flat)
}

fn spent(run: &mut Run<'_>, stats: Option<Json<'_>>) {
    let Some(stats) = stats else { return };
    let [cost, sent, received] = stats.fields(["instance_cost", "tokens_sent", "tokens_received"]);
    run.cost_usd = cost.and_then(Json::number);
    run.usage = RecordedUsage {
        input_tokens: sent.and_then(Json::count),
        output_tokens: received.and_then(Json::count),
        ..RecordedUsage::default()
    };
}
