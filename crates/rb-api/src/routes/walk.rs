//! Decisions over HTTP, for harnesses in any language.
//!
//! A harness posts before every model call: first without a step, then with the step of the last call. The step is
//! stored before the reply. Posting an index again returns the same reply and changes nothing. Guidance uses up its
//! limits when the next step arrives, so a call that failed may be posted again.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use rb_engine::guidance::fragment::Item;
use rb_engine::run::Stop;
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
use rb_http::error::{ApiResult, Problem, unprocessable};
use rb_runtime::auth::Caller;
use rb_runtime::clock::now_ms;
use rb_runtime::limits::{
    MAX_MODEL_CHARS, MAX_NAME_CHARS, MAX_SHORT_CHARS, MAX_TASK_CHARS, MAX_TEXT_CHARS, Truncations,
};
use rb_runtime::runs::assessment::{self, Evidence};
use rb_runtime::runs::{self, CallContext};

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(walk))
}

/// Last turn of the agent and its next call. Only `step_index` is required; long texts are truncated.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct WalkBody {
    /// Index of the model call, from 0. Before the first call only the task is known.
    #[schema(minimum = 0, maximum = 10000)]
    step_index: u32,
    /// The model's visible text of the last turn.
    thought: Option<String>,
    /// Called tool.
    action: Option<String>,
    /// Input of the tool: text or any JSON.
    #[schema(value_type = serde_json::Value)]
    action_input: Option<Box<RawValue>>,
    /// Output of the tool.
    observation: Option<String>,
    /// The call of the tool failed.
    is_error: Option<bool>,
    /// Message of the user before this step.
    user_input: Option<String>,
    /// Model of the next call; guidance is worded for it.
    model: Option<String>,
    /// Model of the last turn.
    step_model: Option<String>,
    /// Tokens of the last turn.
    tokens: Option<u64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    metadata: Option<Map<String, Value>>,
    /// Task as worded by the user, in the first request of a run.
    task: Option<String>,
    /// Profile of monitor weights, in the first request of a run.
    task_profile: Option<String>,
    agent_name: Option<String>,
    framework: Option<String>,
    codebase_id: Option<String>,
    /// Token budget, in the first request of a run. From 80% on, the agent is asked to finish.
    #[schema(minimum = 1)]
    token_budget: Option<u64>,
    /// Model to call in each state, such as `{"SLOW": "a-stronger-model"}`, in the first request of a run.
    model_routing: Option<BTreeMap<String, String>>,
    org_id: Option<String>,
    project_id: Option<String>,
}

/// Decision on the next model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Decision {
    /// Send the request unmodified.
    GoOn,
    /// Insert `guidance` into the request.
    Steer,
    /// End the run; `stop` contains the reason.
    Stop,
}

/// Scores of the monitors, and the decision on the next model call.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WalkReply {
    run_id: String,
    step_index: u32,
    /// This step was posted before; the request changed nothing.
    repeated: bool,
    decision: Decision,
    /// Text to insert unmodified; its first line identifies it as guidance of ReasonBlocks.
    guidance: Option<String>,
    /// Sources of the guidance: `monitor`, `budget`, `e1`, `e2`, `e3`, `hand`.
    sources: Vec<&'static str>,
    /// Patterns in the guidance.
    pattern_ids: Vec<String>,
    /// State of the run: `INIT`, `FAST`, `NORMAL`, `SLOW`, `SKIP` or `END`.
    state: &'static str,
    /// Difficulty score of the newest thought, from 0 to 1.
    difficulty: Option<f64>,
    /// Score of every monitor, from 0 (healthy) to 1 (worst).
    #[schema(value_type = BTreeMap<String, f64>)]
    scores: Scores,
    composite: f64,
    fired: Vec<String>,
    /// Monitors at their thresholds that are only recorded.
    signals: Vec<String>,
    failure_type: Option<String>,
    evidence: Vec<Evidence>,
    /// Replacement model for this call.
    route: Option<String>,
    stop: Option<StopOut>,
    tokens_used: u64,
    /// Used share of the token budget.
    budget_used: Option<f64>,
    /// The monthly quota of guidance is exhausted, so no pattern was retrieved.
    over_cap: bool,
    /// Fields that were truncated.
    truncated: Vec<String>,
}

/// Reason to end the run.
#[derive(Debug, Serialize, ToSchema)]
struct StopOut {
    /// `token_budget`.
    reason: &'static str,
    used: u64,
    limit: u64,
}

impl WalkReply {
    fn new(decision: runs::Decision, run_id: String, step_index: u32) -> Self {
        let runs::Decision { plan, is_repeated, is_over_quota, evidence, failure_type, .. } =
            decision;
        let pre_call = plan.pre_call();
        let stop = plan.stop.map(|stop| match stop {
            Stop::TokenBudget { used, limit } => StopOut { reason: "token_budget", used, limit },
        });
        let action = match (&stop, &plan.fragment) {
            (Some(_), _) => Decision::Stop,
            (None, Some(_)) => Decision::Steer,
            (None, None) => Decision::GoOn,
        };
        Self {
            run_id,
            step_index,
            repeated: is_repeated,
            decision: action,
            guidance: plan.fragment.as_ref().map(|fragment| fragment.as_str().to_owned()),
            sources: plan.shown().iter().map(|item| item.source().name()).collect(),
            pattern_ids: plan.shown().iter().filter_map(pattern_id).collect(),
            state: pre_call.state.name(),
            difficulty: pre_call.difficulty,
            scores: assessment::scores(&pre_call.assessment),
            composite: pre_call.assessment.composite,
            fired: assessment::fired(&pre_call.assessment),
            signals: assessment::signals(&pre_call.assessment),
            failure_type: failure_type.map(str::to_owned),
            evidence,
            route: plan.route.clone(),
            stop,
            tokens_used: decision.tokens_used,
            budget_used: decision.budget_used,
            over_cap: is_over_quota,
            truncated: Vec::new(),
        }
    }
}

fn pattern_id(item: &Item) -> Option<String> {
    match item {
        Item::Pattern(pattern) => Some(pattern.id.clone()),
        Item::Advice { .. } => None,
    }
}

/// Removes the description of the run from a body and returns it.
fn run_start(
    body: &mut WalkBody,
    run: &RunKey,
    project: &str,
    caller: &Caller,
    cuts: &mut Truncations,
) -> ApiResult<RunStart> {
    let mut metadata = Map::new();
    if let Some(tokens) = body.token_budget {
        metadata.insert(assessment::TOKEN_BUDGET.to_owned(), tokens.into());
    }
    if let Some(routes) = body.model_routing.take() {
        let routes = routes.into_iter().map(|(state, model)| (state, model.into())).collect();
        metadata.insert(assessment::MODEL_ROUTING.to_owned(), Value::Object(routes));
    }
    assessment::budget(&metadata)
        .map_err(|what| unprocessable(&["body", assessment::TOKEN_BUDGET], what))?;
    assessment::routing(&metadata)
        .map_err(|what| unprocessable(&["body", assessment::MODEL_ROUTING], what))?;
    Ok(RunStart {
        run: run.clone(),
        project: project.to_owned(),
        at_ms: now_ms(),
        agent_name: cuts.or_empty("agent_name", body.agent_name.take(), MAX_NAME_CHARS),
        task: cuts.or_empty("task", body.task.take(), MAX_TASK_CHARS),
        model: cuts.or_empty("model", body.model.clone(), MAX_MODEL_CHARS),
        framework: cuts.or_empty("framework", body.framework.take(), MAX_SHORT_CHARS),
        codebase: cuts.or_empty("codebase_id", body.codebase_id.take(), MAX_NAME_CHARS),
        task_profile: cuts.or_empty("task_profile", body.task_profile.take(), MAX_SHORT_CHARS),
        key_name: caller.key_name.to_string(),
        metadata,
        ..RunStart::default()
    })
}

impl WalkBody {
    /// Removes the step from the body and returns it.
    fn row(&mut self, run: RunKey, project: String, cuts: &mut Truncations) -> StepRow {
        let (action_input, input_is_structured) =
            cuts.input("action_input", self.action_input.as_deref());
        let tokens = ReportedTokens {
            total: self.tokens,
            input: self.input_tokens,
            output: self.output_tokens,
            cache_read: self.cache_read_tokens,
            cache_write: self.cache_write_tokens,
        };
        let model = reported_model(self.step_model.take(), self.metadata.as_ref());
        StepRow {
            run,
            project,
            step_index: self.step_index,
            at_ms: now_ms(),
            user_input: cuts.or_empty("user_input", self.user_input.take(), MAX_TEXT_CHARS),
            thought: cuts.or_empty("thought", self.thought.take(), MAX_TEXT_CHARS),
            action: cuts.optional("action", self.action.take(), MAX_NAME_CHARS),
            action_input,
            input_is_structured,
            observation: cuts.optional("observation", self.observation.take(), MAX_TEXT_CHARS),
            is_error: self.is_error.unwrap_or_default(),
            model: cuts.or_empty("step_model", model, MAX_MODEL_CHARS),
            tokens: tokens.tokens(),
            metadata: self.metadata.take().unwrap_or_default(),
            ..StepRow::default()
        }
    }
}

/// Stores a step of a run and decides on the next model call.
#[utoipa::path(post, path = "/monitor/runs/{run_id}/walk", tag = "steering",
    params(("run_id" = String, Path, min_length = 1, max_length = 256)), request_body = WalkBody, responses(
    (status = 200, body = WalkReply), (status = 404, body = Problem),
    (status = 409, description = "the run is finished, or the step was reported in another way", body = Problem),
))]
async fn walk(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path(run_id): Path<String>,
    Body(mut body): Body<WalkBody>,
) -> ApiResult<Json<WalkReply>> {
    check_id(&["path", "run_id"], &run_id)?;
    check_index(body.step_index)?;
    let runs = &api.runtime.runs;
    let (_, project) = caller.org_and_project(body.org_id.as_deref(), body.project_id.as_deref());
    let run = runs.find(&caller, body.org_id.as_deref(), &run_id).await?;
    let mut cuts = Truncations::default();
    let model = cuts.or_empty("model", body.model.clone(), MAX_MODEL_CHARS);
    let row = body.row(run.clone(), project.clone(), &mut cuts);
    let start = run_start(&mut body, &run, &project, &caller, &mut cuts)?;
    let description = || start.clone();
    let call = CallContext::of_host(&model, &description);
    let decision = runs.decide(&caller, &call, row).await?;
    let reply = WalkReply::new(decision, run_id, body.step_index);
    Ok(Json(WalkReply { truncated: cuts.names(), ..reply }))
}
