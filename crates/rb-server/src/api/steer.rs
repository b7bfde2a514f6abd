//! Steers a run by hand: a person's words go to the agent the way the engine's advice goes.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rb_store::RunKey;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::told::NO_RUN;
use super::validate::check_id;
use crate::app::Shared;
use rb_http::Authenticated;
use rb_http::Path;
use rb_http::body::Body;
use rb_http::error::{ApiError, ApiResult, Problem};
use rb_runtime::auth::Caller;

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(steer))
}

/// What to say to the agent.
#[derive(Deserialize, ToSchema)]
struct SteerBody {
    #[schema(min_length = 1, max_length = 1_500)]
    text: String,
    /// Heeded for the operator's keys only.
    org_id: Option<String>,
    project_id: Option<String>,
}

/// It waits for the next model call.
#[derive(Serialize, ToSchema)]
struct Steered {
    run_id: String,
    /// `waiting`.
    status: &'static str,
    /// How many messages wait for this run.
    waiting: usize,
}

/// Says something to a running agent, with its next model call: through the gateway, the walk, or `evaluate` with the
/// run's id. Each step that carries it has the source `hand`. At most three messages wait for a run, and six a minute
/// may be said.
#[utoipa::path(post, path = "/monitor/runs/{run_id}/steer", tag = "steering",
    params(("run_id" = String, Path, min_length = 1, max_length = 256)), request_body = SteerBody, responses(
    (status = 202, body = Steered), (status = 404, body = Problem),
    (status = 409, description = "the run is over, or three messages wait for it", body = Problem),
))]
async fn steer(
    State(app): State<Shared>,
    Authenticated(caller): Authenticated,
    Path(run_id): Path<String>,
    Body(body): Body<SteerBody>,
) -> ApiResult<(StatusCode, Json<Steered>)> {
    check_id(&["path", "run_id"], &run_id)?;
    let whose = (body.org_id.as_deref(), body.project_id.as_deref());
    let (run, waiting) = say(&app, &caller, whose, &run_id, &body.text).await?;
    let reply = Steered { run_id: run.run_id, status: "waiting", waiting };
    Ok((StatusCode::ACCEPTED, Json(reply)))
}

/// Lets words wait for a run that the caller may see and that is not over.
pub(crate) async fn say(
    app: &Shared,
    caller: &Caller,
    (org, project): (Option<&str>, Option<&str>),
    run_id: &str,
    words: &str,
) -> ApiResult<(RunKey, usize)> {
    let scope = caller.scope(org, project);
    let row = app.store.run(&scope, run_id).await?.ok_or(NO_RUN)?;
    if row.finished_ms.is_some() {
        return Err(ApiError::Conflict("this run is over; nobody would read it".to_owned()));
    }
    let waiting = app.messages.add(&row.run, words).await?;
    tracing::info!(run = row.run.run_id, by = %caller.name, "a run is steered by hand");
    Ok((row.run, waiting))
}
