//! Findings of agents about a codebase, with semantic search.
//!
//! A codebase is often named `org/repo`; see `crate::path_ids`.

/// Object or list of objects.
mod one_or_many;

use axum::Json;
use axum::extract::State;
use rb_store::{Change, FindingRow};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::one_or_many::OneOrMany;
use crate::ApiState;
use rb_http::Authenticated;
use rb_http::Path;
use rb_http::body::{Body, Query};
use rb_http::error::{ApiError, ApiResult, Fault, Place, Problem, unprocessable};
use rb_runtime::auth::Caller;
use rb_runtime::clock::{format_rfc3339, now_ms};

const CONTENT_CHARS_MAX: usize = 8_000;
const PATH_CHARS_MAX: usize = 512;
const TYPE_CHARS_MAX: usize = 64;
const TYPE_DEFAULT: &str = "note";
const QUERY_CHARS_MAX: usize = 2_000;
const PATHS_MAX: usize = 1_024;
const BATCH_MAX: usize = 1_000;
const TOP_K_DEFAULT: i64 = 5;
const TOP_K_MAX: i64 = 50;
const THRESHOLD_DEFAULT: f64 = 0.5;
/// Prefix of finding ids; 32 hexadecimal digits follow.
const ID_PREFIX: &str = "fnd_";
const NOT_THERE: ApiError = ApiError::NotFound("there is no such finding");

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(codebases))
        .routes(routes!(list, store, clear))
        .routes(routes!(search))
        .routes(routes!(invalidate))
        .routes(routes!(change, delete))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct Whose {
    /// Ignored unless the key is an operator's.
    org_id: Option<String>,
    project_id: Option<String>,
}

impl Whose {
    /// Findings belong to an organisation; all its projects share them.
    fn org(&self, caller: &Caller) -> String {
        caller.org_and_project(self.org_id.as_deref(), self.project_id.as_deref()).0
    }
}

/// A finding.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "clients know the fields by these names")]
struct Finding {
    finding_id: String,
    content: String,
    file_path: String,
    finding_type: String,
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
    created_at: String,
    updated_at: String,
    /// Relevance to the query, from 0 to 1; 1 in lists.
    score: f64,
}

impl Finding {
    fn new(row: &FindingRow, score: f64) -> Self {
        Self {
            finding_id: row.finding_id.clone(),
            content: row.content.clone(),
            file_path: row.file_path.clone(),
            finding_type: row.finding_type.clone(),
            metadata: row.metadata.clone(),
            created_at: format_rfc3339(row.created_ms),
            updated_at: format_rfc3339(row.updated_ms),
            score,
        }
    }
}

/// New finding.
#[derive(Deserialize, ToSchema)]
struct NewFinding {
    /// Text of the finding.
    #[schema(min_length = 1, max_length = 8_000)]
    content: String,
    /// File that the finding is about.
    #[serde(default)]
    #[schema(max_length = 512)]
    file_path: String,
    #[serde(default = "note")]
    #[schema(max_length = 64, default = "note")]
    finding_type: String,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
}

fn note() -> String {
    TYPE_DEFAULT.to_owned()
}

/// Stored findings.
#[derive(Serialize, ToSchema)]
struct StoredFinding {
    /// Id of the first finding, if there are several.
    finding_id: Option<String>,
    stored: bool,
    /// Ids in the order of the request.
    finding_ids: Vec<String>,
}

/// Search query.
#[derive(Deserialize, ToSchema)]
struct Search {
    #[schema(min_length = 1, max_length = 2_000)]
    query: String,
    /// Maximum number of results; default 5, clamped to 1..50.
    top_k: Option<i64>,
    /// Minimum score; default 0.5, clamped to 0..1.
    score_threshold: Option<f64>,
}

/// Search results, best first.
#[derive(Serialize, ToSchema)]
struct Results {
    results: Vec<Finding>,
}

/// The findings of a codebase, oldest first.
#[derive(Serialize, ToSchema)]
struct Findings {
    findings: Vec<Finding>,
    count: usize,
}

/// The codebases with findings or runs.
#[derive(Serialize, ToSchema)]
struct Codebases {
    codebases: Vec<String>,
}

/// Changed files.
#[derive(Deserialize, ToSchema)]
struct Changed {
    /// Findings about these files are deleted.
    #[schema(max_items = 1_024)]
    file_paths: Vec<String>,
}

/// Number of deleted findings.
#[derive(Serialize, ToSchema)]
struct Invalidated {
    invalidated: u64,
}

/// Changes of a finding; null and missing fields stay unchanged.
#[derive(Deserialize, ToSchema)]
struct FindingPatch {
    #[schema(min_length = 1, max_length = 8_000)]
    content: Option<String>,
    #[schema(max_length = 512)]
    file_path: Option<String>,
    #[schema(max_length = 64)]
    finding_type: Option<String>,
    /// Replaces all metadata.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
}

/// Deleted findings.
#[derive(Serialize, ToSchema)]
struct Gone {
    /// `cleared` for a codebase, `deleted` for one finding.
    status: &'static str,
    deleted: u64,
}

/// Validation errors of the texts of a finding, as (field, message).
fn faults(
    content: Option<&str>,
    path: Option<&str>,
    kind: Option<&str>,
) -> impl Iterator<Item = (&'static str, String)> {
    let blank = content.is_some_and(|content| content.trim().is_empty());
    let blank = blank.then(|| ("content", "a finding needs a text".to_owned()));
    let long = [
        ("content", content, CONTENT_CHARS_MAX),
        ("file_path", path, PATH_CHARS_MAX),
        ("finding_type", kind, TYPE_CHARS_MAX),
    ];
    let long = long.map(|(field, text, chars_max)| {
        let count = text.map_or(0, |text| text.chars().count());
        (count > chars_max).then(|| {
            (field, format!("{count} characters, at most {chars_max} are kept; shorten it"))
        })
    });
    blank.into_iter().chain(long.into_iter().flatten())
}

impl NewFinding {
    fn row(self, org: &str, codebase: &str, now: i64) -> FindingRow {
        FindingRow {
            org: org.to_owned(),
            codebase: codebase.to_owned(),
            finding_id: format!("{ID_PREFIX}{}", uuid::Uuid::now_v7().simple()),
            content: self.content,
            file_path: self.file_path,
            finding_type: self.finding_type,
            metadata: self.metadata.unwrap_or_default(),
            created_ms: now,
            updated_ms: now,
        }
    }
}

/// The codebases with findings or runs.
#[utoipa::path(get, path = "/findings", tag = "findings", params(Whose), responses(
    (status = 200, body = Codebases),
))]
async fn codebases(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Query(whose): Query<Whose>,
) -> ApiResult<Json<Codebases>> {
    let scope = caller.scope(whose.org_id.as_deref(), whose.project_id.as_deref());
    Ok(Json(Codebases { codebases: api.runtime.store.codebases(&scope).await? }))
}

/// Stores a finding, or a list of them atomically.
#[utoipa::path(post, path = "/findings/{codebase_id}", tag = "findings",
    params(("codebase_id" = String, Path, description = "may hold slashes"), Whose),
    request_body = OneOrMany<NewFinding>,
    responses((status = 200, body = StoredFinding)),
)]
async fn store(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path(codebase): Path<String>,
    Query(whose): Query<Whose>,
    Body(new): Body<OneOrMany<NewFinding>>,
) -> ApiResult<Json<StoredFinding>> {
    let (new, is_list) = match new {
        OneOrMany::One(finding) => (vec![finding], false),
        OneOrMany::Many(findings) => (findings, true),
    };
    if new.len() > BATCH_MAX {
        let said =
            format!("{} findings, at most {BATCH_MAX} at once; send several lists", new.len());
        return Err(unprocessable(&["body"], said));
    }
    let mut wrong = Vec::new();
    for (position, finding) in new.iter().enumerate() {
        let (path, kind) = (&finding.file_path, &finding.finding_type);
        for (field, said) in faults(Some(&finding.content), Some(path), Some(kind)) {
            let mut fault = Fault::at(&["body", field], said);
            if is_list {
                fault.loc.insert(1, Place::Position(position));
            }
            wrong.push(fault);
        }
    }
    if !wrong.is_empty() {
        return Err(ApiError::Unprocessable(wrong));
    }
    let (org, now) = (whose.org(&caller), now_ms());
    let rows: Vec<_> = new.into_iter().map(|new| new.row(&org, &codebase, now)).collect();
    let finding_ids: Vec<_> = rows.iter().map(|row| row.finding_id.clone()).collect();
    let changes = rows.into_iter().map(|row| Change::PutFinding(Box::new(row))).collect();
    api.runtime.store.apply(changes).await?;
    api.runtime.findings.invalidate(&org, &codebase);
    let finding_id = finding_ids.first().cloned();
    Ok(Json(StoredFinding { stored: finding_id.is_some(), finding_id, finding_ids }))
}

/// Searches the findings of a codebase.
#[utoipa::path(post, path = "/findings/{codebase_id}/search", tag = "findings",
    params(("codebase_id" = String, Path, description = "may hold slashes"), Whose),
    request_body = Search,
    responses((status = 200, body = Results)),
)]
async fn search(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path(codebase): Path<String>,
    Query(whose): Query<Whose>,
    Body(asked): Body<Search>,
) -> ApiResult<Json<Results>> {
    if asked.query.trim().is_empty() {
        return Err(unprocessable(&["body", "query"], "a search needs a question"));
    }
    if asked.query.chars().count() > QUERY_CHARS_MAX {
        let said = format!("longer than {QUERY_CHARS_MAX} characters; shorten it");
        return Err(unprocessable(&["body", "query"], said));
    }
    // Values come from users of the client, so they are clamped.
    let count_max = asked.top_k.unwrap_or(TOP_K_DEFAULT).clamp(1, TOP_K_MAX);
    let count_max = usize::try_from(count_max).unwrap_or(1);
    let score_min = asked.score_threshold.unwrap_or(THRESHOLD_DEFAULT).clamp(0.0, 1.0);
    let org = whose.org(&caller);
    let found = api
        .runtime
        .findings
        .search(&*api.runtime.store, (&org, &codebase), &asked.query, (count_max, score_min))
        .await?;
    let results = found.iter().map(|found| Finding::new(&found.finding, found.score)).collect();
    Ok(Json(Results { results }))
}

/// All findings of a codebase.
#[utoipa::path(get, path = "/findings/{codebase_id}", tag = "findings",
    params(("codebase_id" = String, Path, description = "may hold slashes"), Whose),
    responses((status = 200, body = Findings)),
)]
async fn list(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path(codebase): Path<String>,
    Query(whose): Query<Whose>,
) -> ApiResult<Json<Findings>> {
    let rows = api.runtime.store.findings(&whose.org(&caller), &codebase).await?;
    let findings: Vec<_> = rows.iter().map(|row| Finding::new(row, 1.0)).collect();
    Ok(Json(Findings { count: findings.len(), findings }))
}

/// Deletes the findings about changed files.
#[utoipa::path(post, path = "/findings/{codebase_id}/invalidate", tag = "findings",
    params(("codebase_id" = String, Path, description = "may hold slashes"), Whose),
    request_body = Changed,
    responses((status = 200, body = Invalidated)),
)]
async fn invalidate(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path(codebase): Path<String>,
    Query(whose): Query<Whose>,
    Body(changed): Body<Changed>,
) -> ApiResult<Json<Invalidated>> {
    let file_paths = changed.file_paths;
    if file_paths.len() > PATHS_MAX {
        let said = format!("{} paths, at most {PATHS_MAX} at once", file_paths.len());
        return Err(unprocessable(&["body", "file_paths"], said));
    }
    let org = whose.org(&caller);
    let codebase_id = codebase.clone();
    let change = Change::InvalidateFindings { org: org.clone(), codebase: codebase_id, file_paths };
    let invalidated = api.runtime.store.apply(vec![change]).await?.into_iter().sum();
    api.runtime.findings.invalidate(&org, &codebase);
    Ok(Json(Invalidated { invalidated }))
}

/// Changes a finding.
#[utoipa::path(patch, path = "/findings/{codebase_id}/{finding_id}", tag = "findings",
    params(
        ("codebase_id" = String, Path, description = "may hold slashes"),
        ("finding_id" = String, Path),
        Whose,
    ),
    request_body = FindingPatch,
    responses(
        (status = 200, body = Finding),
        (status = 404, description = "no such finding", body = Problem),
    ),
)]
async fn change(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path((codebase, finding_id)): Path<(String, String)>,
    Query(whose): Query<Whose>,
    Body(patch): Body<FindingPatch>,
) -> ApiResult<Json<Finding>> {
    let (content, file_path) = (patch.content.as_deref(), patch.file_path.as_deref());
    let wrong = faults(content, file_path, patch.finding_type.as_deref());
    let wrong: Vec<_> = wrong.map(|(field, said)| Fault::at(&["body", field], said)).collect();
    if !wrong.is_empty() {
        return Err(ApiError::Unprocessable(wrong));
    }
    let org = whose.org(&caller);
    let rows = api.runtime.store.findings(&org, &codebase).await?;
    let row = rows.into_iter().find(|row| row.finding_id == finding_id);
    let mut row = row.ok_or(NOT_THERE)?;
    row.content = patch.content.unwrap_or(row.content);
    row.file_path = patch.file_path.unwrap_or(row.file_path);
    row.finding_type = patch.finding_type.unwrap_or(row.finding_type);
    row.metadata = patch.metadata.unwrap_or(row.metadata);
    row.updated_ms = now_ms();
    api.runtime.store.apply(vec![Change::PutFinding(Box::new(row.clone()))]).await?;
    api.runtime.findings.invalidate(&org, &codebase);
    Ok(Json(Finding::new(&row, 1.0)))
}

/// Deletes a finding. If the codebase has none with that id, the path is read as the name of a codebase, which is cleared.
#[utoipa::path(delete, path = "/findings/{codebase_id}/{finding_id}", tag = "findings",
    params(
        ("codebase_id" = String, Path, description = "may hold slashes"),
        ("finding_id" = String, Path),
        Whose,
    ),
    responses(
        (status = 200, body = Gone),
        (status = 404, description = "no such finding", body = Problem),
    ),
)]
async fn delete(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path((codebase, finding_id)): Path<(String, String)>,
    Query(whose): Query<Whose>,
) -> ApiResult<Json<Gone>> {
    let org = whose.org(&caller);
    let one = Change::DeleteFinding {
        org: org.clone(),
        codebase: codebase.clone(),
        finding_id: finding_id.clone(),
    };
    let deleted: u64 = api.runtime.store.apply(vec![one]).await?.into_iter().sum();
    if deleted > 0 {
        api.runtime.findings.invalidate(&org, &codebase);
        return Ok(Json(Gone { status: "deleted", deleted }));
    }
    let cleared = clear_codebase(&api, &org, &format!("{codebase}/{finding_id}")).await?;
    // Clearing an empty codebase succeeds, unless the last segment is a finding id.
    if cleared.deleted == 0 && is_our_id(&finding_id) {
        return Err(NOT_THERE);
    }
    Ok(Json(cleared))
}

/// Deletes all findings of a codebase.
#[utoipa::path(delete, path = "/findings/{codebase_id}", tag = "findings",
    params(("codebase_id" = String, Path, description = "may hold slashes"), Whose),
    responses((status = 200, body = Gone)),
)]
async fn clear(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path(codebase): Path<String>,
    Query(whose): Query<Whose>,
) -> ApiResult<Json<Gone>> {
    clear_codebase(&api, &whose.org(&caller), &codebase).await.map(Json)
}

async fn clear_codebase(api: &ApiState, org: &str, codebase: &str) -> ApiResult<Gone> {
    let all = Change::ClearFindings { org: org.to_owned(), codebase: codebase.to_owned() };
    let deleted = api.runtime.store.apply(vec![all]).await?.into_iter().sum();
    api.runtime.findings.invalidate(org, codebase);
    Ok(Gone { status: "cleared", deleted })
}

fn is_our_id(id: &str) -> bool {
    id.strip_prefix(ID_PREFIX).is_some_and(|digits| {
        digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}
