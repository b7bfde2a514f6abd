//! Importer of LangSmith exports, recorded by LangChain and LangGraph.
//!
//! **Shape.** Lines or a list of `{"id", "trace_id", "parent_run_id", "run_type": "llm" | "tool" | "chain" | …,
//! "name", "inputs", "outputs", "error", "start_time", "extra"}`, or what the client sends: `{"post": […],
//! "patch": […]}`, where the second completes the first.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::documents::{ImportContext, import};
use super::find_messages::{self, Plain};
use super::lazy_json::Json;
use super::messages::{self, flat};
use super::sniff::FilePreview;
use super::spans::{self, Kind, Span};
use super::time::time_ms;
use super::usage::tokens;
use super::{Imported, Importer, Unit};
use crate::model::{RecordedUsage, RunInput};

pub(super) const IMPORTER: Importer = Importer {
    id: "langsmith",
    summary: "LangSmith runs, exported or as the client sends them.",
    unit: Unit::File,
    sniff,
    parse,
};

fn sniff(preview: &FilePreview<'_>) -> bool {
    let is_batch = |list: Json<'_>| {
        list.items().any(|run| run.get("dotted_order").is_some() || run.get("trace_id").is_some())
    };
    preview.has(&["run_type", "inputs"])
        || preview.has(&["run_type", "trace_id"])
        || preview
            .any(|record| ["post", "patch"].iter().filter_map(|key| record.get(key)).any(is_batch))
}

fn parse(input: &[u8]) -> Imported<'_> {
    import(input, read)
}

fn read(context: &mut ImportContext<'_>) {
    let records = context.records();
    let mut all: Vec<Span<'_>> = Vec::new();
    let mut by_id: BTreeMap<Cow<'_, str>, usize> = BTreeMap::new();
    for record in &records {
        let [post, patch, runs] = record.fields(["post", "patch", "runs"]);
        let is_batch = post.or(patch).or(runs).is_some();
        let batch = [post, patch, runs].into_iter().flatten().flat_map(Json::items);
        let all_runs = batch.chain(Some(*record).filter(|_| !is_batch));
        for run in all_runs.filter(|run| run.is_whole()) {
            let id = run.get("id").and_then(Json::name).unwrap_or_default();
            if let Some(span) = by_id.get(&id).and_then(|at| all.get_mut(*at)) {
                fill(run, span);
                continue;
            }
            by_id.insert(id.clone(), all.len());
            let mut span = Span { id, ..Span::default() };
            fill(run, &mut span);
            all.push(span);
        }
    }
    spans::runs(all, records.first().copied(), context);
}

/// Adds the fields of a record to a span.
fn fill<'a>(json: Json<'a>, span: &mut Span<'a>) {
    let [trace, parent, kind, name, inputs, outputs, error, start, end, extra] = json.fields([
        "trace_id",
        "parent_run_id",
        "run_type",
        "name",
        "inputs",
        "outputs",
        "error",
        "start_time",
        "end_time",
        "extra",
    ]);
    span.trace = trace.and_then(Json::name).unwrap_or_else(|| std::mem::take(&mut span.trace));
    if span.trace.is_empty() {
        span.trace = span.id.clone();
    }
    span.parent = parent.and_then(Json::name).or(span.parent.take());
    span.name = name.and_then(Json::some_text).unwrap_or_else(|| std::mem::take(&mut span.name));
    span.kind = match kind.and_then(Json::text).as_deref() {
        Some("llm" | "chat_model") => Kind::Model,
        Some("tool") => Kind::Tool,
        Some(_) => Kind::Other,
        None => span.kind,
    };
    span.start_ms = start.and_then(time_ms).or(span.start_ms);
    span.end_ms = end.and_then(time_ms).or(span.end_ms);
    span.is_error |= error.is_some_and(|error| error.some_text().is_some());
    let about = |path: &[&str]| extra.and_then(|extra| extra.at(path)).and_then(Json::some_text);
    let model =
        about(&["metadata", "ls_model_name"]).or_else(|| about(&["invocation_params", "model"]));
    span.model = model.or(span.model.take());
    span.session = about(&["metadata", "thread_id"])
        .or_else(|| about(&["metadata", "session_id"]))
        .or(span.session.take());
    span.cost_usd = json.get("total_cost").and_then(Json::number).or(span.cost_usd);
    let used = usage(json, outputs);
    if !used.is_unknown() {
        span.usage = used;
    }
    match span.kind {
        Kind::Tool => {
            let [input, given] =
                inputs.map(|inputs| inputs.fields(["input", "args"])).unwrap_or_default();
            if let Some(given) = input.or(given).or(inputs) {
                span.input = messages::input(given);
            }
            // `{"input": …}` is a wrapper only if it is the single entry.
            if let Some(all) = inputs.filter(|inputs| inputs.entries().count() > 1) {
                span.input = RunInput::Structured(Cow::Borrowed(all.raw()));
            }
            let output = outputs.and_then(|outputs| outputs.get("output").or(Some(outputs)));
            let text = error.or(output).map(result).unwrap_or_default();
            if !text.is_empty() {
                span.output = text;
            }
        }
        Kind::Model => {
            if let Some(inputs) = inputs {
                span.told.clear();
                find_messages::anywhere(inputs, Plain::User, &mut span.told);
            }
            if let Some(outputs) = outputs.filter(|outputs| outputs.entries().next().is_some()) {
                span.said.clear();
                find_messages::anywhere(outputs, Plain::Model, &mut span.said);
            }
        }
        Kind::Agent | Kind::Other => {}
    }
}

/// Returns the result: a text, or a message that contains one.
fn result(json: Json<'_>) -> Cow<'_, str> {
    let held = json.get("content").or_else(|| json.at(&["kwargs", "content"]));
    flat(held.unwrap_or(json))
}

fn usage(json: Json<'_>, outputs: Option<Json<'_>>) -> RecordedUsage {
    let held = outputs.and_then(|outputs| {
        let [metadata, usage] = outputs.fields(["usage_metadata", "usage"]);
        metadata.or(usage).or_else(|| outputs.at(&["llm_output", "token_usage"]))
    });
    held.map_or_else(|| tokens(json), tokens)
}
