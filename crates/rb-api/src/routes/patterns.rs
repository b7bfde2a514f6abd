//! Pattern library: list, add, change and remove patterns.
//!
//! A key of an organisation has access to its E1 patterns. E2 and E3 patterns are shared by all organisations and changed
//! with an operator's key.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rb_engine::guidance::Tier;
use rb_store::{PatternFilter, PatternRow};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use rb_http::Authenticated;
use rb_http::Path;
use rb_http::body::{Body, Query as Asked};
use rb_http::error::{ApiError, ApiResult, Problem, unprocessable};
use rb_runtime::clock::format_rfc3339;
use rb_runtime::library::{NewPattern, PatternAttributes, PatternId};
use rb_runtime::retrieval::pattern_fields;

const LIMIT_DEFAULT: u32 = 200;
const LIMIT_MAX: u32 = 1_000;
const NO_PATTERN: ApiError = ApiError::NotFound("there is no such pattern");

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list, add)).routes(routes!(change, remove))
}

/// Tier of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum TierName {
    E1,
    E2,
    E3,
}

impl TierName {
    fn tier(self) -> Tier {
        match self {
            Self::E1 => Tier::E1,
            Self::E2 => Tier::E2,
            Self::E3 => Tier::E3,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PatternOut {
    tier: String,
    pattern_id: String,
    /// Owner; empty for all organisations.
    org_id: String,
    failure_type: Option<String>,
    model_family: Option<String>,
    source_trace_id: Option<String>,
    gate_threshold: Option<f64>,
    /// Situations the pattern applies to, one per line.
    context: String,
    /// With the aliases that clients read.
    fields: Map<String, Value>,
    created_at: String,
    updated_at: String,
    uses: u64,
    last_used_at: Option<String>,
}

impl From<&PatternRow> for PatternOut {
    fn from(row: &PatternRow) -> Self {
        let tier = Tier::from_name(&row.tier);
        Self {
            tier: row.tier.clone(),
            pattern_id: row.pattern_id.clone(),
            org_id: row.org.clone(),
            failure_type: row.failure_type.clone(),
            model_family: row.model_family.clone(),
            source_trace_id: row.source_trace_id.clone(),
            gate_threshold: row.gate_threshold,
            context: row.context.clone(),
            fields: tier
                .map_or_else(|| row.fields.clone(), |tier| pattern_fields::with_aliases(tier, row)),
            created_at: format_rfc3339(row.created_ms),
            updated_at: format_rfc3339(row.updated_ms),
            uses: row.uses,
            last_used_at: row.used_ms.map(format_rfc3339),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ListQuery {
    tier: Option<TierName>,
    limit: Option<u32>,
    org_id: Option<String>,
}

/// The patterns the caller may use: its own E1, all E2 and E3.
#[utoipa::path(get, path = "/library/patterns", tag = "library", params(
    ("tier" = Option<TierName>, Query),
    ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000),
    ("org_id" = Option<String>, Query),
), responses(
    (status = 200, body = Vec<PatternOut>),
))]
async fn list(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Asked(query): Asked<ListQuery>,
) -> ApiResult<Json<Vec<PatternOut>>> {
    let limit = query.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        let what = format!("{limit} is not possible: ask for 1 to {LIMIT_MAX} patterns");
        return Err(unprocessable(&["query", "limit"], what));
    }
    api.runtime.patterns.flush_uses().await;
    let tier = query.tier.map(|tier| tier.tier().name().to_owned());
    let filter = PatternFilter { tier, count_max: limit, after: None };
    let scope = caller.scope(query.org_id.as_deref(), None);
    let rows = api.runtime.store.patterns(&scope, &filter).await?;
    Ok(Json(rows.iter().map(PatternOut::from).collect()))
}

/// A new pattern.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct AddBody {
    tier: TierName,
    /// Generated if missing.
    #[schema(max_length = 256)]
    pattern_id: Option<String>,
    /// E1: `situation`, `dead_ends`, `unlock`; E2: `trajectory`, `diagnosis`, `intervention`, `avoid`; E3: `instruction`,
    /// `meta_reasoning_prompt`. The aliases of the SDKs are accepted.
    fields: Map<String, Value>,
    #[serde(flatten)]
    attributes: PatternAttributes,
    /// Owner of an E1 pattern; ignored unless the key is an operator's.
    org_id: Option<String>,
}

/// Adds a pattern.
#[utoipa::path(post, path = "/library/patterns", tag = "library", request_body = AddBody, responses(
    (status = 201, body = PatternOut), (status = 403, body = Problem),
    (status = 409, body = Problem),
))]
async fn add(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Body(body): Body<AddBody>,
) -> ApiResult<(StatusCode, Json<PatternOut>)> {
    let AddBody { tier, pattern_id, fields, attributes, org_id } = body;
    let new = NewPattern { tier: tier.tier(), pattern_id, fields, attributes, org: org_id };
    let row = api.runtime.pattern_library.add(&caller, new).await?;
    Ok((StatusCode::CREATED, Json(PatternOut::from(&row))))
}

/// Changes of a pattern; missing fields stay unchanged.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ChangeBody {
    fields: Option<Map<String, Value>>,
    #[serde(flatten)]
    attributes: PatternAttributes,
}

#[derive(Debug, Deserialize)]
pub(super) struct OwnerQuery {
    org_id: Option<String>,
}

/// Changes a pattern.
#[utoipa::path(patch, path = "/library/patterns/{tier}/{pattern_id}", tag = "library",
    params(("tier" = TierName, Path), ("pattern_id" = String, Path), ("org_id" = Option<String>, Query)), request_body = ChangeBody, responses(
    (status = 200, body = PatternOut), (status = 403, body = Problem),
    (status = 404, body = Problem),
))]
async fn change(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path((tier, id)): Path<(String, String)>,
    Asked(query): Asked<OwnerQuery>,
    Body(body): Body<ChangeBody>,
) -> ApiResult<Json<PatternOut>> {
    let tier = Tier::from_name(&tier).ok_or(NO_PATTERN)?;
    let pattern = PatternId { tier, id: &id, org: query.org_id.as_deref() };
    let fields = body.fields.unwrap_or_default();
    let library = &api.runtime.pattern_library;
    let row = library.change(&caller, pattern, fields, body.attributes).await?;
    Ok(Json(PatternOut::from(&row)))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Removed {
    /// `deleted`.
    status: &'static str,
    tier: &'static str,
    pattern_id: String,
}

/// Removes a pattern.
#[utoipa::path(delete, path = "/library/patterns/{tier}/{pattern_id}", tag = "library",
    params(("tier" = TierName, Path), ("pattern_id" = String, Path), ("org_id" = Option<String>, Query)), responses(
    (status = 200, body = Removed), (status = 403, body = Problem), (status = 404, body = Problem),
))]
async fn remove(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path((tier, pattern_id)): Path<(String, String)>,
    Asked(query): Asked<OwnerQuery>,
) -> ApiResult<Json<Removed>> {
    let tier = Tier::from_name(&tier).ok_or(NO_PATTERN)?;
    let pattern = PatternId { tier, id: &pattern_id, org: query.org_id.as_deref() };
    api.runtime.pattern_library.delete(&caller, pattern).await?;
    Ok(Json(Removed { status: "deleted", tier: tier.name(), pattern_id }))
}
