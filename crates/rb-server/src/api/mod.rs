//! The routes, one file an area; each area has a `routes()`, and this file merges them.
//!
//! Every route stands under `/v1` and without it, since the SDKs call it without. All of them are described to
//! OpenAPI by the same macro that mounts them, so none can be missing there.

/// The usage meter.
mod billing;
/// What the description of the routes says as a whole.
mod describe;
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
/// The library from outside.
pub(crate) mod library;
/// Who am I.
mod me;
/// Spans of OpenTelemetry.
mod otlp;
/// Bodies that are long.
mod packed;
/// Weights under a name.
pub(crate) mod profiles;
/// Runs as they are read.
mod runs;
/// How hard a thought looks.
mod score;
/// The table of monitors.
mod scorers;
/// Steers a run by hand.
pub(crate) mod steer;
/// What happens, as it happens.
mod stream;
/// What agents tell while they work.
mod telemetry;
/// What telemetry and the walk have in common.
mod told;
/// Patterns for a situation.
mod traces;
/// Checks of ids and indices.
mod validate;
/// The walk of a run over HTTP.
mod walk;
/// Whole traces in.
mod whole_trace;

use std::sync::Arc;

use axum::Router;
use axum::middleware;
use tower_http::cors::{AllowOrigin, CorsLayer};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::app::Shared;
use crate::{dashboard, doorkeeper};
use axum::response::IntoResponse as _;
use rb_http::error::ApiError;

/// The routes that need a caller.
fn areas() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .merge(evaluate::routes())
        .merge(walk::routes())
        .merge(steer::routes())
        .merge(telemetry::routes())
        .merge(stream::routes())
        .merge(otlp::routes())
        .merge(traces::routes())
        .merge(whole_trace::routes())
        .merge(score::routes())
        .merge(library::routes())
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
fn open_areas() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().merge(health::routes()).merge(docs::routes())
}

/// All routes.
pub(crate) fn router(app: Shared) -> Router {
    let (closed, _) = areas().split_for_parts();
    let (open, _) = open_areas().split_for_parts();
    let around = middleware::from_fn_with_state(Shared::clone(&app), doorkeeper::around);
    let routes = closed.route_layer(around).merge(open);
    let routes = Router::new()
        .merge(routes.clone())
        .nest("/v1", routes)
        .merge(rb_gateway::routes(Arc::clone(&app.gateway)))
        .merge(dashboard::routes())
        .fallback(|| async {
            ApiError::NotFound("there is no such route; `/docs` lists the routes").into_response()
        })
        .method_not_allowed_fallback(|| async { ApiError::MethodNotAllowed.into_response() });
    let cors = cors(&app);
    let routes = routes.with_state(app);
    // Nobody pays for it who lets no page of another origin in.
    match cors {
        Some(cors) => routes.layer(cors),
        None => routes,
    }
}

/// The description of all routes, under `/v1`.
pub fn openapi() -> OpenApi {
    let versioned =
        |areas: OpenApiRouter<Shared>| OpenApiRouter::new().nest("/v1", areas).split_for_parts().1;
    describe::whole(versioned(open_areas()), versioned(areas()))
}

/// What lets pages of other origins in, where any are.
fn cors(app: &Shared) -> Option<CorsLayer> {
    let (origins, dev) = (app.config.cors_origins.clone(), app.config.cors_dev);
    if origins.is_empty() && !dev {
        return None;
    }
    let allowed = AllowOrigin::predicate(move |origin, _| {
        let Ok(origin) = origin.to_str() else { return false };
        origins.iter().any(|allowed| allowed == origin) || (dev && is_local(origin))
    });
    let layer = CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods(tower_http::cors::AllowMethods::mirror_request())
        .allow_headers(tower_http::cors::AllowHeaders::mirror_request());
    Some(layer)
}

/// A page served from this machine.
fn is_local(origin: &str) -> bool {
    let Some((_, host)) = origin.split_once("://") else { return false };
    let host = host.rsplit_once(':').map_or(host, |(host, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { host } else { origin }
    });
    ["localhost", "127.0.0.1", "[::1]"].contains(&host)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod origins {
    use axum::body::Body;
    use axum::http::{Method, Request};

    use super::*;
    use crate::config::RawConfig;
    use crate::trial::{OPERATOR, Trial};

    const FRIEND: &str = "https://friend.example";

    /// What a browser asks before a page of this origin may send something, and what it is told.
    async fn allowed(trial: &Trial, origin: &str) -> Option<String> {
        let asked = Request::builder()
            .method(Method::OPTIONS)
            .uri("/v1/score")
            .header("origin", origin)
            .header("access-control-request-method", "POST");
        let reply = trial.browse(asked.body(Body::empty()).unwrap()).await;
        let told = reply.headers.get("access-control-allow-origin")?;
        Some(told.to_str().unwrap().to_owned())
    }

    #[tokio::test]
    async fn pages_of_named_origins_are_let_in_and_no_others() {
        let raw = |origins: Vec<String>, dev| RawConfig {
            static_keys: vec![OPERATOR.to_owned()],
            cors_allowed_origins: origins,
            cors_allow_dev_origins: dev,
            ..RawConfig::default()
        };
        let (friend, local) = (FRIEND, "http://localhost:3000");
        for (origins, dev, expected) in [
            (vec![FRIEND.to_owned()], false, [true, false]),
            (vec![], true, [false, true]),
            (vec![], false, [false, false]),
        ] {
            let trial = Trial::with(raw(origins, dev)).await;
            for (origin, is_let_in) in [friend, local].into_iter().zip(expected) {
                let told = allowed(&trial, origin).await;
                assert_eq!(told.as_deref(), is_let_in.then_some(origin), "{dev} {origin}");
            }
            assert_eq!(allowed(&trial, "https://evil.example").await, None);
        }
    }

    #[test]
    fn only_pages_of_this_machine_are_local() {
        for local in [
            "http://localhost",
            "http://localhost:3000",
            "http://127.0.0.1:5173",
            "http://[::1]:80",
        ] {
            assert!(is_local(local), "{local}");
        }
        for other in [
            "http://localhost.evil.org",
            "https://example.org:3000",
            "null",
            "http://localhost:80a",
        ] {
            assert!(!is_local(other), "{other}");
        }
    }
}
