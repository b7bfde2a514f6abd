//! What agents tell while they work: a run begins, its steps, its end.
//!
//! Delivery is best effort on their side, so much is forgiven here: a run whose beginning was lost begins with its first
//! step, texts that are too long are cut, an end may come twice. A step that was answered is stored.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rb_store::{Change, RunKey, RunStart, Scores, StepRow, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::told::{self, NO_RUN, Stored, TokensIn};
use crate::ApiState;
use crate::validate::{check_id, check_index};
use rb_http::Authenticated;
use rb_http::Path;
use rb_http::body::Body;
use rb_http::error::{ApiResult, Problem};
use rb_runtime::auth::Caller;
use rb_runtime::clock::now_ms;
use rb_runtime::limits::{
    MAX_MODEL_CHARS, MAX_NAME_CHARS, MAX_SHORT_CHARS, MAX_TASK_CHARS, MAX_TEXT_CHARS, Truncations,
};
use rb_runtime::runs::assessment;
use rb_runtime::runs::{RunGuard, is_same_step};
use rb_runtime::telemetry::StepStored;

/// A text that was shown to the model.
const SHOWN_CHARS_MAX: usize = 8_000;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(start)).routes(routes!(step)).routes(routes!(finish))
}

/// A run begins. Only `run_id` is needed; texts that are too long are cut.
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
    /// Which weights the monitors have; an unknown one has the defaults.
    task_profile: Option<String>,
    /// The run that started this one.
    parent_run_id: Option<String>,
    /// Anything; `experiment_id` and `arm` make the run part of an experiment, `token_budget` and `model_routing` are
    /// heeded by the walk.
    metadata: Option<Map<String, Value>>,
}

/// What was done.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Told {
    run_id: String,
    /// `started` or `finished`.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    /// The fields that were too long and were cut.
    truncated: Vec<String>,
    /// What was not taken as it was given.
    notes: Vec<String>,
}

/// Says that a run begins, or more about one that has begun.
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
    let mut turn = api.runtime.live_runs.lock(&run).await;
    // What the run says of itself changes how it is judged: its state is rebuilt when it is needed again.
    *turn = None;
    if let Some(limited) = caller.scope(None, None).project
        && let Some(row) = api.runtime.run_loader.row(&run).await?
        && row.project != limited
    {
        return Err(NO_RUN);
    }
    api.runtime.store.apply(vec![Change::StartRun(Box::new(run_start))]).await?;
    api.runtime.run_owners.set(&run.run_id, &run.org);
    let told = Told {
        run_id: run.run_id,
        status: "started",
        outcome: None,
        truncated: cuts.names(),
        notes,
    };
    Ok((StatusCode::CREATED, Json(told)))
}

/// One step. Only `step_index` is needed; texts and lists that are too long are cut.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct StepBody {
    #[schema(minimum = 0, maximum = 10000)]
    step_index: u32,
    action: Option<String>,
    /// Text, or any JSON.
    #[schema(value_type = serde_json::Value)]
    action_input: Option<Box<RawValue>>,
    /// `(first call)` where nothing was done yet: such a row is kept and is no step.
    thought: Option<String>,
    observation: Option<String>,
    /// What a person said just before this step.
    user_input: Option<String>,
    is_error: Option<bool>,
    tokens: Option<u64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    /// The model that was used.
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

/// What the monitors read.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StepReply {
    #[schema(value_type = BTreeMap<String, f64>)]
    scores: Scores,
    total_score: f64,
    fired: Vec<String>,
    /// Why they fired.
    evidence: Vec<EvidenceOut>,
    /// The fields that were too long and were cut.
    truncated: Vec<String>,
}

/// Why a monitor fired.
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
        let tokens = TokensIn {
            total: self.tokens,
            input: self.input_tokens,
            output: self.output_tokens,
            cache_read: self.cache_read_tokens,
            cache_write: self.cache_write_tokens,
        };
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
            model: cuts.or_empty("step_model", self.step_model, MAX_MODEL_CHARS),
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

/// Tells a step. The monitors read it, and it is stored before this is answered.
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
    let (org, project) = (body.org_id.as_deref(), body.project_id.as_deref());
    let (_, project) = caller.org_and_project(org, project);
    let run = told::run_key(&api, &caller, org, &run_id).await?;
    let mut cuts = Truncations::default();
    let mut row = body.row(run.clone(), project, &mut cuts);
    let mut turn = api.runtime.live_runs.lock(&run).await;
    for _ in 0..told::ATTEMPTS {
        let stored;
        (stored, row) = take(&api, &caller, &run, &mut turn, row, &mut cuts).await?;
        if stored == Stored::Yes {
            return Ok(Json(StepReply {
                evidence: row.evidence.into_iter().map(EvidenceOut::from).collect(),
                scores: row.scores,
                total_score: row.total_score,
                fired: row.fired,
                truncated: cuts.names(),
            }));
        }
    }
    Err(StoreError::VersionConflict.into())
}

/// Reads a step by the state there is and stores it, unless another node was faster with the same run: then it may be
/// read again. The row comes back with what was read.
async fn take(
    api: &ApiState,
    caller: &Caller,
    run: &RunKey,
    turn: &mut RunGuard,
    mut row: StepRow,
    cuts: &mut Truncations,
) -> ApiResult<(Stored, StepRow)> {
    let live = told::state(api, turn, run).await?;
    let mut live = told::caught_up(api, live, run, row.step_index).await?;
    told::check_project(caller, &live)?;
    let names_model = !row.model.is_empty();
    row.model = told::model_of(std::mem::take(&mut row.model), &row.metadata, &live.model);
    row.model = cuts.text("step_model", row.model, MAX_MODEL_CHARS);
    row.cost_usd = api.runtime.prices.cost_usd(&row.model, &row.tokens, row.at_ms);
    let is_new = live.newest().is_none_or(|newest| newest < row.step_index);
    let still_true = if is_new {
        live.assess(&mut row);
        true
    } else {
        told_again(api, run, &mut row).await?
    };
    told::note_hand(&mut row);
    let mut changes = Vec::new();
    if !live.is_known {
        // The step begins the run, and nothing else says whose key told of it.
        changes.push(Change::StartRun(Box::new(RunStart {
            run: run.clone(),
            project: row.project.clone(),
            at_ms: row.at_ms,
            key_name: caller.key_name.to_string(),
            ..RunStart::default()
        })));
    }
    let row = Arc::new(row);
    changes.push(Change::PutStep(Arc::clone(&row)));
    if told::store_next(api, &mut live, run, changes).await? == Stored::Overtaken {
        let mut row = Arc::unwrap_or_clone(row);
        if !names_model {
            row.model.clear(); // the run may have named another one meanwhile
        }
        return Ok((Stored::Overtaken, row));
    }
    if !live.is_known {
        live.is_known = true;
        live.project.clone_from(&row.project);
    }
    StepStored { row: &row, project: &live.project }
        .emit(&api.runtime.metrics, &api.runtime.events);
    if still_true {
        **turn = Some(live);
    }
    Ok((Stored::Yes, Arc::unwrap_or_clone(row)))
}

/// Reads a step whose index was passed already: sent again, or late, or changed. Says whether the state in memory is
/// still that of the stored steps.
async fn told_again(api: &ApiState, run: &RunKey, row: &mut StepRow) -> ApiResult<bool> {
    let stored = api.runtime.store.steps(run, row.step_index, 1).await?.into_iter().next();
    let stored = stored.filter(|stored| stored.step_index == row.step_index);
    match stored {
        Some(stored) if is_same_step(&stored, row) && stored.tokens == row.tokens => {
            row.scores = stored.scores;
            row.total_score = stored.total_score;
            row.fired = stored.fired;
            row.evidence = stored.evidence;
            row.replay = stored.replay;
            Ok(true)
        }
        stored => {
            let mut before = api.runtime.run_loader.load(run, Some(row.step_index)).await?;
            before.assess(row);
            row.replay = stored.and_then(|stored| stored.replay);
            Ok(false)
        }
    }
}

/// How a run ended.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct FinishBody {
    /// `success`, `failure`, `failure: <reason>`, or anything else.
    outcome: Option<String>,
    org_id: Option<String>,
    project_id: Option<String>,
}

/// What stands for an outcome that was not told.
const OUTCOME_DEFAULT: &str = "completed";

/// Says that a run ended. May be said again: the last outcome stands.
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
    let run = told::run_key(&api, &caller, body.org_id.as_deref(), &run_id).await?;
    let (_, project) = caller.org_and_project(body.org_id.as_deref(), body.project_id.as_deref());
    let mut turn = api.runtime.live_runs.lock(&run).await;
    *turn = None;
    let row = api.runtime.run_loader.row(&run).await?;
    let limited = caller.scope(None, None).project;
    if row.as_ref().is_some_and(|row| limited.is_some_and(|limited| limited != row.project)) {
        return Err(NO_RUN);
    }
    let mut changes = Vec::new();
    if row.is_none() {
        // Nothing else says which project an unknown run belongs to.
        let key_name = caller.key_name.to_string();
        let (run, at_ms) = (run.clone(), now_ms());
        let begins = RunStart { run, project, at_ms, key_name, ..RunStart::default() };
        changes.push(Change::StartRun(Box::new(begins)));
    }
    changes.push(Change::FinishRun { run, at_ms: now_ms(), outcome: outcome.clone() });
    api.runtime.store.apply(changes).await?;
    Ok(Json(Told {
        run_id,
        status: "finished",
        outcome: Some(outcome),
        truncated: cuts.names(),
        notes: Vec::new(),
    }))
}
