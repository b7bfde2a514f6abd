//! What every request passes: it gets an id, its caller is found, the key's allowance is looked at, and it is counted.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRequestParts as _, MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::app::Shared;
use rb_http::Authenticated;
use rb_http::error::ApiError;
use rb_runtime::auth::Caller;
use rb_runtime::metrics::{RequestLabels, RouteLabels};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID_CHARS_MAX: usize = 128;
/// When more callers than this were seen, those at rest are forgotten.
const CALLERS_REMEMBERED: usize = 10_000;

/// The allowance of each key.
pub(crate) struct Rates {
    limiter: DefaultKeyedRateLimiter<Arc<str>>,
}

impl Rates {
    pub(crate) fn new(per_sec: u32, burst: u32) -> Self {
        let at_least_one = |count: u32| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(at_least_one(per_sec)).allow_burst(at_least_one(burst));
        Self { limiter: RateLimiter::keyed(quota) }
    }

    fn allow(&self, caller: &Caller) -> bool {
        if self.limiter.len() > CALLERS_REMEMBERED {
            self.limiter.retain_recent();
        }
        self.limiter.check_key(&caller.name).is_ok()
    }
}

/// Runs around every route of the API.
pub(crate) async fn around(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str);
    let route = route.strip_prefix("/v1").unwrap_or(route).to_owned();
    let method = request.method().clone();
    let id = request_id(&request);
    let mut response = match admit(&app, request).await {
        Ok(request) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    let status = response.status().as_u16();
    let seconds = begun.elapsed().as_secs_f64();
    tracing::debug!(%method, route, status, seconds, id = id.to_str().unwrap_or_default(), "answered");
    if status >= 500 {
        tracing::error!(%method, route, status, id = id.to_str().unwrap_or_default(), "failed");
    }
    let labels = RequestLabels { route: route.clone(), status };
    app.runtime.metrics.requests.get_or_create(&labels).inc();
    app.runtime.metrics.request_seconds.get_or_create(&RouteLabels { route }).observe(seconds);
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// Finds the caller and takes one from its allowance.
async fn admit(app: &Shared, request: Request) -> Result<Request, ApiError> {
    let (mut parts, body) = request.into_parts();
    let Authenticated(caller) = Authenticated::from_request_parts(&mut parts, &app.api).await?;
    if !app.rates.allow(&caller) {
        return Err(ApiError::TooManyRequests);
    }
    Ok(Request::from_parts(parts, body))
}

/// The client's own id, if it is short and plain; else a new one.
fn request_id(request: &Request) -> HeaderValue {
    let given = request.headers().get(REQUEST_ID).filter(|id| {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
        !id.is_empty() && id.len() <= REQUEST_ID_CHARS_MAX && id.as_bytes().iter().all(plain)
    });
    given.cloned().unwrap_or_else(|| {
        let id = uuid::Uuid::now_v7().simple().to_string();
        HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("none"))
    })
}
