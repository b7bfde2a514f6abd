//! Receiver of OpenTelemetry traces, for agents that are instrumented rather than proxied.
//!
//! A trace arrives in pieces and out of order: the innermost span ends first. Each piece parses all spans of the trace
//! again and stores the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rb_store::{Change, RunKey, StepRow};
use rb_wire::model::Run;
use rb_wire::otlp::{self, Encoding, SpanText};
use rb_wire::transcripts::{IMPORTERS, Importer};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::body_decoding::{off_the_path, text_of, unpacked};
use rb_http::Authenticated;
use rb_http::body;
use rb_http::error::{ApiError, ApiResult, Problem};
use rb_runtime::auth::Caller;
use rb_runtime::import::{self, ImportSource, ImportedRun};
use rb_runtime::otlp_traces::OpenTrace;
use rb_runtime::runs::stored_steps;

/// Maximum decompressed size of an export: spans contain whole conversations.
const BYTES_MAX: usize = 32 << 20;

/// Route: exporters append `/v1/traces` to their endpoint, which is `…/otlp`.
pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(traces))
}

/// Receives OpenTelemetry traces as protobuf or JSON, plain or gzip.
///
/// Spans that follow the conventions of `gen_ai` or `openinference` become runs that are observed and never steered; others
/// are ignored. The response has the format of the request.
#[utoipa::path(post, path = "/otlp/v1/traces", tag = "telemetry",
    request_body(content(
        (serde_json::Value = "application/json"),
        (String = "application/x-protobuf"),
    )),
    responses(
        (status = 200, description = "taken, but for what `partialSuccess` says", content(
            (serde_json::Value = "application/json"),
            (String = "application/x-protobuf"),
        )),
        (status = 400, description = "the body cannot be read", content(
            (Problem = "application/json"), (String = "application/x-protobuf"),
        )),
        (status = 413, description = "the body is larger than `MAX_BODY_BYTES`, or than 32 MiB unpacked", content(
            (Problem = "application/json"), (String = "application/x-protobuf"),
        )),
        (status = 415, description = "neither protobuf nor JSON, or packed otherwise than with gzip", content(
            (Problem = "application/json"), (String = "application/x-protobuf"),
        )),
        (status = 500, description = "a fault in the server", content(
            (Problem = "application/json"), (String = "application/x-protobuf"),
        )),
        (status = 503, description = "the database is away", content(
            (Problem = "application/json"), (String = "application/x-protobuf"),
        )),
    ))]
async fn traces(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> Response {
    // As on every other route, a body without a content type is JSON.
    let encoding = match text_of(&request, header::CONTENT_TYPE).as_str() {
        "" => Some(Encoding::Json),
        named => Encoding::of_content_type(named),
    };
    let Some(encoding) = encoding else {
        return ApiError::Unsupported(
            "spans are read as `application/x-protobuf` or `application/json`",
        )
        .into_response();
    };
    let (body, mut response) = match take(&api, &caller, encoding, request).await {
        Ok(taken) => {
            let reply = otlp::reply(encoding, taken.refused, &taken.reason);
            (reply, StatusCode::OK.into_response())
        }
        Err(error) => (otlp::refusal(encoding, &error.in_words().1), error.into_response()),
    };
    *response.body_mut() = body.into();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    let content_type = HeaderValue::from_static(encoding.content_type());
    headers.insert(header::CONTENT_TYPE, content_type);
    response
}

/// Rejected spans with the reason.
#[derive(Default)]
struct Taken {
    refused: usize,
    reason: String,
}

async fn take(
    api: &ApiState,
    caller: &Caller,
    encoding: Encoding,
    request: Request,
) -> ApiResult<Taken> {
    let packing = text_of(&request, header::CONTENT_ENCODING);
    let bytes = body::read(request.into_body(), api.max_body_bytes).await?;
    let bytes = unpacked(bytes, packing.trim(), BYTES_MAX)?;
    let read = move || otlp::spans(&bytes, encoding);
    let spans =
        off_the_path(read).await?.map_err(|error| ApiError::BadRequest(error.to_string()))?;
    let mut taken = Taken::default();
    if spans.nameless > 0 {
        taken.add(spans.nameless, "have no trace id or no span id");
    }
    let mut by_trace: BTreeMap<String, Vec<SpanText>> = BTreeMap::new();
    for span in spans.spans {
        by_trace.entry(span.trace_id.clone()).or_default().push(span);
    }
    for (trace_id, spans) in by_trace {
        let refused = extend(api, caller, trace_id, spans).await?;
        if refused > 0 {
            taken.add(refused, "belong to a trace that is longer than 32 MiB");
        }
    }
    Ok(taken)
}

impl Taken {
    fn add(&mut self, refused: usize, why: &str) {
        self.refused += refused;
        if !self.reason.is_empty() {
            self.reason.push_str("; ");
        }
        let _ = write!(self.reason, "{refused} spans {why}"); // a string takes everything
    }
}

/// Adds spans to their trace and updates its runs; returns the number of rejected spans.
async fn extend(
    api: &ApiState,
    caller: &Caller,
    trace_id: String,
    spans: Vec<SpanText>,
) -> ApiResult<usize> {
    let (org, project) = caller.org_and_project(None, None);
    let trace = RunKey { org, run_id: trace_id };
    let mut session = api.runtime.runs.lock(&trace).await; // one piece of a trace at a time
    session.forget();
    let mut held = api.runtime.otlp_traces.take(&trace, &project);
    let refused = held.add(spans);
    let kept = keep(api, &trace, &project, &mut held).await;
    api.runtime.otlp_traces.put(&trace, &project, held);
    kept.map(|()| refused)
}

async fn keep(
    api: &ApiState,
    trace: &RunKey,
    project: &str,
    held: &mut OpenTrace,
) -> ApiResult<()> {
    let document = held.document();
    let runs = off_the_path(move || {
        let importer = IMPORTERS.iter().find(|importer| importer.id == FORMAT);
        let runs = importer.map(|importer: &Importer| (importer.parse)(document.as_bytes()).0);
        runs.into_iter().flatten().map(Run::into_owned).collect::<Vec<_>>()
    })
    .await?;
    let mut now = BTreeSet::new();
    for run in runs {
        let run_id = run.run_id.as_deref().unwrap_or(&trace.run_id).to_owned();
        let key = RunKey { org: trace.org.clone(), run_id };
        let before = before(api, &key, held).await?;
        let (shared, trace, project) = (ApiState::clone(api), trace.clone(), project.to_owned());
        let judge = move || {
            let (org, place) = (&trace.org, &trace.run_id);
            let origin = ImportSource {
                org,
                project: &project,
                format: FORMAT,
                file: "",
                fallback_id: place,
            };
            ImportedRun::assess_after(&run, &origin, &shared.runtime.prices, before)
        };
        let Some(recorded) = off_the_path(judge).await? else { continue };
        let (run, _) = api.runtime.runs.import(recorded).await?;
        held.runs.insert(run.clone());
        now.insert(run);
    }
    // A late span may show that the trace has fewer runs, or that they have other names.
    let gone: Vec<Change> = held.runs.difference(&now).cloned().map(Change::DeleteRun).collect();
    if !gone.is_empty() {
        api.runtime.store.apply(gone).await?;
    }
    held.runs = now;
    Ok(())
}

const FORMAT: &str = "otlp";

/// Steps stored before the buffered spans.
async fn before(api: &ApiState, run: &RunKey, held: &mut OpenTrace) -> ApiResult<Vec<StepRow>> {
    let base = if let Some(base) = held.stored_before.get(&run.run_id) {
        *base
    } else {
        let steps = import::imported_step_count(&*api.runtime.store, run).await?;
        held.stored_before.insert(run.run_id.clone(), steps);
        steps
    };
    if base == 0 {
        return Ok(Vec::new());
    }
    let mut steps = stored_steps(&*api.runtime.store, run).await?;
    steps.truncate(usize::try_from(base).unwrap_or(usize::MAX));
    Ok(steps)
}
