//! Health check and metrics.

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use rb_http::error::{ApiError, ApiResult, Problem};

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(health)).routes(routes!(metrics))
}

#[derive(Serialize, ToSchema)]
struct Health {
    /// `ok`, or `degraded` while the database is unavailable and run data is queued on this node.
    status: &'static str,
    /// Size of the queue on disk, in bytes.
    waiting_bytes: u64,
    version: &'static str,
}

/// Reports whether the server and its database are available.
#[utoipa::path(get, path = "/health", tag = "server", responses(
    (status = 200, body = Health),
    (status = 503, description = "the database is away", body = Problem),
))]
async fn health(State(api): State<ApiState>) -> ApiResult<Json<Health>> {
    let waiting = api.runtime.store.backlog();
    let status = match api.runtime.store.ping().await {
        Ok(()) if waiting.is_none_or(|waiting| !waiting.is_pending) => "ok",
        // Status 200: the node still forwards requests and queues run data.
        Ok(()) | Err(_) if waiting.is_some() => "degraded",
        Ok(()) | Err(_) => return Err(ApiError::Unavailable),
    };
    let waiting_bytes = waiting.unwrap_or_default().bytes;
    Ok(Json(Health { status, waiting_bytes, version: env!("CARGO_PKG_VERSION") }))
}

/// Counters for Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "server", responses(
    (status = 200, body = String, content_type = "application/openmetrics-text"),
))]
async fn metrics(State(api): State<ApiState>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    api.runtime.metrics.set_backlog(api.runtime.store.backlog().unwrap_or_default());
    ([(CONTENT_TYPE, kind)], api.runtime.metrics.text()).into_response()
}
