//! List of monitors.

use std::collections::BTreeMap;

use axum::Json;
use rb_engine::config::weights::{Profile, Weights};
use rb_engine::monitors;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(scorers))
}

/// A monitor.
#[derive(Serialize, ToSchema)]
struct Scorer {
    name: &'static str,
    /// `heuristic` or `semantic`.
    suite: &'static str,
    /// Description.
    description: &'static str,
    /// Score from which the monitor fires.
    threshold: f64,
    /// Failure type that the monitor indicates.
    failure_type: &'static str,
    /// Weight under `coding`.
    weight: f64,
    /// Weight under each built-in profile.
    weights: BTreeMap<&'static str, f64>,
}

/// Returns the monitors and their weights.
#[utoipa::path(get, path = "/monitor/scorers", tag = "profiles", responses(
    (status = 200, body = [Scorer]),
))]
async fn scorers() -> Json<Vec<Scorer>> {
    let weight = |profile, id| Weights::of(profile).get(id).unwrap_or_default();
    let scorers = monitors::ALL.iter().map(|spec| Scorer {
        name: spec.id,
        suite: spec.suite.name(),
        description: spec.summary,
        threshold: spec.fire_at,
        failure_type: spec.failure_type,
        weight: weight(Profile::default(), spec.id),
        weights: Profile::ALL.map(|profile| (profile.name(), weight(profile, spec.id))).into(),
    });
    Json(scorers.collect())
}
