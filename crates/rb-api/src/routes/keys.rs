//! API keys: list, create, revoke. Operator only.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rb_store::{Change, KeyRow};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use rb_http::Authenticated;
use rb_http::Path;
use rb_http::body::Body;
use rb_http::error::{ApiError, ApiResult, Problem, unprocessable};
use rb_runtime::auth::{self, KeyKind};
use rb_runtime::auth::{Caller, DEFAULT_ORG};
use rb_runtime::clock::{format_rfc3339, now_ms};

const NAME_CHARS_MAX: usize = 128;
const ID_CHARS_MAX: usize = 256;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(revoke))
}

/// A key, without its secret.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "every id on the wire says whose it is")]
struct Key {
    key_id: String,
    name: String,
    /// Prefix of the secret, for recognition.
    shown: String,
    org_id: String,
    /// Empty for all projects of the organisation.
    project_id: String,
    created_at: String,
    revoked_at: Option<String>,
}

impl From<KeyRow> for Key {
    fn from(row: KeyRow) -> Self {
        Self {
            key_id: row.key_id,
            name: row.name,
            shown: row.shown,
            org_id: row.org,
            project_id: row.project,
            created_at: format_rfc3339(row.created_ms),
            revoked_at: row.revoked_ms.map(format_rfc3339),
        }
    }
}

/// Properties of a new key.
#[derive(Deserialize, ToSchema)]
struct NewKey {
    #[serde(default)]
    #[schema(max_length = 128)]
    name: String,
    /// `default` if left out.
    #[serde(default)]
    #[schema(max_length = 256)]
    org_id: String,
    /// Empty for all projects of the organisation.
    #[serde(default)]
    #[schema(max_length = 256)]
    project_id: String,
    #[serde(default)]
    kind: KeyKind,
}

/// New key with its secret.
#[derive(Serialize, ToSchema)]
struct MadeKey {
    /// Only returned once.
    secret: String,
    #[serde(flatten)]
    key: Key,
}

/// Revoked key.
#[derive(Serialize, ToSchema)]
struct RevokedKey {
    /// `revoked`.
    status: &'static str,
    key_id: String,
}

fn operator(caller: &Caller) -> ApiResult<()> {
    if caller.is_operator() {
        return Ok(());
    }
    Err(ApiError::Forbidden("keys are managed by the operator: use a key of `REASONBLOCKS_KEYS`"))
}

/// All keys, revoked ones too, oldest first. Operator only.
#[utoipa::path(get, path = "/keys", tag = "keys", responses(
    (status = 200, body = [Key]),
    (status = 403, description = "not the operator's key", body = Problem),
))]
async fn list(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
) -> ApiResult<Json<Vec<Key>>> {
    operator(&caller)?;
    Ok(Json(api.runtime.store.keys().await?.into_iter().map(Key::from).collect()))
}

/// Creates a key. Operator only. After the first key, a local server requires keys.
#[utoipa::path(post, path = "/keys", tag = "keys", request_body = NewKey, responses(
    (status = 201, body = MadeKey),
    (status = 403, description = "not the operator's key", body = Problem),
))]
async fn create(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Body(new): Body<NewKey>,
) -> ApiResult<(StatusCode, Json<MadeKey>)> {
    operator(&caller)?;
    for (field, value, chars_max) in [
        ("name", &new.name, NAME_CHARS_MAX),
        ("org_id", &new.org_id, ID_CHARS_MAX),
        ("project_id", &new.project_id, ID_CHARS_MAX),
    ] {
        if value.chars().count() > chars_max {
            let said = format!("longer than {chars_max} characters; shorten it");
            return Err(unprocessable(&["body", field], said));
        }
    }
    let org = if new.org_id.is_empty() { DEFAULT_ORG } else { &new.org_id };
    let (secret, row) =
        auth::create_key(new.kind, org, &new.project_id, &new.name).map_err(|error| {
            tracing::error!(%error, "no key could be made");
            ApiError::Internal
        })?;
    api.runtime.store.apply(vec![Change::PutKey(Box::new(row.clone()))]).await?;
    api.runtime.keys.invalidate();
    Ok((StatusCode::CREATED, Json(MadeKey { secret, key: row.into() })))
}

/// Revokes a key. Operator only; repeating it has no effect.
#[utoipa::path(delete, path = "/keys/{key_id}", tag = "keys",
    params(("key_id" = String, Path)),
    responses(
        (status = 200, body = RevokedKey),
        (status = 403, description = "not the operator's key", body = Problem),
        (status = 404, description = "no such key", body = Problem),
    ),
)]
async fn revoke(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path(key_id): Path<String>,
) -> ApiResult<Json<RevokedKey>> {
    operator(&caller)?;
    if !api.runtime.store.keys().await?.iter().any(|key| key.key_id == key_id) {
        return Err(ApiError::NotFound("there is no such key"));
    }
    let change = Change::RevokeKey { key_id: key_id.clone(), at_ms: now_ms() };
    api.runtime.store.apply(vec![change]).await?;
    api.runtime.keys.invalidate();
    Ok(Json(RevokedKey { status: "revoked", key_id }))
}
