//! Event stream: one event per stored step, filtered by the scope of the key.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use prometheus_client::metrics::gauge::Gauge;
use serde::Deserialize;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::{Stream, StreamExt as _};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;
use rb_http::Authenticated;
use rb_http::body::Query as Asked;

/// Interval of keep-alive comments, below the idle timeouts of proxies.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(stream))
}

/// Scope of the streamed steps; the scope of the key takes precedence.
#[derive(Debug, Deserialize)]
pub(super) struct StreamQuery {
    org_id: Option<String>,
    project_id: Option<String>,
}

/// Counts a stream while it is open.
struct Open(Gauge);

impl Open {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Sends `ready`, then one `step` for every stored step.
#[utoipa::path(get, path = "/monitor/stream", tag = "telemetry", params(
    ("org_id" = Option<String>, Query),
    ("project_id" = Option<String>, Query),
    ("token" = Option<String>, Query, description = "the key, for browsers, which cannot send headers here"),
), responses(
    (status = 200, body = String, content_type = "text/event-stream"),
))]
async fn stream(
    State(api): State<ApiState>,
    Authenticated(caller): Authenticated,
    Asked(query): Asked<StreamQuery>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let scope = caller.scope(query.org_id.as_deref(), query.project_id.as_deref());
    let open = Open::new(&api.runtime.metrics.streams_open);
    let steps = BroadcastStream::new(api.runtime.events.subscribe()).filter_map(move |event| {
        let _open = &open; // lives as long as the stream
        let event = event.ok().filter(|event| event.is_in(&scope))?; // a slow listener misses some
        Event::default().event("step").json_data(&event).ok().map(Ok)
    });
    let ready = tokio_stream::once(Ok(Event::default().event("ready").data("{}")));
    Sse::new(ready.chain(steps)).keep_alive(KeepAlive::new().interval(ALIVE_EVERY))
}
