//! Importer of ATIF, the interchange format of Harbor, used by Terminal-Bench and several agents.
//!
//! **Shape.** `{"schema_version": "ATIF-v1.…", "session_id", "agent": {"name", "model_name"}, "steps": [{"source":
//! "system" | "user" | "agent", "message", "reasoning_content", "tool_calls", "observation": {"results"},
//! "metrics"}], "final_metrics", "subagent_trajectories"}`.
//!
//! **Sub-agents** inside the file become separate runs.

use std::borrow::Cow;

use super::documents::{ImportContext, import};
use super::lazy_json::Json;
use super::messages::{self, flat, truth};
use super::sniff::FilePreview;
use super::step_builder::{Answer, Event, StepBuilder, Turn};
use super::time::time_ms;
use super::usage::tokens;
use super::{Imported, Importer, Unit};
use crate::model::{RecordedUsage, Run};

pub(super) const IMPORTER: Importer = Importer {
    id: "atif",
    summary: "Harbor's Agent Trajectory Interchange Format.",
    unit: Unit::Document,
    sniff,
    parse,
};

/// Maximum nesting depth of sub-agents.
const DEPTH_MAX: usize = 8;

fn sniff(preview: &FilePreview<'_>) -> bool {
    let is_atif = |version: Json<'_>| version.text().is_some_and(|text| text.starts_with("ATIF-"));
    preview.any(|record| record.get("schema_version").is_some_and(is_atif))
}

fn parse(input: &[u8]) -> Imported<'_> {
    import(input, |context| {
        for document in context.records() {
            trajectory(document, None, DEPTH_MAX, context);
        }
    })
}

fn trajectory<'a>(
    document: Json<'a>,
    parent: Option<Cow<'a, str>>,
    depth: usize,
    context: &mut ImportContext<'a>,
) {
    let [session, id, agent, steps, totals, children] = document.fields([
        "session_id",
        "trajectory_id",
        "agent",
        "steps",
        "final_metrics",
        "subagent_trajectories",
    ]);
    let session_id = session.and_then(Json::name);
    let run_id = id
        .and_then(Json::name)
        .filter(|_| parent.is_some())
        .or(session_id.clone())
        .or(id.and_then(Json::name));
    let about = |key: &str| agent.and_then(|agent| agent.get(key)).and_then(Json::some_text);
    let total = |key: &str| totals.and_then(|totals| totals.get(key));
    let run = Run {
        run_id: run_id.clone(),
        session_id,
        parent_id: parent,
        agent: about("name"),
        model: about("model_name"),
        usage: RecordedUsage {
            input_tokens: total("total_prompt_tokens").and_then(Json::count),
            output_tokens: total("total_completion_tokens").and_then(Json::count),
            cache_read_tokens: total("total_cached_tokens").and_then(Json::count),
            ..RecordedUsage::default()
        },
        cost_usd: total("total_cost_usd").and_then(Json::number),
        ..Run::default()
    };
    let mut builder = StepBuilder::default();
    steps.into_iter().flat_map(Json::items).for_each(|step| took(step, &mut builder));
    context.runs.push(builder.into_run(run));
    if depth > 0 {
        for child in children.into_iter().flat_map(Json::items) {
            trajectory(child, run_id.clone(), depth - 1, context);
        }
    }
}

fn took<'a>(step: Json<'a>, builder: &mut StepBuilder<'a>) {
    let [source, message, reasoning, calls, observation, metrics, at, model, copied] =
        step.fields([
            "source",
            "message",
            "reasoning_content",
            "tool_calls",
            "observation",
            "metrics",
            "timestamp",
            "model_name",
            "is_copied_context",
        ]);
    let text = message.map(flat).unwrap_or_default();
    match source.and_then(Json::text).as_deref() {
        // Steps that are copied from another run.
        _ if truth(copied) => return,
        Some("user") => builder.take(Event::User(text)),
        Some("agent") => {
            builder.take(Event::Begin(Turn {
                at_ms: at.and_then(time_ms),
                model: model.and_then(Json::some_text),
                usage: metrics.map(tokens).unwrap_or_default(),
                cost_usd: metrics
                    .and_then(|metrics| metrics.get("cost_usd"))
                    .and_then(Json::number),
                ..Turn::default()
            }));
            builder.take(Event::Reasons(reasoning.and_then(Json::text).unwrap_or_default()));
            builder.take(Event::Says(text));
            for call in calls.into_iter().flat_map(Json::items) {
                builder.take(Event::Calls(messages::tool_call(call)));
            }
        }
        Some(_) | None => {}
    }
    let results = observation.and_then(|observation| observation.get("results"));
    for result in results.into_iter().flat_map(Json::items) {
        let [id, content] = result.fields(["source_call_id", "content"]);
        let text = content.map(flat).unwrap_or_default();
        let answer = Answer { id: id.and_then(Json::name), tool: None, text, is_error: false };
        // An observation may have no matching call.
        if let Err(answer) = builder.answer(answer) {
            builder.remark(answer.text);
        }
    }
}
