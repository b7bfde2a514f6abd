//! One run, as far as it has come; the script asks for it again when a step is stored.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse as _, Response, Sse};
use maud::html;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::BroadcastStream;

use super::layout;
use super::visitor::Visitor;
use crate::app::Shared;
use crate::error::{ApiError, ApiResult};
use crate::view;

/// A longer run shows its newest steps.
const STEPS_MAX: u32 = 2_000;
const ALIVE_EVERY: Duration = Duration::from_secs(15);

fn field(query: &str, wanted: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
}

pub(super) async fn page(
    State(app): State<Shared>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    draw(&app, &visitor, &query.unwrap_or_default()).await.unwrap_or_else(layout::problem)
}

async fn draw(app: &Shared, visitor: &Visitor, query: &str) -> ApiResult<Response> {
    let scope = visitor.caller.scope(field(query, "org").as_deref(), None);
    let run_id = field(query, "id").unwrap_or_default();
    let found = app.store.run(&scope, &run_id).await?;
    let row = found.ok_or(ApiError::NotFound("there is no such run"))?;
    let steps_before = u32::try_from(row.step_count).unwrap_or(u32::MAX).saturating_sub(STEPS_MAX);
    let steps = app.store.steps(&row.run, steps_before, STEPS_MAX).await?;
    let drawn = view::stored(&row, &steps);
    let body = html! {
        p { a href="/" { "All runs" }
            @if row.finished_ms.is_none() {
                span.live role="status" data-live-run=(row.run.run_id) data-live-org=(row.run.org) { "reload to see more" }
            } }
        @if steps_before > 0 { p.note { "The first " (steps_before) " steps are left out; " code { "rb report" } " shows them all." } }
        (view::run(&drawn, ""))
    };
    Ok(layout::page(visitor, "/", &view::title(&drawn), &body))
}

/// Every stored step that the visitor may see, as it is stored.
pub(super) async fn stream(
    State(app): State<Shared>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    let org = field(&query.unwrap_or_default(), "org");
    let scope = visitor.caller.scope(org.as_deref(), None);
    let steps = BroadcastStream::new(app.events.listen()).filter_map(move |event| {
        let event = event.ok().filter(|event| event.is_in(&scope))?; // a slow listener misses some
        Event::default().event("step").json_data(&event).ok().map(Ok::<_, Infallible>)
    });
    let ready = tokio_stream::once(Ok(Event::default().event("ready").data("{}")));
    Sse::new(ready.chain(steps)).keep_alive(KeepAlive::new().interval(ALIVE_EVERY)).into_response()
}
