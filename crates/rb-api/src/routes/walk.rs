//! The walk of a run over HTTP: each step is posted once, and the reply says what to do with the next model call.
//!
//! A harness posts before every model call: first without anything done, then with what the last turn did. The step is
//! stored before the reply. Posting an index again gives the same reply and changes nothing; posts of one run take turns.
//! What a reply offers counts as shown when the next step arrives, so a call that failed may simply be asked for again.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use rb_engine::guidance::fragment::Item;
use rb_engine::run::{Plan, Stop};
use rb_store::{Change, RunKey, RunStart, Scores, StepRow, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::told::{self, Stored, TokensIn};
use crate::ApiState;
use crate::validate::{check_id, check_index};
use rb_http::Authenticated;
use rb_http::Path;
use rb_http::body::Body;
use rb_http::error::{ApiError, ApiResult, Problem, unprocessable};
use rb_runtime::auth::Caller;
use rb_runtime::clock::now_ms;
use rb_runtime::limits::{
    MAX_MODEL_CHARS, MAX_NAME_CHARS, MAX_SHORT_CHARS, MAX_TASK_CHARS, MAX_TEXT_CHARS, Truncations,
};
use rb_runtime::runs::assessment::{self, Evidence};
use rb_runtime::runs::{LiveRun, RunGuard};
use rb_runtime::telemetry::StepStored;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(walk))
}

/// What the last turn did, and what is about to be called. Only `step_index` is needed; texts that are too long are cut.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct WalkBody {
    /// Counts the model calls from 0. Before the first call there is nothing to tell but the task.
    #[schema(minimum = 0, maximum = 10000)]
    step_index: u32,
    /// The model's visible text of the last turn.
    thought: Option<String>,
    /// The tool it called.
    action: Option<String>,
    /// What the tool was given: text, or any JSON.
    #[schema(value_type = serde_json::Value)]
    action_input: Option<Box<RawValue>>,
    /// What came back.
    observation: Option<String>,
    /// The call of the tool failed.
    is_error: Option<bool>,
    /// What a person said just before.
    user_input: Option<String>,
    /// The model that is about to be called; guidance is worded for it.
    model: Option<String>,
    /// The model that made the last turn.
    step_model: Option<String>,
    /// Tokens of the last turn.
    tokens: Option<u64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    metadata: Option<Map<String, Value>>,
    /// For a run that begins here: its task as the user put it.
    task: Option<String>,
    /// For a run that begins here: which weights the monitors have.
    task_profile: Option<String>,
    agent_name: Option<String>,
    framework: Option<String>,
    codebase_id: Option<String>,
    /// For a run that begins here: a limit on its tokens. From four fifths on the agent is asked to wrap up.
    #[schema(minimum = 1)]
    token_budget: Option<u64>,
    /// For a run that begins here: the model to call in a state, such as `{"SLOW": "a-stronger-model"}`.
    model_routing: Option<BTreeMap<String, String>>,
    org_id: Option<String>,
    project_id: Option<String>,
}

/// What to do with the next model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Decision {
    /// Make the call as it is.
    GoOn,
    /// Put `guidance` into the request.
    Steer,
    /// End the run; `stop` says why.
    Stop,
}

/// What the monitors read, and what to do with the next model call.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WalkReply {
    run_id: String,
    step_index: u32,
    /// This step was posted before; nothing was changed.
    repeated: bool,
    decision: Decision,
    /// The text for the request, ready as it is; its first line marks it as ours.
    guidance: Option<String>,
    /// Where the pieces of guidance come from: `monitor`, `budget`, `e1`, `e2`, `e3`, `hand`.
    sources: Vec<&'static str>,
    /// The patterns among them.
    pattern_ids: Vec<String>,
    /// How the run is going: `INIT`, `FAST`, `NORMAL`, `SLOW`, `SKIP` or `END`.
    state: &'static str,
    /// How hard the newest thought looked, from 0 to 1.
    difficulty: Option<f64>,
    /// Every monitor's reading, from 0 (healthy) to 1 (worst).
    #[schema(value_type = BTreeMap<String, f64>)]
    scores: Scores,
    composite: f64,
    fired: Vec<String>,
    failure_type: Option<String>,
    evidence: Vec<Evidence>,
    /// The model that should take the call instead.
    route: Option<String>,
    stop: Option<StopOut>,
    tokens_used: u64,
    /// The share of the token budget that is used.
    budget_used: Option<f64>,
    /// The allowance of guidance is used up for this month, so no pattern was looked for.
    over_cap: bool,
    /// The fields that were too long and were cut.
    truncated: Vec<String>,
}

/// Why the run should end.
#[derive(Debug, Serialize, ToSchema)]
struct StopOut {
    /// `token_budget`.
    reason: &'static str,
    used: u64,
    limit: u64,
}

impl WalkReply {
    fn new(live: &LiveRun, plan: &Plan, run_id: &str, step_index: u32) -> Self {
        let ask = plan.pre_call();
        let stop = plan.stop.map(|stop| match stop {
            Stop::TokenBudget { used, limit } => StopOut { reason: "token_budget", used, limit },
        });
        let decision = match (&stop, &plan.fragment) {
            (Some(_), _) => Decision::Stop,
            (None, Some(_)) => Decision::Steer,
            (None, None) => Decision::GoOn,
        };
        let evidence = live.evidence(ask);
        let (tokens_used, budget_used) = live.budget_used();
        Self {
            run_id: run_id.to_owned(),
            step_index,
            repeated: false,
            decision,
            guidance: plan.fragment.as_ref().map(|fragment| fragment.as_str().to_owned()),
            sources: plan.shown().iter().map(|item| item.source().name()).collect(),
            pattern_ids: plan.shown().iter().filter_map(pattern_id).collect(),
            state: ask.state.name(),
            difficulty: ask.difficulty,
            scores: assessment::scores(&ask.assessment),
            composite: ask.assessment.composite,
            fired: assessment::fired(&ask.assessment),
            failure_type: live.failure_type(ask).map(str::to_owned),
            evidence,
            route: plan.route.clone(),
            stop,
            tokens_used,
            budget_used,
            over_cap: false,
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

/// What a run that begins with a step says of itself.
fn run_start(
    body: &mut WalkBody,
    run: &RunKey,
    project: &str,
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
        metadata,
        ..RunStart::default()
    })
}

impl WalkBody {
    /// The step in it, which is taken out.
    fn row(&mut self, run: RunKey, project: String, cuts: &mut Truncations) -> StepRow {
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
            user_input: cuts.or_empty("user_input", self.user_input.take(), MAX_TEXT_CHARS),
            thought: cuts.or_empty("thought", self.thought.take(), MAX_TEXT_CHARS),
            action: cuts.optional("action", self.action.take(), MAX_NAME_CHARS),
            action_input,
            input_is_structured,
            observation: cuts.optional("observation", self.observation.take(), MAX_TEXT_CHARS),
            is_error: self.is_error.unwrap_or_default(),
            model: cuts.or_empty("step_model", self.step_model.take(), MAX_MODEL_CHARS),
            tokens: tokens.tokens(),
            metadata: self.metadata.take().unwrap_or_default(),
            ..StepRow::default()
        }
    }
}

/// Takes one step of a run and says what to do with the next model call.
#[utoipa::path(post, path = "/monitor/runs/{run_id}/walk", tag = "steering",
    params(("run_id" = String, Path, min_length = 1, max_length = 256)), request_body = WalkBody, responses(
    (status = 200, body = WalkReply), (status = 404, body = Problem),
    (status = 409, description = "the run is over, or the step was told in another way", body = Problem),
))]
async fn walk(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path(run_id): Path<String>,
    Body(mut body): Body<WalkBody>,
) -> ApiResult<Json<WalkReply>> {
    check_id(&["path", "run_id"], &run_id)?;
    check_index(body.step_index)?;
    let (_, project) = caller.org_and_project(body.org_id.as_deref(), body.project_id.as_deref());
    let run = told::run_key(&api, &caller, body.org_id.as_deref(), &run_id).await?;
    let mut cuts = Truncations::default();
    let model = body.model.clone().map(|model| cuts.text("model", model, MAX_MODEL_CHARS));
    let row = body.row(run, project, &mut cuts);
    let mut post = Post { api: &api, caller: &caller, body, row, model, cuts };
    let mut turn = api.runtime.live_runs.lock(&post.row.run).await;
    for _ in 0..told::ATTEMPTS {
        if let Some(reply) = post.attempt(&mut turn).await? {
            return Ok(Json(reply));
        }
    }
    Err(StoreError::VersionConflict.into())
}

/// A step as it was posted.
struct Post<'a> {
    api: &'a ApiState,
    caller: &'a Caller,
    body: WalkBody,
    row: StepRow,
    /// The model that is about to be called, where it was named.
    model: Option<String>,
    cuts: Truncations,
}

impl Post<'_> {
    /// Decides by the state there is and stores the step; nothing where another node was faster with the same run.
    async fn attempt(&mut self, turn: &mut RunGuard) -> ApiResult<Option<WalkReply>> {
        let (api, run, index) = (self.api, self.row.run.clone(), self.row.step_index);
        let live = told::state(api, turn, &run).await?;
        let mut live = told::caught_up(api, live, &run, index).await?;
        told::check_project(self.caller, &live)?;
        if live.newest().is_some_and(|newest| index < newest) {
            **turn = Some(live);
            let then = api.runtime.run_loader.load(&run, Some(index.saturating_add(1))).await?;
            return walked_before(&then, &run.run_id, index).map(Some);
        }
        if live.newest() == Some(index) {
            let reply = walked_before(&live, &run.run_id, index);
            **turn = Some(live);
            return reply.map(Some);
        }
        if live.is_finished {
            **turn = Some(live);
            return Err(ApiError::Conflict("this run is over; begin another one".to_owned()));
        }
        if !live.is_known {
            let mut begins = run_start(&mut self.body, &run, &self.row.project, &mut self.cuts)?;
            begins.key_name = self.caller.key_name.to_string();
            let begins = vec![Change::StartRun(Box::new(begins))];
            if told::store_next(api, &mut live, &run, begins).await? == Stored::Overtaken {
                return Ok(None);
            }
            live = api.runtime.run_loader.load(&run, None).await?;
        }
        let model = self.model.clone().unwrap_or_else(|| live.model.clone());
        let mut row = self.row.clone();
        row.model = told::model_of(std::mem::take(&mut row.model), &row.metadata, &live.model);
        row.cost_usd = api.runtime.prices.cost_usd(&row.model, &row.tokens, row.at_ms);

        let ask = live.before_call(&mut row);
        let answers = api.runtime.guidance.look_up(&run.org, &model, &ask.queries).await;
        let words = api.runtime.messages.claim(&run).await;
        live.plan(ask, &answers.retrieved, &words.texts(), &model, &mut row);
        let row = Arc::new(row);
        let step = vec![Change::PutStep(Arc::clone(&row))];
        match told::store_next(api, &mut live, &run, step).await {
            Ok(Stored::Yes) => {}
            Ok(Stored::Overtaken) => {
                api.runtime.messages.put_back(words).await;
                return Ok(None);
            }
            Err(error) => {
                api.runtime.messages.put_back(words).await;
                return Err(error);
            }
        }
        api.runtime.patterns.record_uses(&answers.matches);
        StepStored { row: &row, project: &live.project }
            .emit(&api.runtime.metrics, &api.runtime.events);
        let reply = live.current_plan().map(|plan| WalkReply {
            over_cap: answers.is_over_quota,
            truncated: std::mem::take(&mut self.cuts).names(),
            ..WalkReply::new(&live, plan, &run.run_id, index)
        });
        **turn = Some(live);
        reply.map(Some).ok_or(ApiError::Internal)
    }
}

/// The reply to a step that was posted before, from the state after it.
fn walked_before(then: &LiveRun, run_id: &str, index: u32) -> ApiResult<WalkReply> {
    match then.current_plan() {
        Some(plan) if then.newest() == Some(index) => {
            Ok(WalkReply { repeated: true, ..WalkReply::new(then, plan, run_id, index) })
        }
        Some(_) | None => Err(ApiError::Conflict(format!(
            "step {index} was passed over, or told by telemetry; go on with a later one"
        ))),
    }
}
