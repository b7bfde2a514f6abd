//! Routes, one file per area; each area exports `routes()`, and this file merges them.
//!
//! The macro that mounts a route also describes it in the OpenAPI document.

/// The usage meter.
mod billing;
/// API reference.
mod docs;
/// Assessment of a trace.
mod evaluate;
/// Request of `evaluate`.
mod evaluate_request;
/// Experiment reports.
mod experiments;
/// Findings about codebases.
mod findings;
/// Health and metrics.
mod health;
/// Import of recorded runs.
mod import;
/// API keys.
mod keys;
/// Caller of a key.
mod me;
/// Messages to running agents.
mod operator_messages;
/// OpenTelemetry traces.
mod otlp;
/// The pattern library.
mod patterns;
/// Complete traces.
mod post_trace;
/// Monitor weights by name.
mod profiles;
/// Token counts and models of reported steps.
mod reported_tokens;
/// Queries of runs.
mod runs;
/// Difficulty score of a thought.
mod score;
/// List of monitors.
mod scorers;
/// Event stream.
mod stream;
/// Reported runs and steps.
mod telemetry;
/// Pattern retrieval.
mod traces;
/// The walk of a run over HTTP.
mod walk;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_extractor_with_state;
use rb_http::Authenticated;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::{Api, ApiState};

/// Routes that need a key.
fn areas() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .merge(evaluate::routes())
        .merge(walk::routes())
        .merge(operator_messages::routes())
        .merge(telemetry::routes())
        .merge(stream::routes())
        .merge(otlp::routes())
        .merge(traces::routes())
        .merge(post_trace::routes())
        .merge(score::routes())
        .merge(patterns::routes())
        .merge(billing::routes())
        .merge(experiments::routes())
        .merge(findings::routes())
        .merge(import::routes())
        .merge(keys::routes())
        .merge(me::routes())
        .merge(profiles::routes())
        .merge(runs::routes())
        .merge(scorers::routes())
}

/// Routes that need no key.
fn open_areas() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().merge(health::routes()).merge(docs::routes())
}

/// Routes that need a key; a request without a valid one reaches none of them.
pub fn authenticated_routes<S>(api: Arc<Api>) -> Router<S> {
    let authenticate = from_extractor_with_state::<Authenticated, _>(Arc::clone(&api));
    areas().split_for_parts().0.route_layer(authenticate).with_state(api)
}

/// Routes that need no key.
pub fn open_routes<S>(api: Arc<Api>) -> Router<S> {
    open_areas().split_for_parts().0.with_state(api)
}

/// OpenAPI document of all routes, under `/v1`.
pub fn openapi() -> OpenApi {
    let versioned = |areas: OpenApiRouter<ApiState>| {
        OpenApiRouter::new().nest("/v1", areas).split_for_parts().1
    };
    crate::openapi::whole(versioned(open_areas()), versioned(areas()))
}
