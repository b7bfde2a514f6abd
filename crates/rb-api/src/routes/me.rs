//! Caller of a key.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use rb_http::Authenticated;
use rb_http::error::ApiResult;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(me))
}

/// Caller.
#[derive(Serialize, ToSchema)]
struct Me {
    /// Id of the key; `local` while the server needs none, `static-N` for the operator's N-th.
    key_id: String,
    /// Organisation of the key; none for the operator.
    org_id: Option<String>,
    /// Project of the key, if it is limited to one.
    project_id: Option<String>,
    /// The key has access to all organisations and manages keys.
    is_superuser: bool,
    /// The server needs no key.
    is_open: bool,
}

/// Returns the owner of the key and its permissions.
#[utoipa::path(get, path = "/monitor/me", tag = "profiles", responses((status = 200, body = Me)))]
async fn me(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
) -> ApiResult<Json<Me>> {
    let scope = caller.scope(None, None);
    Ok(Json(Me {
        key_id: caller.name.to_string(),
        org_id: scope.org,
        project_id: scope.project,
        is_superuser: caller.is_operator(),
        is_open: api.runtime.keys.is_open(&*api.runtime.store).await?,
    }))
}
