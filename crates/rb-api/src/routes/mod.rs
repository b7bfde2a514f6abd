//! The routes, one file an area; each area has a `routes()`, and this file merges them.
//!
//! Every route stands under `/v1` and without it, since the SDKs call it without. All of them are described to
//! OpenAPI by the same macro that mounts them, so none can be missing there.

/// The usage meter.
mod billing;
/// The description, for programs and people.
mod docs;
/// Judges a whole trace.
mod evaluate;
/// Request of `evaluate`.
mod evaluate_request;
/// What experiments show.
mod experiments;
/// What agents learned about a codebase.
mod findings;
/// Is it up, and what does it count.
mod health;
/// Recorded runs in.
mod import;
/// Keys, for the operator.
mod keys;
/// Who am I.
mod me;
/// Messages to running agents.
mod operator_messages;
/// Spans of OpenTelemetry.
mod otlp;
/// The pattern library.
mod patterns;
/// Complete traces.
mod post_trace;
/// Weights under a name.
mod profiles;
/// Token counts and models of reported steps.
mod reported_tokens;
/// Runs as they are read.
mod runs;
/// How hard a thought looks.
mod score;
/// The table of monitors.
mod scorers;
/// What happens, as it happens.
mod stream;
/// What agents tell while they work.
mod telemetry;
/// Patterns for a situation.
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

/// The routes that need a caller.
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

/// The routes that need none.
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

/// The description of all routes, under `/v1`.
pub fn openapi() -> OpenApi {
    let versioned = |areas: OpenApiRouter<ApiState>| {
        OpenApiRouter::new().nest("/v1", areas).split_for_parts().1
    };
    crate::openapi::whole(versioned(open_areas()), versioned(areas()))
}
