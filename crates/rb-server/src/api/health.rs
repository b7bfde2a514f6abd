//! Is it up, and what does it count.

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Shared;
use crate::error::{ApiError, ApiResult, Problem};

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(health)).routes(routes!(metrics))
}

#[derive(Serialize, ToSchema)]
struct Health {
    /// `ok`.
    status: &'static str,
    version: &'static str,
}

/// Whether the server and its database answer.
#[utoipa::path(get, path = "/health", tag = "server", responses(
    (status = 200, body = Health),
    (status = 503, description = "the database is away", body = Problem),
))]
async fn health(State(app): State<Shared>) -> ApiResult<Json<Health>> {
    app.store.ping().await.map_err(|_| ApiError::Unavailable)?;
    Ok(Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") }))
}

/// Counters for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "server", responses(
    (status = 200, body = String, content_type = "application/openmetrics-text"),
))]
async fn metrics(State(app): State<Shared>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, kind)], app.metrics.text()).into_response()
}
