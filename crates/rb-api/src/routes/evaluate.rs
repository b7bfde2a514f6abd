//! Stateless assessment of a trace, requested by the SDKs before every model call.
//!
//! The response depends only on the request and the pattern library, so any node can answer. Guidance comes from a monitor
//! that fired, or, if none fired but the composite is high, from a pattern for the most likely failure type.
//!
//! Clients drop a text that equals the previous one, so every text contains the index of its step.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use rb_engine::config::Engine;
use rb_engine::config::weights::Weights;
use rb_engine::guidance::render::{Family, render_pattern};
use rb_engine::guidance::{Source, Tier, operator_message, sanitise};
use rb_engine::run::MonitorSet;
use rb_engine::step::{Input, Step};
use rb_store::{RunKey, RunRow, Scope, Scores};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::evaluate_request::{self, Settings, StepIn, Steps};
use crate::ApiState;
use rb_http::Authenticated;
use rb_http::body;
use rb_http::error::{ApiError, ApiResult, Problem, unprocessable};
use rb_runtime::limits::{MAX_TASK_CHARS, MAX_TEXT_CHARS, Truncations, input_text};
use rb_runtime::retrieval::PatternQuery;
use rb_runtime::runs::assessment::{self, Evidence, Suite};
use rb_runtime::runs::trace_cache::{MonitorState, TraceHash};

/// Maximum number of steps of a trace.
const STEPS_MAX: usize = 2_000;
/// Maximum number of new steps assessed inline; more are assessed on a blocking thread.
const MAX_INLINE_STEPS: usize = 24;
/// Number of newest steps for which a cached state is looked up.
const MAX_STATE_LOOKUPS: usize = 4;
/// Composite above which a pattern is looked up.
const LOOKUP_THRESHOLD: f64 = 0.15;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(evaluate))
}

/// Trace to assess. All fields are optional.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the request; `evaluate_request` parses it")]
struct EvaluateBody {
    /// Model that receives the guidance.
    model: Option<String>,
    /// Profile of monitor weights: `coding`, `pr_review`, `qa` or a custom one. Unknown names have the default weights.
    task_profile: Option<String>,
    /// All steps of the run; with `after_mark`, only the new ones.
    #[schema(max_items = 2000)]
    steps: Option<Vec<StepIn>>,
    /// Weights by monitor that override those of the profile. Unknown names are ignored, values are clamped to 0..1;
    /// `notes` lists them.
    weights: Option<BTreeMap<String, f64>>,
    /// Suite of monitors; default `semantic`.
    suite: Option<Suite>,
    /// Reported run whose task and profile are used.
    run_id: Option<String>,
    /// Task of the user, compared by `silent_topic_drift`.
    task: Option<String>,
    /// `mark` of an earlier response; `steps` contains the steps since. An unknown mark returns 409.
    after_mark: Option<String>,
    /// Index of the first step of the run, which texts and evidence refer to; 0 if left out.
    first_step_index: Option<u32>,
    org_id: Option<String>,
    project_id: Option<String>,
}

/// Scores of the monitors, and guidance for the agent.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct Verdict {
    /// Guidance is due.
    inject: bool,
    intervention_text: Option<String>,
    /// Most likely failure type.
    failure_type: Option<String>,
    /// `monitor`, `pattern` or `hand`.
    injection_path: Option<&'static str>,
    /// Monitor that provides the guidance, `e2`, or `hand`.
    intervention_source: Option<String>,
    pattern_id: Option<String>,
    /// The monitors whose score reached their threshold.
    fired: Vec<String>,
    /// Scores of the requested suite.
    #[schema(value_type = BTreeMap<String, f64>)]
    scores: Scores,
    /// Monitors of the other suite at their thresholds. They do not affect the composite or the guidance.
    signals: Vec<String>,
    composite: f64,
    /// Evidence of the monitors that fired.
    evidence: Vec<Evidence>,
    /// Difficulty score of the newest thought.
    difficulty: Option<f64>,
    step_count: u32,
    /// Hash of these steps, for `after_mark` of the next request.
    mark: String,
    /// Values that were changed or ignored.
    notes: Vec<String>,
}

/// Settings of an assessment.
struct Judged {
    rules: Arc<Engine>,
    task: String,
    first_step_index: u32,
    /// Hash of all settings, part of the key of cached states.
    by: Vec<u8>,
    notes: Vec<String>,
}

/// Assesses a trace and returns guidance if it is due.
#[utoipa::path(post, path = "/monitors/evaluate", tag = "steering", request_body = EvaluateBody, responses(
    (status = 200, body = Verdict),
    (status = 409, description = "what came before `after_mark` is not known here: send the whole run", body = Problem),
))]
async fn evaluate(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    request: Request,
) -> ApiResult<Response> {
    let body = body::read(request.into_body(), api.max_body_bytes).await?;
    // Cached states belong to the organisation of the key; for operators, the body that names it is part of the hash.
    let owner = caller.scope(None, None);
    let owner = format!("{:?}/{:?}", owner.org, owner.project);
    // A repeated request, such as a retry, gets the same reply.
    let request = api.runtime.trace_cache.extend(api.runtime.trace_cache.begin(&owner), &body);
    if let Some(reply) = api.evaluate_replies.get(&request) {
        return Ok(json(reply));
    }
    let (settings, steps) = evaluate_request::parse(&api.runtime.trace_cache, &owner, &body)?;
    if steps.len() > STEPS_MAX {
        let what = format!("{} steps are too many: send the newest {STEPS_MAX}", steps.len());
        return Err(unprocessable(&["body", "steps"], what));
    }
    let (org, project) =
        caller.org_and_project(settings.org_id.as_deref(), settings.project_id.as_deref());
    let judged = judged(&api, &org, &project, &settings).await;
    let (state, trace, truncated) = observed(&api, steps, &judged).await?;
    let (mut verdict, situation) = verdict(&state);
    verdict.mark = trace.to_cursor();
    api.runtime.trace_cache.insert(api.runtime.trace_cache.state_key(&judged.by, trace), state);
    if let Some(situation) = situation {
        let model = settings.model.as_deref().unwrap_or_default();
        add_pattern_guidance(&api, &org, model, &situation, &mut verdict).await;
    }
    if let Some(run_id) = settings.run_id.as_deref().filter(|run_id| !run_id.is_empty()) {
        let run = RunKey { org, run_id: run_id.to_owned() };
        add_operator_messages(&api.runtime.messages.claim(&run).await.texts(), &mut verdict);
    }
    verdict.notes = judged.notes.into_iter().chain(truncated).collect();
    // Counted when the client reports the step: the public SDKs call both routes for one step.
    let reply = Bytes::from(serde_json::to_vec(&verdict).map_err(|_| ApiError::Internal)?);
    api.evaluate_replies.insert(request, reply.clone());
    Ok(json(reply))
}

fn json(body: Bytes) -> Response {
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

/// Weights, suite and task of a request. If the store is unavailable, the default profile is used.
async fn judged(api: &ApiState, org: &str, project: &str, settings: &Settings) -> Judged {
    let run = match settings.run_id.as_deref().filter(|run_id| !run_id.is_empty()) {
        Some(run_id) => {
            let scope = Scope { org: Some(org.to_owned()), project: None };
            api.runtime.store.run(&scope, run_id).await.unwrap_or_default()
        }
        None => None,
    };
    let told = |text: fn(&RunRow) -> &String| {
        run.as_ref().map(text).filter(|text| !text.is_empty()).cloned()
    };
    let profile = settings.task_profile.clone().or_else(|| told(|row| &row.task_profile));
    let own = settings.weights.iter().flatten().map(|(name, weight)| (name.as_str(), *weight));
    let own: Vec<(&str, f64)> = own.collect();
    let weights = api
        .runtime
        .profiles
        .weights(&*api.runtime.store, (org, project), profile.as_deref(), own.iter().copied())
        .await;
    let mut notes = Vec::new();
    let weights = match weights {
        Ok((weights, about)) => {
            notes.extend(about.iter().map(ToString::to_string));
            weights
        }
        Err(error) => {
            tracing::warn!(%error, "a profile could not be read");
            api.runtime.metrics.failed_open.inc();
            notes.push("the profile could not be read; the default weights were used".to_owned());
            Weights::default().with(own).0
        }
    };
    let suite = settings.suite.unwrap_or_default();
    let mut cuts = Truncations::default();
    let task = settings.task.clone().or_else(|| told(|row| &row.task));
    let task = cuts.or_empty("task", task, MAX_TASK_CHARS);
    let first_step_index = settings.first_step_index.unwrap_or_default();
    let mut by = format!("{org}\0{project}\0{suite:?}\0{first_step_index}\0{task}\0").into_bytes();
    by.extend(weights.iter().flat_map(f64::to_le_bytes));
    let rules = assessment::trace_engine(&api.runtime.embedder, suite, weights);
    Judged { rules, task, first_step_index, by, notes }
}

/// Assesses all steps. Returns the state of the monitors, the hash of the trace, and the names of truncated fields.
async fn observed(
    api: &ApiState,
    steps: Steps,
    judged: &Judged,
) -> ApiResult<(MonitorState, TraceHash, Vec<String>)> {
    let key = |trace: TraceHash| api.runtime.trace_cache.state_key(&judged.by, trace);
    let before = if steps.is_continued {
        let what = "what came before `after_mark` is not known here (any more): send the whole run";
        let state = api.runtime.trace_cache.take(key(steps.before));
        Some((0, state.ok_or_else(|| ApiError::Conflict(what.to_owned()))?))
    } else {
        None
    };
    let hashes = steps.hashes(&api.runtime.trace_cache);
    // The newest known state is mostly the one before the last step.
    let (done, state) = before
        .or_else(|| {
            let newest = hashes.iter().enumerate().rev().take(MAX_STATE_LOOKUPS);
            newest
                .map(|(at, trace)| (at + 1, *trace))
                .find_map(|(done, trace)| Some((done, api.runtime.trace_cache.take(key(trace))?)))
        })
        .unwrap_or_else(|| (0, new_state(judged)));
    let trace = hashes.last().copied().unwrap_or(steps.before);
    let work = move || {
        let (state, truncated) = observe_from(&steps, done, state)?;
        Ok((state, trace, truncated))
    };
    if hashes.len() - done <= MAX_INLINE_STEPS {
        return work();
    }
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(ApiError::Internal))
}

fn new_state(judged: &Judged) -> MonitorState {
    let mut monitors = MonitorSet::new(&judged.rules, &judged.task);
    monitors.set_first_step_index(judged.first_step_index);
    MonitorState::new(monitors)
}

fn observe_from(
    steps: &Steps,
    done: usize,
    mut watched: MonitorState,
) -> ApiResult<(MonitorState, Vec<String>)> {
    let mut cuts = Truncations::default();
    for at in done..steps.len() {
        let StepIn {
            thought,
            action,
            action_input,
            observation,
            observation_is_error,
            advised,
            user_input,
        } = steps.parse(at)?;
        for monitor in advised.iter().flatten() {
            watched.monitors.advised(monitor);
        }
        let thought = cuts.or_empty("thought", thought, MAX_TEXT_CHARS);
        let observation = cuts.or_empty("observation", observation, MAX_TEXT_CHARS);
        let user_input = cuts.or_empty("user_input", user_input, MAX_TEXT_CHARS);
        let (text, is_structured) = input_text(action_input.as_deref());
        let text = cuts.optional("action_input", text, MAX_TEXT_CHARS);
        let input = match text.as_deref() {
            None => Input::None,
            Some(text) if is_structured => Input::Structured(text),
            Some(text) => Input::Text(text),
        };
        let step = Step { user_input: &user_input, ..Step::thought(&thought) }
            .with_action(action.as_deref().unwrap_or_default(), input)
            .with_observation(&observation)
            .with_error(observation_is_error.unwrap_or_default());
        watched.observe(&step);
    }
    let cut = |name: String| format!("`{name}` is cut after {MAX_TEXT_CHARS} characters");
    Ok((watched, cuts.names().into_iter().map(cut).collect()))
}

/// Builds the verdict on the newest step, and the situation for the pattern look-up.
fn verdict(watched: &MonitorState) -> (Verdict, Option<Situation>) {
    let assessment = &watched.latest;
    let ranked = watched.monitors.ranked(assessment);
    let worst = ranked.first();
    let is_risky = assessment.composite > LOOKUP_THRESHOLD;
    let shows = worst.filter(|reading| reading.fired || is_risky);
    let mut verdict = Verdict {
        inject: false,
        intervention_text: None,
        failure_type: shows.map(|reading| reading.monitor.failure_type.to_owned()),
        injection_path: None,
        intervention_source: None,
        pattern_id: None,
        fired: assessment::fired(assessment),
        scores: assessment::firing_scores(assessment, watched.monitors.policy()),
        signals: assessment::signals(assessment),
        composite: assessment.composite,
        evidence: assessment::evidence(assessment, |position| position),
        difficulty: assessment.difficulty,
        step_count: watched.step_count,
        mark: String::new(),
        notes: Vec::new(),
    };
    let newest = watched.monitors.newest_step_index();
    let spoken = worst.and_then(|reading| Some((reading, reading.advice()?)));
    if let Some((reading, advice)) = spoken {
        verdict.inject = true;
        verdict.intervention_text = Some(format!("{advice} (Seen at step {newest}.)"));
        verdict.injection_path = Some("monitor");
        verdict.intervention_source = Some(reading.monitor.id.to_owned());
        return (verdict, None);
    }
    let situation = shows.map(|reading| Situation {
        failure_type: reading.monitor.failure_type,
        context: watched.context(),
        newest,
    });
    (verdict, situation.filter(|situation| !situation.context.is_empty()))
}

/// Situation without a fired monitor but with a high composite.
struct Situation {
    failure_type: &'static str,
    context: String,
    newest: u32,
}

/// Looks up a pattern for the most likely failure type.
async fn add_pattern_guidance(
    api: &ApiState,
    org: &str,
    model: &str,
    situation: &Situation,
    verdict: &mut Verdict,
) {
    if api.runtime.guidance.is_over_quota(org).await {
        return;
    }
    let wanted = PatternQuery {
        org,
        tier: Some(Tier::E2),
        context: &situation.context,
        failure_type: Some(situation.failure_type),
        model,
        top_k: 1,
    };
    let found = api.runtime.patterns.find(&wanted).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "patterns could not be looked up");
        api.runtime.metrics.failed_open.inc();
        Vec::new()
    });
    let Some(best) = found.first() else { return };
    let text = render_pattern(&best.pattern().body, Family::of_model(model));
    verdict.inject = true;
    verdict.intervention_text = Some(format!("{text}\n(Seen at step {}.)", situation.newest));
    verdict.injection_path = Some("pattern");
    verdict.intervention_source = Some(Tier::E2.name().to_owned());
    verdict.pattern_id = Some(best.row.pattern_id.clone());
    api.runtime.patterns.record_uses(&found);
}

/// Puts operator messages in front of other guidance.
fn add_operator_messages(words: &[String], verdict: &mut Verdict) {
    if words.is_empty() {
        return;
    }
    let said = words.iter().map(|words| sanitise(&operator_message(words)));
    let said: Vec<String> = said.chain(verdict.intervention_text.take()).collect();
    verdict.inject = true;
    verdict.intervention_text = Some(said.join("\n\n"));
    verdict.injection_path = Some("hand");
    verdict.intervention_source = Some(Source::Operator.name().to_owned());
}
