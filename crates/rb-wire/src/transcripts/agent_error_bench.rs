//! Importer of AgentErrorBench: failed trajectories, and labels that name the critical step of each.
//!
//! **Shape.** A trajectory is `{"messages": [{"role", "content"}], "metadata": {"model", "won", "steps", …}}`. Its
//! actions are prose, so every model message is a step and the next user message is its observation. Labels are a
//! list of `{"trajectory_id", "LLM", "task_type", "critical_failure_step", "critical_failure_module",
//! "step_annotations"}`, usually in separate files; a label in the same record as its messages is read together
//! with them. The label counts the messages of the model from 1.

use std::borrow::Cow;

use super::documents::{ImportContext, import};
use super::lazy_json::Json;
use super::messages::flat;
use super::sniff::FilePreview;
use super::step_builder::{Event, StepBuilder, Turn};
use super::{DiagnosticKind, Imported, Importer, Unit};
use crate::json::quoted;
use crate::model::Run;

pub(super) const IMPORTER: Importer = Importer {
    id: "agent-error-bench",
    summary: "AgentErrorBench: failed trajectories and the labels of their critical steps.",
    unit: Unit::Document,
    sniff,
    parse,
};

fn sniff(preview: &FilePreview<'_>) -> bool {
    preview.has(&["critical_failure_step"])
        || preview.any(|record| {
            let is_told = |metadata: Json<'_>| {
                metadata.get("won").is_some() || metadata.get("environment").is_some()
            };
            record.get("messages").is_some() && record.get("metadata").is_some_and(is_told)
        })
}

fn parse(input: &[u8]) -> Imported<'_> {
    import(input, read)
}

fn read(context: &mut ImportContext<'_>) {
    for record in context.records() {
        let [messages, history, metadata, id, model, task_type, step, won] = record.fields([
            "messages",
            "history",
            "metadata",
            "trajectory_id",
            "LLM",
            "task_type",
            "critical_failure_step",
            "won",
        ]);
        let about = |key: &str| metadata.and_then(|metadata| metadata.get(key));
        let won = won.or_else(|| about("won")).and_then(Json::truth);
        let labelled = step.and_then(Json::count);
        let run = Run {
            run_id: id.or_else(|| about("trajectory_id")).and_then(Json::name),
            dataset: task_type.or_else(|| about("environment")).and_then(Json::some_text),
            model: model.or_else(|| about("model")).and_then(Json::some_text),
            // Only failures have labels.
            outcome: won
                .map_or(labelled.map(|_| false), Some)
                .map(|it| if it { "success" } else { "failure" }.into()),
            labels: labelled.map(|step| label(record, step)),
            ..Run::default()
        };
        let Some(messages) = messages.or(history) else {
            context.report(record, DiagnosticKind::LabelsOnly);
            context.runs.push(run);
            continue;
        };
        let mut builder = StepBuilder::default();
        messages.items().for_each(|message| said(message, &mut builder));
        context.runs.push(builder.into_run(run));
    }
}

fn said<'a>(message: Json<'a>, builder: &mut StepBuilder<'a>) {
    let [role, content] = message.fields(["role", "content"]);
    let text = content.map(flat).unwrap_or_default();
    match role.and_then(Json::text).as_deref() {
        Some("assistant") => {
            builder.take(Event::Begin(Turn::default()));
            builder.take(Event::Says(text));
        }
        Some("user") if builder.task.is_none() => builder.take(Event::User(text)),
        Some("user" | "tool") => builder.remark(text),
        Some(_) | None => {}
    }
}

/// Returns the label with steps counted from 0.
fn label(record: Json<'_>, step: u64) -> Cow<'static, str> {
    let [module, notes] = record.fields(["critical_failure_module", "step_annotations"]);
    let module = module.and_then(Json::some_text).unwrap_or_default();
    let note = notes.and_then(|notes| notes.items().next()).and_then(|note| note.get(&module));
    let failure = note.and_then(|note| note.get("failure_type")).and_then(Json::some_text);
    let category = quoted(failure.as_deref().unwrap_or(&module));
    let index = step.saturating_sub(1);
    format!("{{\"labelled_steps\": [{{\"step_index\": {index}, \"category\": {category}}}]}}")
        .into()
}
