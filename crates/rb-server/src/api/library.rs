//! The library from outside: patterns listed, added, changed, removed.
//!
//! An organisation's key sees and changes its own E1. E2 and E3 are everybody's, so only the operator changes them.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rb_engine::guidance::Tier;
use rb_store::{Change, PatternFilter, PatternRow};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::validate::check_id;
use crate::app::Shared;
use rb_http::Authenticated;
use rb_http::Path;
use rb_http::body::{Body, Query as Asked};
use rb_http::error::{ApiError, ApiResult, Problem, unprocessable};
use rb_runtime::auth::Caller;
use rb_runtime::clock::{format_rfc3339, now_ms};
use rb_runtime::limits::{MAX_NAME_CHARS, MAX_TEXT_CHARS, Truncations};
use rb_runtime::retrieval::pattern_fields;

const LIMIT_DEFAULT: u32 = 200;
const LIMIT_MAX: u32 = 1_000;
/// A pattern's fields as JSON.
const FIELDS_BYTES_MAX: usize = 64_000;
/// Who and where a pattern is cannot be changed through its fields.
const STRUCTURAL: [&str; 3] = ["pattern_id", "tier", "customer_id"];
const NO_PATTERN: ApiError = ApiError::NotFound("there is no such pattern");

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(list, add)).routes(routes!(change, remove))
}

/// The three kinds of patterns.
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
pub(crate) struct PatternOut {
    tier: String,
    pattern_id: String,
    /// Whose it is; empty for everybody's.
    org_id: String,
    failure_type: Option<String>,
    model_family: Option<String>,
    source_trace_id: Option<String>,
    gate_threshold: Option<f64>,
    /// What is compared with a run's situation, one situation a line.
    context: String,
    /// Under all names that clients read.
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
    State(app): State<Shared>,
    Authenticated(caller): Authenticated,
    Asked(query): Asked<ListQuery>,
) -> ApiResult<Json<Vec<PatternOut>>> {
    let limit = query.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        let what = format!("{limit} is not possible: ask for 1 to {LIMIT_MAX} patterns");
        return Err(unprocessable(&["query", "limit"], what));
    }
    app.patterns.flush_uses().await;
    let tier = query.tier.map(|tier| tier.tier().name().to_owned());
    let filter = PatternFilter { tier, count_max: limit, after: None };
    let scope = caller.scope(query.org_id.as_deref(), None);
    let rows = app.store.patterns(&scope, &filter).await?;
    Ok(Json(rows.iter().map(PatternOut::from).collect()))
}

/// A new pattern.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct AddBody {
    tier: TierName,
    /// A new one is made if it is left out.
    #[schema(max_length = 256)]
    pattern_id: Option<String>,
    /// E1: `situation`, `dead_ends`, `unlock`; E2: `trajectory`, `diagnosis`, `intervention`, `avoid`; E3: `instruction`,
    /// `meta_reasoning_prompt`. The names that the SDKs read are taken too.
    fields: Map<String, Value>,
    #[serde(flatten)]
    about: About,
    /// Whose E1 pattern it is; the key's own organisation wins.
    org_id: Option<String>,
}

/// What a pattern is for. What is left out stays as it is.
#[derive(Debug, Default, Deserialize, ToSchema)]
struct About {
    /// What is compared with a run's situation, one situation a line; what the fields describe if left out.
    context: Option<String>,
    failure_type: Option<String>,
    /// Only for models whose name has this in it.
    model_family: Option<String>,
    source_trace_id: Option<String>,
    /// Asked for beside the tier's own gate.
    #[schema(minimum = 0.0, maximum = 1.0)]
    gate_threshold: Option<f64>,
}

impl About {
    fn lay_on(self, row: &mut PatternRow) -> ApiResult<()> {
        if self.gate_threshold.is_some_and(|gate| !(0.0..=1.0).contains(&gate)) {
            let wanted = "a similarity from 0 to 1 is wanted";
            return Err(unprocessable(&["body", "gate_threshold"], wanted));
        }
        let mut cuts = Truncations::default();
        let named =
            |text: Option<String>, before: &Option<String>, cuts: &mut Truncations| match text {
                None => before.clone(),
                Some(text) if text.is_empty() => None,
                Some(text) => Some(cuts.text("", text, MAX_NAME_CHARS)),
            };
        row.failure_type = named(self.failure_type, &row.failure_type, &mut cuts);
        row.model_family = named(self.model_family, &row.model_family, &mut cuts);
        row.source_trace_id = named(self.source_trace_id, &row.source_trace_id, &mut cuts);
        row.gate_threshold = self.gate_threshold.or(row.gate_threshold);
        if let Some(context) = self.context {
            row.context = cuts.text("context", context, MAX_TEXT_CHARS);
        }
        Ok(())
    }
}

/// Where a caller's patterns of a tier are.
fn owner(caller: &Caller, tier: Tier, org: Option<&str>) -> ApiResult<String> {
    match tier {
        Tier::E1 => Ok(caller.org_and_project(org, None).0),
        Tier::E2 | Tier::E3 if caller.is_operator() => Ok(String::new()),
        Tier::E2 | Tier::E3 => Err(ApiError::Forbidden(
            "E2 and E3 patterns are everybody's; they are changed with a key of the operator",
        )),
    }
}

fn check_fields(tier: Tier, fields: &Map<String, Value>) -> ApiResult<()> {
    if let Some(names) = pattern_fields::missing_field(tier, fields) {
        let what = format!("a pattern of this tier needs the text `{}`", names.join("` or `"));
        return Err(unprocessable(&["body", "fields"], what));
    }
    let bytes = serde_json::to_vec(fields).map_or(0, |json| json.len());
    if bytes > FIELDS_BYTES_MAX {
        let what = format!("{bytes} bytes are too many: a pattern has at most {FIELDS_BYTES_MAX}");
        return Err(unprocessable(&["body", "fields"], what));
    }
    Ok(())
}

/// The caller's pattern of that name.
async fn find(app: &Shared, org: &str, tier: Tier, id: &str) -> ApiResult<Option<PatternRow>> {
    Ok(app.store.pattern(org, tier.name(), id).await?)
}

async fn put(app: &Shared, row: PatternRow) -> ApiResult<Json<PatternOut>> {
    let shown = PatternOut::from(&row);
    app.store.apply(vec![Change::PutPattern(Box::new(row))]).await?;
    app.patterns.invalidate();
    Ok(Json(shown))
}

/// Adds a pattern.
#[utoipa::path(post, path = "/library/patterns", tag = "library", request_body = AddBody, responses(
    (status = 201, body = PatternOut), (status = 403, body = Problem),
    (status = 409, body = Problem),
))]
pub(crate) async fn add(
    State(app): State<Shared>,
    Authenticated(caller): Authenticated,
    Body(body): Body<AddBody>,
) -> ApiResult<(StatusCode, Json<PatternOut>)> {
    let tier = body.tier.tier();
    let org = owner(&caller, tier, body.org_id.as_deref())?;
    let pattern_id = body
        .pattern_id
        .filter(|id| !id.is_empty())
        .unwrap_or_else(|| uuid::Uuid::now_v7().simple().to_string());
    check_id(&["body", "pattern_id"], &pattern_id)?;
    check_fields(tier, &body.fields)?;
    if find(&app, &org, tier, &pattern_id).await?.is_some() {
        let what =
            format!("there is a pattern `{pattern_id}` already; change it, or choose another id");
        return Err(ApiError::Conflict(what));
    }
    let at_ms = now_ms();
    let mut row = PatternRow {
        org,
        tier: tier.name().to_owned(),
        pattern_id,
        fields: body.fields,
        created_ms: at_ms,
        updated_ms: at_ms,
        ..PatternRow::default()
    };
    row.fields.retain(|name, _| !STRUCTURAL.contains(&name.as_str()));
    body.about.lay_on(&mut row)?;
    Ok((StatusCode::CREATED, put(&app, row).await?))
}

/// What changes; fields that are not named stay.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ChangeBody {
    fields: Option<Map<String, Value>>,
    #[serde(flatten)]
    about: About,
}

#[derive(Debug, Deserialize)]
pub(crate) struct OwnerQuery {
    org_id: Option<String>,
}

/// Changes a pattern.
#[utoipa::path(patch, path = "/library/patterns/{tier}/{pattern_id}", tag = "library",
    params(("tier" = TierName, Path), ("pattern_id" = String, Path), ("org_id" = Option<String>, Query)), request_body = ChangeBody, responses(
    (status = 200, body = PatternOut), (status = 403, body = Problem),
    (status = 404, body = Problem),
))]
pub(crate) async fn change(
    State(app): State<Shared>,
    Authenticated(caller): Authenticated,
    Path((tier, id)): Path<(String, String)>,
    Asked(query): Asked<OwnerQuery>,
    Body(body): Body<ChangeBody>,
) -> ApiResult<Json<PatternOut>> {
    let tier = Tier::from_name(&tier).ok_or(NO_PATTERN)?;
    let org = owner(&caller, tier, query.org_id.as_deref())?;
    let mut row = find(&app, &org, tier, &id).await?.ok_or(NO_PATTERN)?;
    for (name, value) in body.fields.unwrap_or_default() {
        if !STRUCTURAL.contains(&name.as_str()) {
            row.fields.insert(name, value);
        }
    }
    check_fields(tier, &row.fields)?;
    body.about.lay_on(&mut row)?;
    row.updated_ms = now_ms();
    put(&app, row).await
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Removed {
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
pub(crate) async fn remove(
    State(app): State<Shared>,
    Authenticated(caller): Authenticated,
    Path((tier, pattern_id)): Path<(String, String)>,
    Asked(query): Asked<OwnerQuery>,
) -> ApiResult<Json<Removed>> {
    let tier = Tier::from_name(&tier).ok_or(NO_PATTERN)?;
    let org = owner(&caller, tier, query.org_id.as_deref())?;
    let gone =
        Change::DeletePattern { org, tier: tier.name().to_owned(), pattern_id: pattern_id.clone() };
    let touched = app.store.apply(vec![gone]).await?;
    app.patterns.invalidate();
    if touched.first().copied().unwrap_or_default() == 0 {
        return Err(NO_PATTERN);
    }
    Ok(Json(Removed { status: "deleted", tier: tier.name(), pattern_id }))
}
