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
use rb_store::ProfileRow;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use rb_http::Authenticated;
use rb_http::Path;
use rb_http::body::{Body, Query};
use rb_http::error::{ApiResult, Problem, unprocessable};
use rb_runtime::clock::format_rfc3339;
use rb_runtime::library::{self, ProfileChange, ProfileId};

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(read, change, delete))
}

/// A profile.
#[derive(Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "every id on the wire says whose it is")]
pub(super) struct Profile {
    /// Additional fields of the creator.
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
    /// Weights set by this profile; others are those of `coding`.
    own_weights: BTreeMap<String, f64>,
    /// Built-in profiles cannot be changed.
    built_in: bool,
    created_at: Option<String>,
    updated_at: Option<String>,
    /// Values that were changed or ignored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// Properties of a new profile. Additional fields are stored.
#[derive(Deserialize, ToSchema)]
pub(super) struct NewProfile {
    #[schema(min_length = 1, max_length = 64)]
    profile_id: String,
    /// Ignored unless the key is an operator's.
    #[schema(max_length = 256)]
    org_id: Option<String>,
    /// Empty for the whole organisation.
    #[schema(max_length = 256)]
    project_id: Option<String>,
    #[schema(max_length = 4_000)]
    description: Option<String>,
    /// Weights by monitor, clamped to 0..1 with a note; others keep their weight of `coding`.
    #[serde(default)]
    weights: BTreeMap<String, f64>,
    #[serde(flatten)]
    #[schema(ignore)]
    extra: Map<String, Value>,
}

/// Changes of a profile. Additional fields are stored; null removes one.
#[derive(Deserialize, ToSchema)]
pub(super) struct ProfilePatch {
    #[schema(max_length = 4_000)]
    description: Option<String>,
    /// Weights to merge into those of the profile; null removes one.
    #[serde(default)]
    weights: BTreeMap<String, Option<f64>>,
    #[serde(flatten)]
    #[schema(ignore)]
    extra: Map<String, Value>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Whose {
    /// Ignored unless the key is an operator's.
    org_id: Option<String>,
    /// Empty for the whole organisation.
    project_id: Option<String>,
}

impl Whose {
    fn profile<'a>(&'a self, id: &'a str) -> ProfileId<'a> {
        ProfileId { id, org: self.org_id.as_deref(), project: self.project_id.as_deref() }
    }
}

/// Deleted profile.
#[derive(Serialize, ToSchema)]
pub(super) struct DeletedProfile {
    /// `deleted`.
    status: &'static str,
    profile_id: String,
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

/// Drops additional fields that equal response fields.
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

/// Returns the built-in profiles, then those of the organisation and, if a project is given, of the project.
#[utoipa::path(get, path = "/monitor/profiles", tag = "profiles", params(Whose), responses(
    (status = 200, body = [Profile]),
))]
async fn list(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Query(whose): Query<Whose>,
) -> ApiResult<Json<Vec<Profile>>> {
    let scope = caller.scope(whose.org_id.as_deref(), whose.project_id.as_deref());
    let own = api.runtime.store.profiles(&scope).await?;
    let all = BuiltIn::ALL.into_iter().map(built_in);
    Ok(Json(all.chain(own.into_iter().map(|row| shown(row, &[]))).collect()))
}

/// Creates a profile.
#[utoipa::path(post, path = "/monitor/profiles", tag = "profiles", request_body = NewProfile, responses(
    (status = 201, body = Profile),
    (status = 409, description = "there is one of that name", body = Problem),
))]
async fn create(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Body(new): Body<NewProfile>,
) -> ApiResult<(StatusCode, Json<Profile>)> {
    let (id, org) = (new.profile_id.as_str(), new.org_id.as_deref());
    let profile = ProfileId { id, org, project: new.project_id.as_deref() };
    let content = library::NewProfile {
        description: new.description.unwrap_or_default(),
        weights: new.weights,
        extra: kept(new.extra).collect(),
    };
    let (row, notes) = api.runtime.profile_library.create(&caller, profile, content).await?;
    Ok((StatusCode::CREATED, Json(shown(row, &notes))))
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
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path(profile_id): Path<String>,
    Query(whose): Query<Whose>,
) -> ApiResult<Json<Profile>> {
    if let Some(profile) = BuiltIn::from_name(&profile_id) {
        return Ok(Json(built_in(profile)));
    }
    let row = api.runtime.profile_library.resolve(&caller, whose.profile(&profile_id)).await?;
    Ok(Json(shown(row, &[])))
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
async fn change(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path(profile_id): Path<String>,
    Query(whose): Query<Whose>,
    Body(patch): Body<ProfilePatch>,
) -> ApiResult<Json<Profile>> {
    let change = ProfileChange {
        description: patch.description,
        weights: patch.weights,
        extra: kept(patch.extra).collect(),
    };
    let library = &api.runtime.profile_library;
    let (row, notes) = library.change(&caller, whose.profile(&profile_id), change).await?;
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
async fn delete(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path(profile_id): Path<String>,
    Query(whose): Query<Whose>,
) -> ApiResult<Json<DeletedProfile>> {
    if caller.is_operator() && whose.org_id.as_deref().is_none_or(str::is_empty) {
        let said = "the operator's keys belong to no organisation: say whose profile is meant";
        return Err(unprocessable(&["query", "org_id"], said));
    }
    api.runtime.profile_library.delete(&caller, whose.profile(&profile_id)).await?;
    Ok(Json(DeletedProfile { status: "deleted", profile_id }))
}
