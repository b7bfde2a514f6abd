//! Context of a request: its id, its tracing span and its metrics.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use rb_runtime::Runtime;
use rb_runtime::metrics::{RequestLabels, RouteLabels};
use tracing::Instrument as _;
use tracing::field::Empty;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MAX_REQUEST_ID_BYTES: usize = 128;

/// Assigns a request id, opens the span of the request, and updates the request metrics.
///
/// The surfaces record their own fields in the span. The request itself stays unchanged, and a response that has an id,
/// such as a provider's, keeps it.
pub(crate) async fn request_context(
    State(runtime): State<Arc<Runtime>>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str);
    let route = route.strip_prefix("/v1").unwrap_or(route).to_owned();
    let id = request_id(&request);
    let span = tracing::info_span!(
        "request",
        method = %request.method(),
        route,
        id = id.to_str().unwrap_or_default(),
        status = Empty,
        seconds = Empty,
        run_id = Empty,
        dialect = Empty,
        decision = Empty,
        conflicts = Empty,
    );
    let mut response = next.run(request).instrument(span.clone()).await;
    let (status, seconds) = (response.status().as_u16(), started.elapsed().as_secs_f64());
    span.record("status", status).record("seconds", seconds);
    span.in_scope(|| {
        if status >= 500 {
            tracing::warn!("request failed");
        } else {
            tracing::debug!("request completed");
        }
    });
    let metrics = &runtime.metrics;
    metrics.requests.get_or_create(&RequestLabels { route: route.clone(), status }).inc();
    metrics.request_seconds.get_or_create(&RouteLabels { route }).observe(seconds);
    response.headers_mut().entry(REQUEST_ID).or_insert(id);
    response
}

/// Returns the client's id if it is short and printable, and a new one otherwise.
fn request_id(request: &Request) -> HeaderValue {
    let given = request.headers().get(REQUEST_ID).filter(|id| {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
        let id = id.as_bytes();
        (1..=MAX_REQUEST_ID_BYTES).contains(&id.len()) && id.iter().all(is_plain)
    });
    given.cloned().unwrap_or_else(|| {
        let id = uuid::Uuid::now_v7().simple().to_string();
        HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("none"))
    })
}
