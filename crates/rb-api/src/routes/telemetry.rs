//! Runs as agents report them: start, steps and end.
//!
//! Clients deliver on a best-effort basis. A run whose start was lost starts with its first step, long texts are
//! truncated, and a run may be finished again. A step is stored before the reply.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rb_store::{RunKey, RunStart, Scores, StepRow};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::reported_tokens::{ReportedTokens, reported_model};
use crate::ApiState;
use crate::validate::{check_id, check_index};
use rb_http::Authenticated;
use rb_http::Path;
use rb_http::body::Body;
use rb_http::error::{ApiResult, Problem};
use rb_runtime::clock::now_ms;
use rb_runtime::limits::{
    MAX_MODEL_CHARS, MAX_NAME_CHARS, MAX_SHORT_CHARS, MAX_TASK_CHARS, MAX_TEXT_CHARS, Truncations,
};
use rb_runtime::runs::assessment;

/// Maximum length of a text that was shown to the model, in characters.
const SHOWN_CHARS_MAX: usize = 8_000;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(start)).routes(routes!(step)).routes(routes!(finish))
}

/// Start of a run. Only `run_id` is required; long texts are truncated.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct StartBody {
    #[schema(min_length = 1, max_length = 256)]
    run_id: String,
    agent_name: Option<String>,
    task: Option<String>,
    model: Option<String>,
    framework: Option<String>,
    codebase_id: Option<String>,
    org_id: Option<String>,
    project_id: Option<String>,
    /// Profile of monitor weights; unknown names have the default weights.
    task_profile: Option<String>,
    /// Parent run.
    parent_run_id: Option<String>,
    /// Free-form metadata; `experiment_id` and `arm` assign the run to an experiment, `token_budget` and
    /// `model_routing` are settings of the walk.
    metadata: Option<Map<String, Value>>,
}

/// Result.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Told {
    run_id: String,
    /// `started` or `finished`.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    /// Fields that were truncated.
    truncated: Vec<String>,
    /// Values that were changed or ignored.
    notes: Vec<String>,
}

/// Creates a run, or updates its description.
#[utoipa::path(post, path = "/monitor/runs", tag = "telemetry", request_body = StartBody, responses(
    (status = 201, body = Told), (status = 404, body = Problem),
))]
async fn start(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Body(body): Body<StartBody>,
) -> ApiResult<(StatusCode, Json<Told>)> {
    check_id(&["body", "run_id"], &body.run_id)?;
    let (org, project) = caller.org_and_project(body.org_id.as_deref(), body.project_id.as_deref());
    let mut cuts = Truncations::default();
    let run = RunKey { org, run_id: body.run_id };
    let metadata = body.metadata.unwrap_or_default();
    let problems = [assessment::budget(&metadata).err(), assessment::routing(&metadata).err()];
    let notes = problems.into_iter().flatten().collect();
    let run_start = RunStart {
        run: run.clone(),
        project: cuts.text("project_id", project, MAX_NAME_CHARS),
        at_ms: now_ms(),
        agent_name: cuts.or_empty("agent_name", body.agent_name, MAX_NAME_CHARS),
        task: cuts.or_empty("task", body.task, MAX_TASK_CHARS),
        model: cuts.or_empty("model", body.model, MAX_MODEL_CHARS),
        framework: cuts.or_empty("framework", body.framework, MAX_SHORT_CHARS),
        codebase: cuts.or_empty("codebase_id", body.codebase_id, MAX_NAME_CHARS),
        task_profile: cuts.or_empty("task_profile", body.task_profile, MAX_SHORT_CHARS),
        parent: cuts.or_empty("parent_run_id", body.parent_run_id, MAX_NAME_CHARS),
        key_name: caller.key_name.to_string(),
        metadata,
    };
    api.runtime.runs.start(&caller, run_start).await?;
    let told = Told {
        run_id: run.run_id,
        status: "started",
        outcome: None,
        truncated: cuts.names(),
        notes,
    };
    Ok((StatusCode::CREATED, Json(told)))
}

/// One step. Only `step_index` is required; long texts and lists are truncated.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct StepBody {
    #[schema(minimum = 0, maximum = 10000)]
    step_index: u32,
    action: Option<String>,
    /// Text, or any JSON.
    #[schema(value_type = serde_json::Value)]
    action_input: Option<Box<RawValue>>,
    /// `(first call)` before the first step: such a row is stored but is not a step.
    thought: Option<String>,
    observation: Option<String>,
    /// Message of the user before this step.
    user_input: Option<String>,
    is_error: Option<bool>,
    tokens: Option<u64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    /// Model that was used.
    step_model: Option<String>,
    injections: Option<Vec<String>>,
    injection_sources: Option<Vec<String>>,
    intervention_texts: Option<Vec<String>>,
    monitors_fired: Option<Vec<String>>,
    failure_type: Option<String>,
    metadata: Option<Map<String, Value>>,
    org_id: Option<String>,
    project_id: Option<String>,
}

/// Scores of the monitors.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StepReply {
    #[schema(value_type = BTreeMap<String, f64>)]
    scores: Scores,
    total_score: f64,
    fired: Vec<String>,
    /// Evidence of the monitors that fired.
    evidence: Vec<EvidenceOut>,
    /// Fields that were truncated.
    truncated: Vec<String>,
}

/// Evidence of a fired monitor.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EvidenceOut {
    monitor: String,
    score: f64,
    text: String,
    steps: Vec<u32>,
}

impl From<rb_store::Evidence> for EvidenceOut {
    fn from(row: rb_store::Evidence) -> Self {
        let rb_store::Evidence { monitor, score, text, steps } = row;
        Self { monitor, score, text, steps }
    }
}

impl StepBody {
    fn row(self, run: RunKey, project: String, cuts: &mut Truncations) -> StepRow {
        let (action_input, input_is_structured) =
            cuts.input("action_input", self.action_input.as_deref());
        let tokens = ReportedTokens {
            total: self.tokens,
            input: self.input_tokens,
            output: self.output_tokens,
            cache_read: self.cache_read_tokens,
            cache_write: self.cache_write_tokens,
        };
        let model = reported_model(self.step_model, self.metadata.as_ref());
        StepRow {
            run,
            project,
            step_index: self.step_index,
            at_ms: now_ms(),
            user_input: cuts.or_empty("user_input", self.user_input, MAX_TEXT_CHARS),
            thought: cuts.or_empty("thought", self.thought, MAX_TEXT_CHARS),
            action: cuts.optional("action", self.action, MAX_NAME_CHARS),
            action_input,
            input_is_structured,
            observation: cuts.optional("observation", self.observation, MAX_TEXT_CHARS),
            is_error: self.is_error.unwrap_or_default(),
            model: cuts.or_empty("step_model", model, MAX_MODEL_CHARS),
            tokens: tokens.tokens(),
            injections: cuts.list("injections", self.injections, SHOWN_CHARS_MAX),
            injection_sources: cuts.list(
                "injection_sources",
                self.injection_sources,
                MAX_NAME_CHARS,
            ),
            intervention_texts: cuts.list(
                "intervention_texts",
                self.intervention_texts,
                SHOWN_CHARS_MAX,
            ),
            monitors_fired: cuts.list("monitors_fired", self.monitors_fired, MAX_NAME_CHARS),
            failure_type: cuts.optional("failure_type", self.failure_type, MAX_MODEL_CHARS),
            metadata: self.metadata.unwrap_or_default(),
            ..StepRow::default()
        }
    }
}

/// Assesses and stores a step before the reply.
#[utoipa::path(post, path = "/monitor/runs/{run_id}/steps", tag = "telemetry",
    params(("run_id" = String, Path, min_length = 1, max_length = 256)), request_body = StepBody, responses(
    (status = 200, body = StepReply), (status = 404, body = Problem),
))]
async fn step(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path(run_id): Path<String>,
    Body(body): Body<StepBody>,
) -> ApiResult<Json<StepReply>> {
    check_id(&["path", "run_id"], &run_id)?;
    check_index(body.step_index)?;
    let runs = &api.runtime.runs;
    let (org, project) = (body.org_id.as_deref(), body.project_id.as_deref());
    let (_, project) = caller.org_and_project(org, project);
    let run = runs.find(&caller, org, &run_id).await?;
    let mut cuts = Truncations::default();
    let row = body.row(run.clone(), project.clone(), &mut cuts);
    let at_ms = row.at_ms;
    let start = || RunStart {
        run: run.clone(),
        project: project.clone(),
        at_ms,
        key_name: caller.key_name.to_string(),
        ..RunStart::default()
    };
    let row = Arc::unwrap_or_clone(runs.observe(&caller, start, row).await?);
    let mut evidence = row.evidence;
    evidence.retain(|evidence| row.fired.contains(&evidence.monitor));
    Ok(Json(StepReply {
        evidence: evidence.into_iter().map(EvidenceOut::from).collect(),
        scores: row.scores,
        total_score: row.total_score,
        fired: row.fired,
        truncated: cuts.names(),
    }))
}

/// Outcome of a run.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct FinishBody {
    /// `success`, `failure`, `failure: <reason>`, or anything else.
    outcome: Option<String>,
    org_id: Option<String>,
    project_id: Option<String>,
}

/// Default outcome.
const OUTCOME_DEFAULT: &str = "completed";

/// Finishes a run. A repeated call replaces the outcome.
#[utoipa::path(post, path = "/monitor/runs/{run_id}/finish", tag = "telemetry",
    params(("run_id" = String, Path, min_length = 1, max_length = 256)), request_body = FinishBody, responses(
    (status = 200, body = Told), (status = 404, body = Problem),
))]
async fn finish(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path(run_id): Path<String>,
    Body(body): Body<FinishBody>,
) -> ApiResult<Json<Told>> {
    check_id(&["path", "run_id"], &run_id)?;
    let mut cuts = Truncations::default();
    let outcome = body.outcome.filter(|outcome| !outcome.trim().is_empty());
    let outcome = outcome.unwrap_or_else(|| OUTCOME_DEFAULT.to_owned());
    let outcome = cuts.text("outcome", outcome, MAX_SHORT_CHARS);
    let runs = &api.runtime.runs;
    let run = runs.find(&caller, body.org_id.as_deref(), &run_id).await?;
    let (_, project) = caller.org_and_project(body.org_id.as_deref(), body.project_id.as_deref());
    let key_name = caller.key_name.to_string();
    let start = RunStart { run, project, at_ms: now_ms(), key_name, ..RunStart::default() };
    runs.finish(&caller, start, outcome.clone()).await?;
    Ok(Json(Told {
        run_id,
        status: "finished",
        outcome: Some(outcome),
        truncated: cuts.names(),
        notes: Vec::new(),
    }))
}
