//! Queries of runs: the list, one run with its steps, and the summary.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use rb_engine::policy::Policy;
use rb_engine::run::round4;
use rb_store::{
    Evidence, Health, MonitorHealth, OutcomeClass, RunAfter, RunFilter, RunRow, Scope, Scores,
    StepRow, Tokens,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use rb_http::Authenticated;
use rb_http::Path;
use rb_http::body::Query;
use rb_http::error::{ApiError, ApiResult, Problem, unprocessable};
use rb_runtime::clock::{day_of, format_rfc3339, now_ms};

const RUNS_DEFAULT: u32 = 200;
const RUNS_MAX: u32 = 10_000;
/// Number of all steps of a run: an index is at most 10,000.
const STEPS_MAX: u32 = 10_001;
/// Number of runs in the sparkline of the summary.
const RECENT_RUNS: u32 = 30;
/// Framework of runs that did not report one.
const NO_FRAMEWORK: &str = "(none)";
const NOT_THERE: ApiError = ApiError::NotFound("there is no such run");

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(detail)).routes(routes!(summary))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct Listed {
    #[param(minimum = 1, maximum = 10_000, default = 200)]
    limit: Option<u32>,
    /// Number of runs to skip; `after` is faster on later pages.
    #[serde(default)]
    offset: u32,
    /// Ignored unless the key is an operator's.
    org_id: Option<String>,
    project_id: Option<String>,
    /// Alias of `org_id`.
    org_name: Option<String>,
    /// Name of the key that created the run.
    api_key_name: Option<String>,
    /// Name of the agent.
    agent: Option<String>,
    model: Option<String>,
    /// `success`, `failure`, `other` or `unfinished`.
    outcome: Option<String>,
    /// A monitor that fired on at least one step.
    fired: Option<String>,
    /// A pattern that was shown on at least one step, as `e1:id`.
    pattern: Option<String>,
    /// Part of the id, the task or the agent's name.
    q: Option<String>,
    /// Runs that began at this time or later: ISO 8601, or milliseconds since 1970.
    since: Option<String>,
    /// Runs that began before this time.
    until: Option<String>,
    /// The page begins after the run with this id.
    after: Option<String>,
}

/// A run in a list.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "clients know the fields by these names")]
struct Run {
    run_id: String,
    agent_name: String,
    task: String,
    model: String,
    framework: String,
    codebase_id: String,
    started_at: String,
    finished_at: Option<String>,
    outcome: Option<String>,
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
    step_count: u64,
    /// Mean composite over the steps; 0 without steps.
    avg_score: f64,
    peak_score: f64,
    org_id: String,
    project_id: String,
    task_profile: String,
    /// Parent run; empty if there is none.
    parent_run_id: String,
    /// Name of the key that created the run.
    api_key_name: String,
    last_seen_at: String,
    /// `success`, `failure`, `other` or `unfinished`.
    outcome_class: &'static str,
    tokens: u64,
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
    cost_usd: f64,
    /// Steps on which guidance was given.
    injected_steps: u64,
    /// Number of steps on which each monitor fired.
    fires_by_monitor: BTreeMap<String, u64>,
}

/// A run with its steps.
#[derive(Serialize, ToSchema)]
struct RunDetail {
    #[serde(flatten)]
    run: Run,
    steps: Vec<Step>,
}

/// A step of a run.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "clients know the fields by these names")]
struct Step {
    step_index: u32,
    occurred_at: String,
    action: Option<String>,
    action_input: Option<String>,
    thought: String,
    observation: Option<String>,
    tokens: u64,
    /// Score of each monitor.
    #[schema(value_type = BTreeMap<String, f64>)]
    scores: Scores,
    /// The composite.
    total_score: f64,
    fired: Vec<String>,
    /// Monitors at their thresholds that are only recorded.
    signals: Vec<String>,
    /// State of the run after the step; empty if it was stored without one.
    state: String,
    injections: Vec<String>,
    injection_sources: Vec<String>,
    intervention_texts: Vec<String>,
    /// Monitors that fired according to the client.
    monitors_fired: Vec<String>,
    failure_type: Option<String>,
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
    user_input: String,
    is_error: bool,
    model: String,
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
    cost_usd: f64,
    /// Evidence of the monitors that fired.
    evidence: Vec<Reason>,
}

/// Evidence of a monitor with its steps.
#[derive(Serialize, ToSchema)]
struct Reason {
    monitor: String,
    score: f64,
    text: String,
    steps: Vec<u32>,
}

impl From<RunRow> for Run {
    fn from(row: RunRow) -> Self {
        let Tokens { total, input, output, cache_read, cache_write } = row.tokens;
        Self {
            run_id: row.run.run_id,
            agent_name: row.agent_name,
            task: row.task,
            model: row.model,
            framework: row.framework,
            codebase_id: row.codebase,
            started_at: format_rfc3339(row.started_ms),
            finished_at: row.finished_ms.map(format_rfc3339),
            outcome_class: OutcomeClass::of(row.outcome.as_deref()).name(),
            outcome: row.outcome,
            metadata: row.metadata,
            step_count: row.step_count,
            avg_score: ratio(row.score_sum, row.step_count),
            peak_score: round4(row.score_peak),
            org_id: row.run.org,
            project_id: row.project,
            task_profile: row.task_profile,
            parent_run_id: row.parent,
            api_key_name: row.key_name,
            last_seen_at: format_rfc3339(row.seen_ms),
            tokens: total,
            input_tokens: input,
            output_tokens: output,
            cache_read_tokens: cache_read,
            cache_write_tokens: cache_write,
            cost_usd: row.cost_usd,
            injected_steps: row.injected_steps,
            fires_by_monitor: row.fired,
        }
    }
}

impl From<StepRow> for Step {
    fn from(row: StepRow) -> Self {
        let Tokens { total, input, output, cache_read, cache_write } = row.tokens;
        let signals = signals(&row);
        Self {
            step_index: row.step_index,
            occurred_at: format_rfc3339(row.at_ms),
            action: row.action,
            action_input: row.action_input,
            thought: row.thought,
            observation: row.observation,
            tokens: total,
            signals,
            state: row.state,
            scores: row.scores,
            total_score: round4(row.total_score),
            fired: row.fired,
            injections: row.injections,
            injection_sources: row.injection_sources,
            intervention_texts: row.intervention_texts,
            monitors_fired: row.monitors_fired,
            failure_type: row.failure_type,
            metadata: row.metadata,
            user_input: row.user_input,
            is_error: row.is_error,
            model: row.model,
            input_tokens: input,
            output_tokens: output,
            cache_read_tokens: cache_read,
            cache_write_tokens: cache_write,
            cost_usd: row.cost_usd,
            evidence: row.evidence.into_iter().map(Reason::from).collect(),
        }
    }
}

fn signals(row: &StepRow) -> Vec<String> {
    let signals = Policy::default().signals(|monitor| row.scores.get(monitor).copied());
    signals.map(str::to_owned).collect()
}

impl From<Evidence> for Reason {
    fn from(Evidence { monitor, score, text, steps }: Evidence) -> Self {
        Self { monitor, score, text, steps }
    }
}

fn ratio(sum: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { round4(sum / as_f64(count)) }
}

/// Runs, newest first.
#[utoipa::path(get, path = "/monitor/runs", tag = "runs", params(Listed), responses(
    (status = 200, body = [Run]),
))]
async fn list(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Query(listed): Query<Listed>,
) -> ApiResult<Json<Vec<Run>>> {
    let org = listed.org_id.as_deref().filter(|org| !org.is_empty());
    let scope = caller.scope(org.or(listed.org_name.as_deref()), listed.project_id.as_deref());
    let filter = filter(&api, &scope, listed).await?;
    let runs = api.runtime.store.runs(&scope, &filter).await?;
    Ok(Json(runs.into_iter().map(Run::from).collect()))
}

async fn filter(api: &ApiState, scope: &Scope, listed: Listed) -> ApiResult<RunFilter> {
    let count_max = listed.limit.unwrap_or(RUNS_DEFAULT);
    if !(1..=RUNS_MAX).contains(&count_max) {
        let said = format!("{count_max} is not between 1 and {RUNS_MAX}");
        return Err(unprocessable(&["query", "limit"], said));
    }
    let outcome = listed.outcome.filter(|name| !name.is_empty()).map(|name| {
        OutcomeClass::ALL.into_iter().find(|class| class.name() == name).ok_or_else(|| {
            let said = format!("`{name}` is none of `success`, `failure`, `other`, `unfinished`");
            unprocessable(&["query", "outcome"], said)
        })
    });
    let after = match listed.after.filter(|id| !id.is_empty()) {
        None => None,
        Some(id) => {
            let row = api.runtime.store.run(scope, &id).await?.ok_or_else(|| {
                unprocessable(&["query", "after"], format!("there is no run `{id}`"))
            })?;
            Some(RunAfter { started_ms: row.started_ms, run: row.run })
        }
    };
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    Ok(RunFilter {
        agent_name: given(listed.agent),
        model: given(listed.model),
        outcome: outcome.transpose()?,
        fired: given(listed.fired),
        pattern: given(listed.pattern),
        key_name: given(listed.api_key_name),
        text: given(listed.q),
        since_ms: moment("since", listed.since.as_deref())?,
        until_ms: moment("until", listed.until.as_deref())?,
        after,
        offset: listed.offset,
        count_max,
    })
}

/// A time in a query: ISO 8601 or milliseconds since 1970.
fn moment(name: &str, text: Option<&str>) -> ApiResult<Option<i64>> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let ms = text.parse().ok().or_else(|| {
        let time: Timestamp = text.parse().ok()?;
        Some(time.as_millisecond())
    });
    ms.map(Some).ok_or_else(|| {
        let said = format!("`{text}` is no time: write `2026-01-31T00:00:00Z`, or milliseconds");
        unprocessable(&["query", name], said)
    })
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct Detailed {
    /// Ignored unless the key is an operator's.
    org_id: Option<String>,
    project_id: Option<String>,
    /// The steps from this index on.
    #[serde(default)]
    from_step: u32,
    /// Maximum number of steps.
    #[param(default = 10_001)]
    step_limit: Option<u32>,
}

/// One run with its steps.
#[utoipa::path(get, path = "/monitor/runs/{run_id}", tag = "runs",
    params(("run_id" = String, Path, description = "may hold slashes"), Detailed),
    responses(
        (status = 200, body = RunDetail),
        (status = 404, description = "no such run, or another organisation's", body = Problem),
    ),
)]
async fn detail(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path(run_id): Path<String>,
    Query(asked): Query<Detailed>,
) -> ApiResult<Json<RunDetail>> {
    let scope = caller.scope(asked.org_id.as_deref(), asked.project_id.as_deref());
    let run = api.runtime.store.run(&scope, &run_id).await?.ok_or(NOT_THERE)?;
    let count_max = asked.step_limit.unwrap_or(STEPS_MAX).min(STEPS_MAX);
    let steps = api.runtime.store.steps(&run.run, asked.from_step, count_max).await?;
    Ok(Json(RunDetail { run: run.into(), steps: steps.into_iter().map(Step::from).collect() }))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct Summed {
    /// Ignored unless the key is an operator's.
    org_id: Option<String>,
    project_id: Option<String>,
    /// Number of last days in which the runs began, today included; 0 for all.
    #[serde(default)]
    days: u32,
}

/// Summary of runs.
#[derive(Serialize, ToSchema)]
struct Summary {
    total_runs: u64,
    total_steps: u64,
    /// Runs whose outcome is exactly `success`.
    success_runs: u64,
    runs_with_fires: u64,
    avg_score: f64,
    peak_score: f64,
    /// The share of runs whose highest composite stayed below 0.35.
    clean_run_rate: f64,
    /// Number of steps with a score of at least 0.6 by monitor, independent of its threshold.
    fires_by_monitor: BTreeMap<String, u64>,
    /// Histogram of the composite.
    steps_by_monitor_severity: Severity,
    /// Histogram of the score of each monitor.
    severity_by_monitor: BTreeMap<String, Severity>,
    by_framework: BTreeMap<String, Framework>,
    /// The last 30 runs, oldest first.
    recent_run_scores: Vec<RunScore>,
    tokens: u64,
    cost_usd: f64,
}

/// Low is below 0.35, warn below 0.6, danger from there on.
#[derive(Serialize, ToSchema)]
struct Severity {
    low: u64,
    warn: u64,
    danger: u64,
}

/// Runs of a framework.
#[derive(Serialize, ToSchema)]
struct Framework {
    runs: u64,
    avg_score: f64,
    peak_score: f64,
}

/// Point of the curve.
#[derive(Serialize, ToSchema)]
struct RunScore {
    run_id: String,
    started_at: String,
    peak_score: f64,
    avg_score: f64,
    step_count: u64,
}

impl From<RunRow> for RunScore {
    fn from(row: RunRow) -> Self {
        Self {
            run_id: row.run.run_id,
            started_at: format_rfc3339(row.started_ms),
            peak_score: round4(row.score_peak),
            avg_score: ratio(row.score_sum, row.step_count),
            step_count: row.step_count,
        }
    }
}

/// Returns the summary of all runs.
#[utoipa::path(get, path = "/monitor/health-summary", tag = "runs", params(Summed), responses(
    (status = 200, body = Summary),
))]
async fn summary(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Query(asked): Query<Summed>,
) -> ApiResult<Json<Summary>> {
    let scope = caller.scope(asked.org_id.as_deref(), asked.project_id.as_deref());
    let first_day = day_of(now_ms()) - i64::from(asked.days) + 1;
    let since_ms = (asked.days > 0).then(|| first_day.saturating_mul(86_400_000));
    let health = api.runtime.store.health(&scope, since_ms.unwrap_or(0)).await?;
    let recent = RunFilter { since_ms, count_max: RECENT_RUNS, ..RunFilter::default() };
    let mut recent = api.runtime.store.runs(&scope, &recent).await?;
    recent.reverse();
    Ok(Json(summarise(health, recent)))
}

fn summarise(health: Health, recent: Vec<RunRow>) -> Summary {
    let severity =
        |read: &MonitorHealth| Severity { low: read.low, warn: read.warn, danger: read.danger };
    let (warn, danger) = (health.warn_steps, health.danger_steps);
    let by_composite = Severity { low: health.steps.saturating_sub(warn + danger), warn, danger };
    let framework = |(name, (runs, sum, steps, peak)): (String, (u64, f64, u64, f64))| {
        let name = if name.is_empty() { NO_FRAMEWORK.to_owned() } else { name };
        let avg_score = ratio(sum, steps);
        (name, Framework { runs, avg_score, peak_score: round4(peak) })
    };
    let fires = |(name, read): (&String, &MonitorHealth)| {
        (read.danger > 0).then(|| (name.clone(), read.danger))
    };
    let by_height = |(name, read): (&String, &MonitorHealth)| (name.clone(), severity(read));
    Summary {
        total_runs: health.runs,
        total_steps: health.steps,
        success_runs: health.success_runs,
        runs_with_fires: health.fired_runs,
        avg_score: ratio(health.score_sum, health.steps),
        peak_score: round4(health.score_peak),
        clean_run_rate: ratio(as_f64(health.clean_runs), health.runs),
        fires_by_monitor: health.by_monitor.iter().filter_map(fires).collect(),
        severity_by_monitor: health.by_monitor.iter().map(by_height).collect(),
        steps_by_monitor_severity: by_composite,
        by_framework: health.by_framework.into_iter().map(framework).collect(),
        recent_run_scores: recent.into_iter().map(RunScore::from).collect(),
        tokens: health.tokens.total,
        cost_usd: health.cost_usd,
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of runs are far below 2^52")]
fn as_f64(count: u64) -> f64 {
    count as f64
}
