//! Routes of all surfaces, and the middleware around them.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse as _;
use rb_api::path_ids;
use rb_http::error::ApiError;
use tower::ServiceBuilder;
use tower::layer::Layer as _;
use tower::util::{MapRequest, MapRequestLayer};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::timeout::RequestBodyTimeoutLayer;

use crate::app::App;
use crate::middleware::cors::{self, AllowedOrigins};
use crate::middleware::origin_guard::{OriginGuard, origin_guard};
use crate::middleware::rate_limit::{RateLimit, RateLimits, rate_limit};
use crate::middleware::request_context::request_context;

/// Service that answers every request.
pub type HttpService = MapRequest<Router, fn(Request) -> Request>;

/// Builds the service that answers every request.
///
/// Each request passes these layers, outermost first:
///
/// 1. `path_ids`: percent-encodes slashes in ids, which routes match as one segment.
/// 2. `request_context`: assigns the request id, opens the tracing span, updates the request metrics.
/// 3. `catch_panic`: answers a panic of an inner layer or a handler with 500.
/// 4. `origin_guard`: rejects other hosts and origins while the server needs no key.
/// 5. `cors`: answers preflight requests of the allowed origins.
/// 6. `body_timeout`: ends a request body that stalls.
/// 7. `rate_limit`: limits the requests per key; health checks and API docs are exempt.
///
/// All of them apply to all surfaces. None fails by itself: the only request of an agent that a layer rejects is one
/// above the rate limit, and the gateway answers it in the provider's error format.
pub fn service(app: &App) -> HttpService {
    let config = &app.config;
    let origins = AllowedOrigins::new(&config.cors_origins, config.cors_dev);
    let guard = OriginGuard {
        runtime: Arc::clone(&app.runtime),
        public_url: config.public_url.clone(),
        origins: origins.clone(),
    };
    let path_ids = MapRequestLayer::new(path_ids::encode as fn(Request) -> Request);
    let request_context = from_fn_with_state(Arc::clone(&app.runtime), request_context);
    let catch_panic = CatchPanicLayer::custom(|_| ApiError::Internal.into_response());
    let origin_guard = from_fn_with_state(Arc::new(guard), origin_guard);
    let cors = cors::layer(origins);
    let body_timeout = RequestBodyTimeoutLayer::new(config.request_timeout);
    let layers = ServiceBuilder::new()
        .layer(request_context)
        .layer(catch_panic)
        .layer(origin_guard)
        .option_layer(cors)
        .layer(body_timeout);
    path_ids.layer(routes(app).layer(layers))
}

/// All routes. Those of the API exist with and without `/v1`, since the SDKs call them without.
fn routes(app: &App) -> Router {
    let limits = RateLimits::new(app.config.rate_per_sec, app.config.rate_burst);
    let rate_limit =
        |reject| from_fn_with_state(RateLimit { limits: limits.clone(), reject }, rate_limit);
    let api = rb_api::authenticated_routes(Arc::clone(&app.api))
        .layer(rate_limit(|_| ApiError::TooManyRequests.into_response()))
        .merge(rb_api::open_routes(Arc::clone(&app.api)));
    let gateway = rb_gateway::routes(Arc::clone(&app.gateway));
    let dashboard = rb_dashboard::routes(Arc::clone(&app.dashboard));
    Router::new()
        .merge(api.clone())
        .nest("/v1", api)
        .merge(gateway.layer(rate_limit(rb_gateway::rate_limited)))
        .merge(dashboard.layer(rate_limit(|_| rb_dashboard::problem(ApiError::TooManyRequests))))
        .fallback(|| async {
            ApiError::NotFound("there is no such route; `/docs` lists the routes").into_response()
        })
        .method_not_allowed_fallback(|| async { ApiError::MethodNotAllowed.into_response() })
}
