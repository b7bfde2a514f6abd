//! Experiments: the list, and the report of one.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use rb_http::Authenticated;
use rb_http::Path;
use rb_http::body::Query;
use rb_http::error::{ApiError, ApiResult, Problem, unprocessable};
use rb_runtime::experiments::{self, Report};

const ON_FRACTION_DEFAULT: f64 = 0.5;

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(report))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct Whose {
    /// Ignored unless the key is an operator's.
    org_id: Option<String>,
    project_id: Option<String>,
}

/// Experiment: all runs with its id in their metadata.
#[derive(Serialize, ToSchema)]
struct Experiment {
    experiment_id: String,
    n_runs: u64,
}

/// The experiments that have runs, by name.
#[utoipa::path(get, path = "/monitor/experiments", tag = "experiments", params(Whose), responses(
    (status = 200, body = [Experiment]),
))]
async fn list(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Query(whose): Query<Whose>,
) -> ApiResult<Json<Vec<Experiment>>> {
    let scope = caller.scope(whose.org_id.as_deref(), whose.project_id.as_deref());
    let named = api.runtime.store.experiments(&scope).await?.into_iter();
    Ok(Json(named.map(|(experiment_id, n_runs)| Experiment { experiment_id, n_runs }).collect()))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
struct Asked {
    /// Ignored unless the key is an operator's.
    org_id: Option<String>,
    project_id: Option<String>,
    /// Planned share of steered runs, for the sample ratio check.
    #[param(minimum = 0, maximum = 1, default = 0.5)]
    on_fraction: Option<f64>,
}

/// Returns both arms, the confidence of the comparison, and its caveats. Computed from the current runs.
#[utoipa::path(get, path = "/monitor/experiments/{experiment_id}/report", tag = "experiments",
    params(("experiment_id" = String, Path, description = "may hold slashes"), Asked),
    responses(
        (status = 200, body = Report),
        (status = 404, description = "no run is part of it", body = Problem),
    ),
)]
async fn report(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Path(experiment_id): Path<String>,
    Query(asked): Query<Asked>,
) -> ApiResult<Json<Report>> {
    let on_fraction = asked.on_fraction.unwrap_or(ON_FRACTION_DEFAULT);
    if !(0.0..=1.0).contains(&on_fraction) {
        let said = format!("{on_fraction} is not between 0 and 1");
        return Err(unprocessable(&["query", "on_fraction"], said));
    }
    let scope = caller.scope(asked.org_id.as_deref(), asked.project_id.as_deref());
    let runs = api.runtime.store.experiment(&scope, &experiment_id).await?;
    if runs.is_empty() {
        return Err(ApiError::NotFound("no run is part of this experiment"));
    }
    let price = |model: &str, tokens: &_, at_ms| api.runtime.prices.cost_usd(model, tokens, at_ms);
    Ok(Json(experiments::report(&experiment_id, &runs, on_fraction, price)))
}
