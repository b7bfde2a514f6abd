//! Importer of OpenTelemetry spans: OTLP, span dumps, and bare attributes.
//!
//! **OTLP** is `{"resourceSpans": [{"scopeSpans": [{"spans": […]}]}]}`, one such object a line in the files that
//! collectors write; `resourceLogs` beside them bring events. **Dumps** are objects or lists of spans with
//! `attributes` as a map, under the names of any library; spans may be nested as `child_spans`. **Bare
//! attributes** are one object whose keys begin with `gen_ai.`, `llm.` or `openinference.`.
//!
//! **TRAIL** keeps its labels beside the traces, `{"trace_id", "errors": […]}`: a run without steps.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::attributes::{Attribute, Attributes, otlp_value};
use super::documents::{ImportContext, import};
use super::labels::labels;
use super::lazy_json::Json;
use super::semconv::{self, SpanEvent};
use super::sniff::Record;
use super::spans::{self, Kind, Span};
use super::time::time_ms;
use super::{DiagnosticKind, Imported, Importer, Unit};
use crate::model::Run;

pub(super) const OTLP: Importer = Importer {
    id: "otlp",
    summary: "OTLP in JSON: traces of OpenTelemetry with GenAI or OpenInference attributes.",
    unit: Unit::File,
    sniff: |preview| {
        ["resourceSpans", "resource_spans", "resourceLogs"].iter().any(|key| preview.has(&[key]))
    },
    parse,
};

pub(super) const OPENINFERENCE: Importer = Importer {
    id: "openinference",
    summary: "Dumped spans with OpenInference attributes, as Phoenix and TRAIL keep them.",
    unit: Unit::File,
    sniff: |preview| {
        let prefixes = ["openinference.", "llm."];
        preview.any(|record| any_attribute(record, &prefixes)) || preview.any(is_trail)
    },
    parse,
};

pub(super) const GENAI: Importer = Importer {
    id: "otel-genai",
    summary: "Dumped spans with OpenTelemetry's GenAI attributes.",
    unit: Unit::File,
    sniff: |preview| preview.any(|record| any_attribute(record, &["gen_ai.", "traceloop."])),
    parse,
};

/// Maximum nesting depth of spans.
const NESTED_MAX: usize = 64;

fn is_trail(record: &Record<'_>) -> bool {
    let is_error =
        |error: Json<'_>| error.get("location").is_some() && error.get("category").is_some();
    let is_labelled = record.get("errors").is_some_and(|errors| errors.items().all(is_error));
    record.get("trace_id").is_some() && is_labelled
}

/// Returns `true` if a span in the record has an attribute with one of the prefixes.
fn any_attribute(record: &Record<'_>, prefixes: &[&str]) -> bool {
    let has = |json: Json<'_>| {
        let keys = json
            .entries()
            .map(|(key, _)| key)
            .chain(json.items().filter_map(|it| it.get("key")).map(Json::raw));
        keys.into_iter().any(|key| {
            prefixes.iter().any(|prefix| key.trim_start_matches('"').starts_with(prefix))
        }) || json.get("llm").is_some()
            || json.get("openinference").is_some()
    };
    let of_span = |span: Json<'_>| {
        let [attributes, more] = span.fields(["attributes", "span_attributes"]);
        attributes.into_iter().chain(more).any(has)
    };
    let in_spans = |list: Json<'_>| {
        list.items().any(|span| {
            of_span(span) || span.get("child_spans").is_some_and(|inner| inner.items().any(of_span))
        })
    };
    prefixes.iter().any(|prefix| record.has_prefix(prefix))
        || of_span(record.value())
        || ["spans", "child_spans", "data"].iter().filter_map(|key| record.get(key)).any(in_spans)
}

fn parse(input: &[u8]) -> Imported<'_> {
    import(input, read)
}

fn read(context: &mut ImportContext<'_>) {
    let records = context.records();
    let mut all = Vec::new();
    let mut logged: Logged<'_> = Vec::new();
    for record in &records {
        let [resources, resources_too, logs, spans, data, errors] = record.fields([
            "resourceSpans",
            "resource_spans",
            "resourceLogs",
            "spans",
            "data",
            "errors",
        ]);
        if let Some(resources) = resources.or(resources_too) {
            otlp_spans(resources, &mut all);
        } else if let Some(logs) = logs {
            otlp_logs(logs, &mut logged);
        } else if let Some(spans) = spans.or(data).filter(|spans| spans.is_list()) {
            nested(spans.items(), &mut all);
        } else if errors.is_some() {
            context.report(*record, DiagnosticKind::LabelsOnly);
            context.runs.push(labelled(*record));
        } else {
            nested(std::iter::once(*record), &mut all);
        }
    }
    let found = described(all, logged);
    spans::runs(found, records.first().copied(), context);
}

/// Events that are recorded outside of their spans: trace id, span id, and the event.
type Logged<'a> = Vec<(Cow<'a, str>, Cow<'a, str>, SpanEvent<'a>)>;

fn otlp_spans<'a>(resources: Json<'a>, all: &mut Vec<Json<'a>>) {
    for resource in resources.items() {
        let [scopes, scopes_too, old] =
            resource.fields(["scopeSpans", "scope_spans", "instrumentationLibrarySpans"]);
        for scope in scopes.or(scopes_too).or(old).into_iter().flat_map(Json::items) {
            let spans = scope.get("spans").into_iter().flat_map(Json::items);
            all.extend(spans.filter(|span| span.is_whole()));
        }
    }
}

fn otlp_logs<'a>(resources: Json<'a>, logged: &mut Logged<'a>) {
    for scope in resources.items().filter_map(|it| it.get("scopeLogs")).flat_map(Json::items) {
        for record in scope.get("logRecords").into_iter().flat_map(Json::items) {
            let [trace, span, name, attributes, body] =
                record.fields(["traceId", "spanId", "eventName", "attributes", "body"]);
            let mut attributes = Attributes::read(attributes);
            let name = name.and_then(Json::some_text).or_else(|| attributes.text(&["event.name"]));
            let (Some(trace), Some(span), Some(name)) =
                (trace.and_then(Json::text), span.and_then(Json::text), name)
            else {
                continue;
            };
            // The body of an event is its message.
            if let Some(Attribute::Json(body) | Attribute::Text(body)) = body.and_then(otlp_value) {
                attributes.0.push(("gen_ai.event.content".into(), Attribute::Json(body)));
            }
            logged.push((trace, span, (name, attributes)));
        }
    }
}

/// Collects spans and their nested spans.
fn nested<'a>(spans: impl Iterator<Item = Json<'a>>, all: &mut Vec<Json<'a>>) {
    let mut open: Vec<(Json<'a>, usize)> = spans.map(|span| (span, NESTED_MAX)).collect();
    open.reverse();
    while let Some((span, depth)) = open.pop() {
        // The span's name may be its last field, so truncated spans are skipped; their nested spans may be
        // complete.
        if span.is_object() && span.is_whole() {
            all.push(span);
        }
        let children = span.get("child_spans").filter(|_| depth > 0);
        open.extend(children.into_iter().flat_map(Json::items).map(|child| (child, depth - 1)));
    }
}

fn described<'a>(all: Vec<Json<'a>>, logged: Logged<'a>) -> Vec<Span<'a>> {
    let mut by_span: BTreeMap<(Cow<'a, str>, Cow<'a, str>), Vec<SpanEvent<'a>>> = BTreeMap::new();
    for (trace, span, event) in logged {
        by_span.entry((trace, span)).or_default().push(event);
    }
    let mut found: Vec<Span<'a>> = Vec::with_capacity(all.len());
    for json in all {
        let (mut span, attributes) = span(json);
        let mut events: Vec<SpanEvent<'a>> =
            json.get("events").into_iter().flat_map(Json::items).filter_map(event).collect();
        events.extend(by_span.remove(&(span.trace.clone(), span.id.clone())).unwrap_or_default());
        semconv::describe(&mut span, &attributes, &events);
        found.push(span);
    }
    // Events without a recorded span still describe a call.
    for ((trace, id), events) in by_span {
        let mut span = Span { trace, id, ..Span::default() };
        let model = ("gen_ai.operation.name".into(), Attribute::Text("chat".into()));
        semconv::describe(&mut span, &Attributes(vec![model]), &events);
        found.push(span);
    }
    found
}

fn event(json: Json<'_>) -> Option<SpanEvent<'_>> {
    let [name, attributes] = json.fields(["name", "attributes"]);
    Some((name.and_then(Json::text)?, Attributes::read(attributes)))
}

/// Reads a span with the field names of any supported library.
fn span(json: Json<'_>) -> (Span<'_>, Attributes<'_>) {
    let [context, parent, status, attributes, attributes_too] =
        json.fields(["context", "parent", "status", "attributes", "span_attributes"]);
    let first = |keys: [&str; 3]| json.fields(keys).into_iter().flatten().next();
    let trace = first(["traceId", "trace_id", "traceID"]).or_else(|| context?.get("trace_id"));
    let id = first(["spanId", "span_id", "spanID"]).or_else(|| context?.get("span_id"));
    let parent =
        first(["parentSpanId", "parent_span_id", "parent_id"]).or_else(|| parent?.get("span_id"));
    let start = first(["startTimeUnixNano", "start_time", "timestamp"]);
    let [code, code_too] =
        status.map(|status| status.fields(["code", "status_code"])).unwrap_or_default();
    let code = code.or(code_too).or_else(|| json.get("status_code"));
    let is_error = code.is_some_and(|code| {
        code.raw() == "2"
            || code.text().is_some_and(|code| code.to_ascii_uppercase().ends_with("ERROR"))
    });
    let bare = attributes.or(attributes_too).is_none()
        && json.entries().any(|(key, _)| semconv::is_known(key));
    let attributes =
        Attributes::read(if bare { Some(json) } else { attributes.or(attributes_too) });
    let span = Span {
        trace: trace.and_then(Json::name).unwrap_or_default(),
        id: id.and_then(Json::name).unwrap_or_default(),
        parent: parent.and_then(Json::name),
        name: first(["name", "span_name", "operationName"])
            .and_then(Json::some_text)
            .unwrap_or_default(),
        kind: Kind::Other,
        start_ms: start.and_then(time_ms),
        end_ms: first(["endTimeUnixNano", "end_time", "endTime"]).and_then(time_ms),
        is_error,
        ..Span::default()
    };
    (span, attributes)
}

fn labelled(record: Json<'_>) -> Run<'_> {
    let [trace, errors, scores] = record.fields(["trace_id", "errors", "scores"]);
    Run {
        run_id: trace.and_then(Json::name),
        dataset: Some("trail".into()),
        labels: labels(&[("errors", errors), ("scores", scores)]),
        ..Run::default()
    }
}
