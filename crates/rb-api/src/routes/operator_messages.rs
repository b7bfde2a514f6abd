//! Operator messages: sent to the agent like the guidance of the engine.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use crate::validate::check_id;
use rb_http::Authenticated;
use rb_http::Path;
use rb_http::body::Body;
use rb_http::error::{ApiResult, Problem};

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(steer))
}

/// Message to the agent.
#[derive(Deserialize, ToSchema)]
struct SteerBody {
    #[schema(min_length = 1, max_length = 1_500)]
    text: String,
    /// Ignored unless the key is an operator's.
    org_id: Option<String>,
    project_id: Option<String>,
}

/// Queued message.
#[derive(Serialize, ToSchema)]
struct Steered {
    run_id: String,
    /// `waiting`.
    status: &'static str,
    /// Number of pending messages of the run.
    waiting: usize,
}

/// Sends a message to a running agent with its next model call: through the gateway, the walk, or `evaluate` with
/// the run's id. Each step that carries it has the source `hand`. The limits are three pending messages per run and
/// six messages per minute.
#[utoipa::path(post, path = "/monitor/runs/{run_id}/steer", tag = "steering",
    params(("run_id" = String, Path, min_length = 1, max_length = 256)), request_body = SteerBody, responses(
    (status = 202, body = Steered), (status = 404, body = Problem),
    (status = 409, description = "the run is over, or three messages wait for it", body = Problem),
))]
async fn steer(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path(run_id): Path<String>,
    Body(body): Body<SteerBody>,
) -> ApiResult<(StatusCode, Json<Steered>)> {
    check_id(&["path", "run_id"], &run_id)?;
    let scope = caller.scope(body.org_id.as_deref(), body.project_id.as_deref());
    let (run, waiting) = api.runtime.messages.send(&scope, &run_id, &body.text).await?;
    let reply = Steered { run_id: run.run_id, status: "waiting", waiting };
    Ok((StatusCode::ACCEPTED, Json(reply)))
}
