//! Profiles: weights under a name, of an organisation or of one of its projects.
//!
//! The built-in ones are always listed and cannot be changed. A name may exist once for the whole organisation
//! (`project_id` empty) and once for each project; a project's own wins.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rb_engine::config::weights::{Profile as BuiltIn, WeightNote, Weights};
use rb_engine::monitors;
use rb_store::{Change, ProfileRow, Scope};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Shared;
use rb_http::Authenticated;
use rb_http::Path;
use rb_http::body::{Body, Query};
use rb_http::error::{ApiError, ApiResult, Problem, unprocessable};
use rb_runtime::auth::{Caller, DEFAULT_ORG};
use rb_runtime::clock::{format_rfc3339, now_ms};

/// As long as the `task_profile` of a run may be.
const ID_CHARS_MAX: usize = 64;
const DESCRIPTION_CHARS_MAX: usize = 4_000;
const SCOPE_CHARS_MAX: usize = 256;
const NOT_THERE: ApiError = ApiError::NotFound("there is no such profile");

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(read, change, delete))
}

/// A profile.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "every id on the wire says whose it is")]
pub(crate) struct Profile {
    /// Whatever else it was created with.
    #[serde(flatten)]
    #[schema(ignore)]
    extra: Map<String, Value>,
    profile_id: String,
    /// Empty for built-in profiles.
    org_id: String,
    /// Empty for the whole organisation.
    project_id: String,
    description: String,
    /// The weight of every monitor under this profile.
    weights: BTreeMap<&'static str, f64>,
    /// The weights that differ from `coding` by this profile's own word.
    own_weights: BTreeMap<String, f64>,
    /// Built-in profiles cannot be changed.
    built_in: bool,
    created_at: Option<String>,
    updated_at: Option<String>,
    /// What was not taken as it was given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// What a new profile is to be. Further fields are kept and given back.
#[derive(Deserialize, ToSchema)]
pub(crate) struct NewProfile {
    #[schema(min_length = 1, max_length = 64)]
    profile_id: String,
    /// Heeded for the operator's keys only.
    #[schema(max_length = 256)]
    org_id: Option<String>,
    /// Empty for the whole organisation.
    #[schema(max_length = 256)]
    project_id: Option<String>,
    #[schema(max_length = 4_000)]
    description: Option<String>,
    /// By monitor; others keep their weight under `coding`. Outside 0 to 1 they are clamped, and a note says so.
    #[serde(default)]
    weights: BTreeMap<String, f64>,
    #[serde(flatten)]
    #[schema(ignore)]
    extra: Map<String, Value>,
}

/// What is to change. Further fields are kept; those given as null go.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ProfilePatch {
    #[schema(max_length = 4_000)]
    description: Option<String>,
    /// Laid on top of the profile's own; a null takes one back.
    #[serde(default)]
    weights: BTreeMap<String, Option<f64>>,
    #[serde(flatten)]
    #[schema(ignore)]
    extra: Map<String, Value>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Whose {
    /// Heeded for the operator's keys only.
    org_id: Option<String>,
    /// Empty for the whole organisation.
    project_id: Option<String>,
}

/// A profile that went.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeletedProfile {
    /// `deleted`.
    status: &'static str,
    profile_id: String,
}

/// Whose profile is meant: the key's scope wins, the whole organisation is the default.
fn home(caller: &Caller, org: Option<&str>, project: Option<&str>) -> (String, String) {
    let Scope { org, project } = caller.scope(org, project);
    (org.unwrap_or_else(|| DEFAULT_ORG.to_owned()), project.unwrap_or_default())
}

fn built_in(profile: BuiltIn) -> Profile {
    let description = match profile {
        BuiltIn::Coding => "Agents that write code. The default.",
        BuiltIn::PrReview => "Agents that review changes: they read a lot and run little.",
        BuiltIn::Qa => "Agents that test.",
    };
    Profile {
        extra: Map::new(),
        profile_id: profile.name().to_owned(),
        org_id: String::new(),
        project_id: String::new(),
        description: description.to_owned(),
        weights: by_name(&Weights::of(profile)),
        own_weights: BTreeMap::new(),
        built_in: true,
        created_at: None,
        updated_at: None,
        notes: Vec::new(),
    }
}

fn shown(row: ProfileRow, notes: &[WeightNote]) -> Profile {
    let own = row.weights.iter().map(|(name, weight)| (name.as_str(), *weight));
    let (weights, _) = Weights::default().with(own);
    Profile {
        extra: row.extra,
        profile_id: row.profile_id,
        org_id: row.org,
        project_id: row.project,
        description: row.description,
        weights: by_name(&weights),
        own_weights: row.weights,
        built_in: false,
        created_at: Some(format_rfc3339(row.created_ms)),
        updated_at: Some(format_rfc3339(row.updated_ms)),
        notes: notes.iter().map(ToString::to_string).collect(),
    }
}

fn by_name(weights: &Weights) -> BTreeMap<&'static str, f64> {
    monitors::ALL.iter().map(|spec| spec.id).zip(weights.iter()).collect()
}

/// The weights that can be taken, clamped, and what there is to say about the others.
fn checked(given: BTreeMap<String, f64>) -> (BTreeMap<String, f64>, Vec<WeightNote>) {
    let borrowed = given.iter().map(|(name, weight)| (name.as_str(), *weight));
    let (weights, notes) = Weights::default().with(borrowed);
    let taken = given.into_keys().filter_map(|name| weights.get(&name).map(|taken| (name, taken)));
    (taken.collect(), notes)
}

/// What a reply says by itself is not kept beside it.
fn kept(extra: Map<String, Value>) -> impl Iterator<Item = (String, Value)> {
    const OURS: [&str; 8] = [
        "profile_id",
        "org_id",
        "project_id",
        "own_weights",
        "built_in",
        "created_at",
        "updated_at",
        "notes",
    ];
    extra.into_iter().filter(|(name, _)| !OURS.contains(&name.as_str()))
}

fn short(path: &[&str], value: Option<&str>, chars_max: usize) -> ApiResult<()> {
    if value.is_some_and(|value| value.chars().count() > chars_max) {
        let said = format!("longer than {chars_max} characters; shorten it");
        return Err(unprocessable(path, said));
    }
    Ok(())
}

fn not_built_in(profile_id: &str) -> ApiResult<()> {
    match BuiltIn::from_name(profile_id) {
        Some(_) => Err(ApiError::Conflict(format!(
            "`{profile_id}` is built in and cannot be changed; create one under another name"
        ))),
        None => Ok(()),
    }
}

/// The profile of exactly this organisation and project.
async fn exact(
    app: &Shared,
    (org, project): (&str, &str),
    profile_id: &str,
) -> ApiResult<Option<ProfileRow>> {
    let rows = app.store.profiles(&Scope::org(org)).await?;
    Ok(rows.into_iter().find(|row| row.profile_id == profile_id && row.project == project))
}

/// The built-in profiles, then the organisation's and, if a project is meant, the project's.
#[utoipa::path(get, path = "/monitor/profiles", tag = "profiles", params(Whose), responses(
    (status = 200, body = [Profile]),
))]
async fn list(
    State(app): State<Shared>,
    Authenticated(caller): Authenticated,
    Query(whose): Query<Whose>,
) -> ApiResult<Json<Vec<Profile>>> {
    let scope = caller.scope(whose.org_id.as_deref(), whose.project_id.as_deref());
    let own = app.store.profiles(&scope).await?;
    let all = BuiltIn::ALL.into_iter().map(built_in);
    Ok(Json(all.chain(own.into_iter().map(|row| shown(row, &[]))).collect()))
}

/// Creates a profile.
#[utoipa::path(post, path = "/monitor/profiles", tag = "profiles", request_body = NewProfile, responses(
    (status = 201, body = Profile),
    (status = 409, description = "there is one of that name", body = Problem),
))]
pub(crate) async fn create(
    State(app): State<Shared>,
    Authenticated(caller): Authenticated,
    Body(new): Body<NewProfile>,
) -> ApiResult<(StatusCode, Json<Profile>)> {
    if new.profile_id.trim().is_empty() {
        return Err(unprocessable(&["body", "profile_id"], "a profile needs a name"));
    }
    short(&["body", "profile_id"], Some(&new.profile_id), ID_CHARS_MAX)?;
    short(&["body", "org_id"], new.org_id.as_deref(), SCOPE_CHARS_MAX)?;
    short(&["body", "project_id"], new.project_id.as_deref(), SCOPE_CHARS_MAX)?;
    short(&["body", "description"], new.description.as_deref(), DESCRIPTION_CHARS_MAX)?;
    not_built_in(&new.profile_id)?;
    let (org, project) = home(&caller, new.org_id.as_deref(), new.project_id.as_deref());
    if exact(&app, (&org, &project), &new.profile_id).await?.is_some() {
        return Err(ApiError::Conflict(format!(
            "there is a profile `{}` already; change it with PATCH",
            new.profile_id
        )));
    }
    let (weights, notes) = checked(new.weights);
    let now = now_ms();
    let row = ProfileRow {
        org,
        project,
        profile_id: new.profile_id,
        description: new.description.unwrap_or_default(),
        weights,
        extra: kept(new.extra).collect(),
        created_ms: now,
        updated_ms: now,
    };
    put(&app, &row).await?;
    Ok((StatusCode::CREATED, Json(shown(row, &notes))))
}

async fn put(app: &Shared, row: &ProfileRow) -> ApiResult<()> {
    app.store.apply(vec![Change::PutProfile(Box::new(row.clone()))]).await?;
    app.profiles.invalidate();
    Ok(())
}

/// One profile, as a run of the project sees it: the project's own, else the organisation's.
#[utoipa::path(get, path = "/monitor/profiles/{profile_id}", tag = "profiles",
    params(("profile_id" = String, Path), Whose),
    responses(
        (status = 200, body = Profile),
        (status = 404, description = "no such profile", body = Problem),
    ),
)]
async fn read(
    State(app): State<Shared>,
    Authenticated(caller): Authenticated,
    Path(profile_id): Path<String>,
    Query(whose): Query<Whose>,
) -> ApiResult<Json<Profile>> {
    if let Some(profile) = BuiltIn::from_name(&profile_id) {
        return Ok(Json(built_in(profile)));
    }
    let (org, project) = home(&caller, whose.org_id.as_deref(), whose.project_id.as_deref());
    let row = match exact(&app, (&org, &project), &profile_id).await? {
        Some(row) => Some(row),
        None => exact(&app, (&org, ""), &profile_id).await?,
    };
    Ok(Json(shown(row.ok_or(NOT_THERE)?, &[])))
}

/// Changes a profile of exactly this organisation and project.
#[utoipa::path(patch, path = "/monitor/profiles/{profile_id}", tag = "profiles",
    params(("profile_id" = String, Path), Whose),
    request_body = ProfilePatch,
    responses(
        (status = 200, body = Profile),
        (status = 404, description = "no such profile", body = Problem),
        (status = 409, description = "built-in profiles cannot be changed", body = Problem),
    ),
)]
pub(crate) async fn change(
    State(app): State<Shared>,
    Authenticated(caller): Authenticated,
    Path(profile_id): Path<String>,
    Query(whose): Query<Whose>,
    Body(patch): Body<ProfilePatch>,
) -> ApiResult<Json<Profile>> {
    not_built_in(&profile_id)?;
    short(&["body", "description"], patch.description.as_deref(), DESCRIPTION_CHARS_MAX)?;
    let (org, project) = home(&caller, whose.org_id.as_deref(), whose.project_id.as_deref());
    let mut row = exact(&app, (&org, &project), &profile_id).await?.ok_or(NOT_THERE)?;
    let (mut given, mut taken_back) = (BTreeMap::new(), Vec::new());
    for (name, weight) in patch.weights {
        match weight {
            Some(weight) => _ = given.insert(name, weight),
            None => taken_back.push(name),
        }
    }
    let (weights, notes) = checked(given);
    row.weights.extend(weights);
    row.weights.retain(|name, _| !taken_back.contains(name));
    row.description = patch.description.unwrap_or(row.description);
    row.extra.extend(kept(patch.extra));
    row.extra.retain(|_, value| !value.is_null());
    row.updated_ms = now_ms();
    put(&app, &row).await?;
    Ok(Json(shown(row, &notes)))
}

/// Deletes a profile of exactly this organisation and project. The operator must name `org_id`.
#[utoipa::path(delete, path = "/monitor/profiles/{profile_id}", tag = "profiles",
    params(("profile_id" = String, Path), Whose),
    responses(
        (status = 200, body = DeletedProfile),
        (status = 404, description = "no such profile", body = Problem),
        (status = 409, description = "built-in profiles cannot be deleted", body = Problem),
    ),
)]
pub(crate) async fn delete(
    State(app): State<Shared>,
    Authenticated(caller): Authenticated,
    Path(profile_id): Path<String>,
    Query(whose): Query<Whose>,
) -> ApiResult<Json<DeletedProfile>> {
    not_built_in(&profile_id)?;
    if caller.is_operator() && whose.org_id.as_deref().is_none_or(str::is_empty) {
        let said = "the operator's keys belong to no organisation: say whose profile is meant";
        return Err(unprocessable(&["query", "org_id"], said));
    }
    let (org, project) = home(&caller, whose.org_id.as_deref(), whose.project_id.as_deref());
    let gone = Change::DeleteProfile { org, project, profile_id: profile_id.clone() };
    let touched: u64 = app.store.apply(vec![gone]).await?.into_iter().sum();
    app.profiles.invalidate();
    if touched == 0 {
        return Err(NOT_THERE);
    }
    Ok(Json(DeletedProfile { status: "deleted", profile_id }))
}
