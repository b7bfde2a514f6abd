//! Upload of complete traces: a finished run in one request. Two formats: the older one with steps, the newer one
//! with model calls.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rb_store::{RunKey, RunStart, StepRow, Tokens};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::validate::check_id;
use rb_http::Authenticated;
use rb_http::body::Body;
use rb_http::error::{ApiResult, Problem, unprocessable};
use rb_runtime::clock::now_ms;
use rb_runtime::limits::{
    MAX_MODEL_CHARS, MAX_NAME_CHARS, MAX_SHORT_CHARS, MAX_STEP_INDEX, MAX_TASK_CHARS,
    MAX_TEXT_CHARS, Truncations,
};
use rb_runtime::runs::Trace;

const STEPS_MAX: usize = 2_000;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(store))
}

/// Either `steps` with `trace_id` and `outcome`, or `manifest` with `calls`.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct TraceBody {
    /// Generated if missing.
    #[schema(max_length = 256)]
    trace_id: Option<String>,
    #[schema(max_items = 2000)]
    steps: Option<Vec<StepPayload>>,
    outcome: Option<String>,
    manifest: Option<Manifest>,
    #[schema(max_items = 2000)]
    calls: Option<Vec<CallRecord>>,
    org_id: Option<String>,
    project_id: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
struct StepPayload {
    #[schema(minimum = 0, maximum = 10000)]
    step_index: u32,
    thought: Option<String>,
    action: Option<String>,
    action_input: Option<String>,
    observation: Option<String>,
    tokens_used: Option<u64>,
}

#[derive(Debug, Deserialize, ToSchema)]
struct Manifest {
    #[schema(min_length = 1, max_length = 256)]
    trace_id: String,
    model: Option<String>,
    outcome_status: Option<String>,
    task_context: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
struct CallRecord {
    #[schema(minimum = 0, maximum = 10000)]
    call_index: u32,
    messages: Option<Vec<Map<String, Value>>>,
    response: Option<Map<String, Value>>,
    tool_calls: Option<Vec<Map<String, Value>>>,
    primary_failure_type: Option<String>,
    tokens: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Stored {
    /// `stored` or `accepted`.
    status: &'static str,
    trace_id: String,
    steps: usize,
    /// Fields that were truncated.
    truncated: Vec<String>,
}

/// Stores a finished run.
#[utoipa::path(post, path = "/traces", tag = "telemetry", request_body = TraceBody, responses(
    (status = 200, description = "steps were stored", body = Stored),
    (status = 202, description = "model calls were taken", body = Stored), (status = 404, body = Problem),
))]
async fn store(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Body(body): Body<TraceBody>,
) -> ApiResult<(StatusCode, Json<Stored>)> {
    let (org, project) = caller.org_and_project(body.org_id.as_deref(), body.project_id.as_deref());
    let mut cuts = Truncations::default();
    let start = RunStart {
        run: RunKey { org, run_id: String::new() },
        project,
        at_ms: now_ms(),
        key_name: caller.key_name.to_string(),
        ..RunStart::default()
    };
    let (status, word, trace) = match (body.manifest, body.calls) {
        (Some(manifest), calls) => {
            let trace = of_calls(start, manifest, &calls.unwrap_or_default(), &mut cuts)?;
            (StatusCode::ACCEPTED, "accepted", trace)
        }
        (None, Some(_)) => {
            let wanted = "`calls` belong to a `manifest`; send both, or `steps`";
            return Err(unprocessable(&["body", "manifest"], wanted));
        }
        (None, None) => {
            let steps = body.steps.unwrap_or_default();
            let trace = of_steps(start, body.trace_id, steps, body.outcome, &mut cuts)?;
            (StatusCode::OK, "stored", trace)
        }
    };
    let (trace_id, steps) = (trace.start.run.run_id.clone(), trace.steps.len());
    api.runtime.runs.observe_trace(&caller, trace).await?;
    Ok((status, Json(Stored { status: word, trace_id, steps, truncated: cuts.names() })))
}

fn of_steps(
    mut start: RunStart,
    trace_id: Option<String>,
    steps: Vec<StepPayload>,
    outcome: Option<String>,
    cuts: &mut Truncations,
) -> ApiResult<Trace> {
    start.run.run_id = trace_id
        .filter(|id| !id.is_empty())
        .unwrap_or_else(|| uuid::Uuid::now_v7().simple().to_string());
    check_id(&["body", "trace_id"], &start.run.run_id)?;
    check_count("steps", steps.len())?;
    let mut rows = Vec::with_capacity(steps.len());
    for (at, step) in steps.into_iter().enumerate() {
        check_place("steps", at, "step_index", step.step_index)?;
        rows.push(StepRow {
            step_index: step.step_index,
            thought: cuts.or_empty("thought", step.thought, MAX_TEXT_CHARS),
            action: cuts.optional("action", step.action, MAX_NAME_CHARS),
            action_input: cuts.optional("action_input", step.action_input, MAX_TEXT_CHARS),
            observation: cuts.optional("observation", step.observation, MAX_TEXT_CHARS),
            tokens: Tokens { total: step.tokens_used.unwrap_or_default(), ..Tokens::default() },
            ..row_of(&start)
        });
    }
    let outcome = cuts.or_empty("outcome", outcome, MAX_SHORT_CHARS);
    Ok(Trace { start, steps: rows, outcome })
}

fn of_calls(
    mut start: RunStart,
    manifest: Manifest,
    calls: &[CallRecord],
    cuts: &mut Truncations,
) -> ApiResult<Trace> {
    check_id(&["body", "manifest", "trace_id"], &manifest.trace_id)?;
    check_count("calls", calls.len())?;
    start.run.run_id = manifest.trace_id;
    start.model = cuts.or_empty("model", manifest.model, MAX_MODEL_CHARS);
    start.task = cuts.or_empty("task_context", manifest.task_context, MAX_TASK_CHARS);
    let mut rows = Vec::with_capacity(calls.len());
    for (at, call) in calls.iter().enumerate() {
        check_place("calls", at, "call_index", call.call_index)?;
        let tool = call.tool_calls.iter().flatten().next();
        let input = tool.and_then(argument);
        // The result of a tool call is in the messages of the next call.
        let answer = calls.get(at + 1).and_then(|next| last_answer(next.messages.as_deref()));
        rows.push(StepRow {
            step_index: call.call_index,
            thought: cuts.or_empty("response", call.response.as_ref().map(text), MAX_TEXT_CHARS),
            action: cuts.optional("tool_calls", tool.and_then(tool_name), MAX_NAME_CHARS),
            input_is_structured: input.is_some_and(|input| !input.is_string()),
            action_input: cuts.optional("tool_calls", input.map(as_text), MAX_TEXT_CHARS),
            observation: cuts.optional("messages", answer, MAX_TEXT_CHARS),
            tokens: Tokens { total: call.tokens.unwrap_or_default(), ..Tokens::default() },
            failure_type: call.primary_failure_type.clone(),
            ..row_of(&start)
        });
    }
    let outcome = manifest.outcome_status.unwrap_or_else(|| "success".to_owned());
    let outcome = cuts.text("outcome_status", outcome, MAX_SHORT_CHARS);
    Ok(Trace { start, steps: rows, outcome })
}

fn row_of(start: &RunStart) -> StepRow {
    let (run, project) = (start.run.clone(), start.project.clone());
    StepRow { run, project, at_ms: start.at_ms, ..StepRow::default() }
}

fn check_count(name: &str, count: usize) -> ApiResult<()> {
    if count > STEPS_MAX {
        let what = format!("{count} are too many: a trace has at most {STEPS_MAX}");
        return Err(unprocessable(&["body", name], what));
    }
    Ok(())
}

fn check_place(list: &str, at: usize, name: &str, index: u32) -> ApiResult<()> {
    if index > MAX_STEP_INDEX {
        let what = format!("{index} is too large: steps are numbered from 0 to {MAX_STEP_INDEX}");
        return Err(unprocessable(&["body", list, &at.to_string(), name], what));
    }
    Ok(())
}

/// Returns the text of a message or a response, in the format of any provider.
fn text(message: &Map<String, Value>) -> String {
    ["content", "text", "message", "output"]
        .iter()
        .filter_map(|name| message.get(*name))
        .map(as_plain_text)
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

fn as_plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<String> =
                blocks.iter().map(as_plain_text).filter(|text| !text.is_empty()).collect();
            texts.join("\n")
        }
        Value::Object(block) => text(block),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// Returns a text unchanged, and other values as JSON.
fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn tool_name(call: &Map<String, Value>) -> Option<String> {
    let inner = call.get("function").and_then(Value::as_object).unwrap_or(call);
    inner.get("name").or_else(|| call.get("tool")).and_then(Value::as_str).map(str::to_owned)
}

fn argument(call: &Map<String, Value>) -> Option<&Value> {
    let inner = call.get("function").and_then(Value::as_object).unwrap_or(call);
    ["arguments", "args", "input"].iter().find_map(|name| inner.get(*name))
}

/// Returns the latest tool result among messages.
fn last_answer(messages: Option<&[Map<String, Value>]>) -> Option<String> {
    let is_tools = |message: &&Map<String, Value>| {
        let role = message.get("role").or_else(|| message.get("type")).and_then(Value::as_str);
        let has_result = || {
            message
                .get("content")
                .is_some_and(|content| content.to_string().contains("\"tool_result\""))
        };
        role == Some("tool") || (role == Some("user") && has_result())
    };
    messages?.iter().rev().find(is_tools).map(text)
}
