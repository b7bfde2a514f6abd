//! What every request passes before it reaches its route, whatever that is.
//!
//! These are plain steps and not layers of the router: a router keeps its layers in a box for each route, and every
//! request would copy that box with all that is in it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use axum::{BoxError, Router, middleware};
use futures_util::FutureExt as _;
use rb_api::path_ids;
use tower::ServiceExt as _;
use tower_http::cors::{AllowOrigin, CorsLayer};
use tower_http::timeout::TimeoutBody;

use crate::app::Shared;
use crate::middleware::{origin_guard, request_context};
use rb_http::error::ApiError;

/// The way in for requests.
pub struct Front {
    app: Shared,
    routes: Router,
}

impl Front {
    pub fn new(app: Shared) -> Self {
        let routes = routes(&app);
        Self { app, routes }
    }

    /// Answers a request. A panic on the way costs this answer and nothing else.
    pub async fn answer<B>(&self, request: Request<B>) -> Response
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let request = path_ids::encode(request);
        let stranger = origin_guard::stranger(&self.app, &request);
        if let Some(why) = stranger
            && self.app.runtime.is_open().await
        {
            return ApiError::Forbidden(why).into_response();
        }
        let within = self.app.config.request_timeout;
        let request = request.map(|body| Body::new(TimeoutBody::new(within, body)));
        let routed = AssertUnwindSafe(self.routes.clone().oneshot(request)).catch_unwind();
        match routed.await {
            Ok(Ok(response)) => response,
            Err(_) => ApiError::Internal.into_response(),
        }
    }
}

/// All routes. Those of the API exist with and without `/v1`, since the SDKs call them without.
fn routes(app: &Shared) -> Router {
    let around = middleware::from_fn_with_state(Shared::clone(app), request_context::around);
    let api = rb_api::authenticated_routes(Arc::clone(&app.api))
        .route_layer(around)
        .merge(rb_api::open_routes(Arc::clone(&app.api)));
    let routes = Router::new()
        .merge(api.clone())
        .nest("/v1", api)
        .merge(rb_gateway::routes(Arc::clone(&app.gateway)))
        .merge(rb_dashboard::routes(Arc::clone(&app.dashboard)))
        .fallback(|| async {
            ApiError::NotFound("there is no such route; `/docs` lists the routes").into_response()
        })
        .method_not_allowed_fallback(|| async { ApiError::MethodNotAllowed.into_response() });
    match cors(app) {
        Some(cors) => routes.layer(cors),
        None => routes,
    }
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
mod tests {
    use super::*;

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
