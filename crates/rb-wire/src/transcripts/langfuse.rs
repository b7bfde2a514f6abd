//! Importer of Langfuse exports: traces with their observations.
//!
//! **Shape.** `{"trace": {…}, "observations": [{"id", "traceId", "parentObservationId", "type": "GENERATION" |
//! "TOOL" | "AGENT" | "SPAN" | …, "input", "output", "model", "usageDetails", "totalCost", "startTime", …}]}`; a trace
//! with its observations inside; or a list of either, or of observations. Input and output are JSON or JSON in
//! a string.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::documents::{ImportContext, import};
use super::find_messages::{self, Plain};
use super::labels::labels;
use super::lazy_json::Json;
use super::messages::{self, flat};
use super::sniff::{FilePreview, Record};
use super::spans::{self, Kind, Span};
use super::step_builder::Event;
use super::time::time_ms;
use super::usage::tokens;
use super::{Imported, Importer, Unit};
use crate::model::RunInput;

pub(super) const IMPORTER: Importer = Importer {
    id: "langfuse",
    summary: "Langfuse exports of traces and observations.",
    unit: Unit::File,
    sniff,
    parse,
};

const TYPES: [&str; 11] = [
    "GENERATION",
    "SPAN",
    "EVENT",
    "AGENT",
    "TOOL",
    "CHAIN",
    "RETRIEVER",
    "EVALUATOR",
    "EMBEDDING",
    "GUARDRAIL",
    "LLM",
];

fn sniff(preview: &FilePreview<'_>) -> bool {
    let is_observation =
        |record: &Record<'_>| record.get("traceId").is_some() && record.is("type", &TYPES);
    let has_trace = |record: &Record<'_>| {
        let is_ours = |trace: Json<'_>| {
            ["projectId", "observations", "sessionId"].iter().any(|key| trace.get(key).is_some())
        };
        record.get("trace").is_some_and(is_ours)
    };
    preview.has(&["observations", "projectId"])
        || preview.has(&["observations", "timestamp"])
        || preview.any(|record| is_observation(record) || has_trace(record))
}

fn parse(input: &[u8]) -> Imported<'_> {
    import(input, read)
}

fn read(context: &mut ImportContext<'_>) {
    let records = context.records();
    let mut all = Vec::new();
    let mut traces: BTreeMap<Cow<'_, str>, Json<'_>> = BTreeMap::new();
    for record in &records {
        let [trace, observations] = record.fields(["trace", "observations"]);
        if observations.is_none() && trace.is_none() && record.is_whole() {
            all.push(observation(*record, None));
            continue;
        }
        let trace = trace.filter(|trace| trace.is_object()).unwrap_or(*record);
        traces.extend(trace.get("id").and_then(Json::name).map(|id| (id, trace)));
        let session = trace.get("sessionId").and_then(Json::some_text);
        // The trace repeats its observations without their content.
        let listed = observations.or_else(|| trace.get("observations"));
        let whole = listed.into_iter().flat_map(Json::items).filter(|it| it.is_whole());
        all.extend(whole.map(|it| observation(it, session.clone())));
    }
    let before = context.runs.len();
    spans::runs(all, records.first().copied(), context);
    for run in context.runs.iter_mut().skip(before) {
        if let Some(trace) = run.run_id.as_ref().and_then(|id| traces.get(id)) {
            run.labels = labels(&[
                ("scores", trace.get("scores").filter(|it| it.items().next().is_some())),
                ("tags", trace.get("tags").filter(|it| it.items().next().is_some())),
            ]);
            run.agent = run.agent.take().or_else(|| trace.get("name")?.some_text());
        }
    }
}

fn observation<'a>(json: Json<'a>, session: Option<Cow<'a, str>>) -> Span<'a> {
    let [id, trace, parent, kind, name, input, output, model, start, end, level] = json.fields([
        "id",
        "traceId",
        "parentObservationId",
        "type",
        "name",
        "input",
        "output",
        "model",
        "startTime",
        "endTime",
        "level",
    ]);
    let [usage, old_usage, cost, old_cost, metadata] =
        json.fields(["usageDetails", "usage", "totalCost", "calculatedTotalCost", "metadata"]);
    let about = metadata.map(facts).unwrap_or_default();
    let kind = match kind.and_then(Json::text).as_deref() {
        Some("GENERATION" | "LLM") => Kind::Model,
        Some("TOOL") => Kind::Tool,
        Some("AGENT") => Kind::Agent,
        Some(_) | None if about.agent.is_some() => Kind::Agent,
        Some(_) | None => Kind::Other,
    };
    let name = name.and_then(Json::some_text).unwrap_or_default();
    let mut span = Span {
        trace: trace.and_then(Json::name).unwrap_or_default(),
        id: id.and_then(Json::name).unwrap_or_default(),
        parent: parent.and_then(Json::name),
        name: if kind == Kind::Tool { about.tool.unwrap_or_else(|| bare_name(name)) } else { name },
        kind,
        start_ms: start.and_then(time_ms),
        end_ms: end.and_then(time_ms),
        is_error: level.is_some_and(|level| level.is("ERROR")),
        session,
        agent: about.agent,
        call_id: about.call_id,
        model: model.and_then(Json::some_text),
        usage: usage.or(old_usage).map(tokens).unwrap_or_default(),
        cost_usd: cost.or(old_cost).and_then(Json::number).filter(|cost| *cost > 0.0),
        ..Span::default()
    };
    match kind {
        Kind::Tool => {
            span.input = input.map(given).unwrap_or_default();
            span.output = output.map(came_back).unwrap_or_default();
        }
        Kind::Model | Kind::Agent => {
            span.told = input.map(|input| conversation(input, Plain::User)).unwrap_or_default();
            span.said = output.map(|output| conversation(output, Plain::Model)).unwrap_or_default();
        }
        Kind::Other => {}
    }
    span
}

/// Removes the prefix that some libraries put before the tool name.
fn bare_name(name: Cow<'_, str>) -> Cow<'_, str> {
    let bare =
        ["running tool: ", "execute_tool "].iter().find_map(|prefix| name.strip_prefix(prefix));
    bare.map(|bare| Cow::Owned(bare.to_owned())).unwrap_or(name)
}

/// Values of the OpenTelemetry attributes of an observation.
#[derive(Default)]
struct Facts<'a> {
    agent: Option<Cow<'a, str>>,
    tool: Option<Cow<'a, str>>,
    call_id: Option<Cow<'a, str>>,
}

fn facts<'a>(metadata: Json<'a>) -> Facts<'a> {
    let text = metadata.text();
    let inner = text.as_deref().and_then(Json::first);
    let attributes = inner.unwrap_or(metadata).get("attributes");
    let find = |keys: [&str; 2]| -> Option<Cow<'a, str>> {
        let found = attributes?.fields(keys).into_iter().flatten().next()?.some_text()?;
        Some(Cow::Owned(found.into_owned()))
    };
    let operation = find(["gen_ai.operation.name", "openinference.span.kind"]);
    let is_agent =
        operation.is_none_or(|operation| operation.to_ascii_lowercase().ends_with("agent"));
    Facts {
        agent: find(["gen_ai.agent.name", "agent_name"]).filter(|_| {
            is_agent && attributes.is_some_and(|it| it.get("gen_ai.tool.name").is_none())
        }),
        tool: find(["gen_ai.tool.name", "tool.name"]),
        call_id: find(["gen_ai.tool.call.id", "tool_call.id"]),
    }
}

fn conversation(json: Json<'_>, plain: Plain) -> Vec<Event<'_>> {
    if let Some(text) = json.text() {
        return find_messages::in_text(&text, plain);
    }
    let mut events = Vec::new();
    find_messages::anywhere(json, plain, &mut events);
    events
}

/// Returns the tool input without the wrapper that some libraries add.
fn given(json: Json<'_>) -> RunInput<'_> {
    match json.get("input").filter(|_| json.entries().count() == 1) {
        Some(inner) => messages::input(inner),
        None => messages::input(json),
    }
}

/// Returns the tool output, which may be JSON in a string with the text inside.
fn came_back(json: Json<'_>) -> Cow<'_, str> {
    let Some(text) = json.text() else { return flat(json) };
    let inner = Json::first(&text).filter(|inner| inner.is_object() || inner.is_string());
    match inner.map(flat) {
        Some(inner) if !inner.is_empty() => Cow::Owned(inner.into_owned()),
        Some(_) | None => text,
    }
}
