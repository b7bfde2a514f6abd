//! Retrieval of patterns for a situation.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use rb_engine::guidance::Tier;
use rb_engine::guidance::render::{Family, render_pattern};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use rb_http::Authenticated;
use rb_http::body::Body;
use rb_http::error::{ApiResult, unprocessable};
use rb_runtime::limits::{MAX_TEXT_CHARS, Truncations};
use rb_runtime::retrieval::{Match, PatternQuery, pattern_fields};

/// Set if the quota is exhausted; an empty list alone means that no pattern matched.
const OVER_CAP: HeaderName = HeaderName::from_static("x-reasonblocks-over-cap");
const TOP_K_DEFAULT: u32 = 5;
const TOP_K_MAX: u32 = 50;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(retrieve))
}

/// Situation of the agent.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct RetrieveBody {
    /// Newest thought of the agent; empty for standing rules. Truncated to 64,000 characters.
    context: String,
    /// `e1`, `e2` or `e3`; selected by the server if empty.
    tier: Option<TierIn>,
    /// Alias of `tier`; `tier` takes precedence.
    level: Option<TierIn>,
    /// Maximum number of patterns.
    #[schema(minimum = 1, maximum = 50)]
    top_k: Option<u32>,
    /// Model that receives the patterns.
    model: Option<String>,
    /// Ignored; accepted from older clients.
    customer_id: Option<String>,
    /// Failure type of the patterns.
    failure_type: Option<String>,
    org_id: Option<String>,
    project_id: Option<String>,
}

/// Tier, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum TierIn {
    #[serde(rename = "")]
    Any,
    E1,
    E2,
    E3,
}

impl TierIn {
    fn tier(self) -> Option<Tier> {
        match self {
            Self::Any => None,
            Self::E1 => Some(Tier::E1),
            Self::E2 => Some(Tier::E2),
            Self::E3 => Some(Tier::E3),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Retrieved {
    /// Best first.
    traces: Vec<TraceOut>,
    /// The organisation's monthly quota is exhausted, so no patterns were retrieved.
    over_cap: bool,
}

/// Matching pattern.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TraceOut {
    tier: &'static str,
    level: &'static str,
    /// From 0 to 1; 1 for standing rules.
    similarity: f64,
    pattern_id: String,
    /// All field names that clients read, including `pattern_id`.
    fields: Map<String, Value>,
    failure_type: Option<String>,
    model_family: Option<String>,
    source_trace_id: Option<String>,
    /// Text of the pattern for the model.
    insight: String,
}

impl TraceOut {
    fn new(found: &Match, family: Family) -> Self {
        let row = &found.row;
        Self {
            tier: found.tier.name(),
            level: found.tier.name(),
            similarity: (found.similarity * 1e4).round() / 1e4,
            pattern_id: row.pattern_id.clone(),
            fields: pattern_fields::with_aliases(found.tier, row),
            failure_type: row.failure_type.clone(),
            model_family: row.model_family.clone(),
            source_trace_id: row.source_trace_id.clone(),
            insight: render_pattern(&found.pattern().body, family),
        }
    }
}

/// Finds patterns for a situation.
#[utoipa::path(post, path = "/traces/retrieve", tag = "steering", request_body = RetrieveBody, responses(
    (status = 200, body = Retrieved),
))]
async fn retrieve(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Body(body): Body<RetrieveBody>,
) -> ApiResult<Response> {
    let top_k = body.top_k.unwrap_or(TOP_K_DEFAULT);
    if !(1..=TOP_K_MAX).contains(&top_k) {
        let what = format!("{top_k} is not possible: ask for 1 to {TOP_K_MAX} patterns");
        return Err(unprocessable(&["body", "top_k"], what));
    }
    let (org, _) = caller.org_and_project(
        body.org_id.as_deref().or(body.customer_id.as_deref()),
        body.project_id.as_deref(),
    );
    if api.runtime.guidance.is_over_quota(&org).await {
        let nothing = Json(Retrieved { traces: Vec::new(), over_cap: true });
        return Ok(([(OVER_CAP, HeaderValue::from_static("true"))], nothing).into_response());
    }
    let context = Truncations::default().text("context", body.context, MAX_TEXT_CHARS);
    let named = [body.tier, body.level].into_iter().flatten().find_map(TierIn::tier);
    let model = body.model.unwrap_or_default();
    let wanted = PatternQuery {
        org: &org,
        tier: named,
        context: &context,
        failure_type: body.failure_type.as_deref().filter(|kind| !kind.is_empty()),
        model: &model,
        top_k: top_k as usize,
    };
    let found = api.runtime.patterns.find(&wanted).await?;
    api.runtime.patterns.record_uses(&found);
    let family = Family::of_model(&model);
    let traces = found.iter().map(|found| TraceOut::new(found, family)).collect();
    Ok(Json(Retrieved { traces, over_cap: false }).into_response())
}
