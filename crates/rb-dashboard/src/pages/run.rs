//! Page of one run with a form for operator messages; a script updates the page while the run continues.

use axum::Router;
use axum::routing::{get, post};
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse as _, Response, Sse};
use maud::{Markup, html};
use rb_store::{RunRow, StepRow, is_running};
use rb_view::StateReplay;
use serde_json::Value;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::BroadcastStream;

use super::runs::address;
use crate::DashboardState;
use crate::form::{Form, field};
use crate::layout;
use crate::layout::to;
use crate::navigation;
use crate::visitor::Visitor;
use rb_http::error::{ApiError, ApiResult};
use rb_runtime::clock::now_ms;
use rb_runtime::operator_messages::MAX_MESSAGE_CHARS;
use rb_view::text::{EscapedText, grouped};

pub(crate) fn routes() -> Router<DashboardState> {
    Router::new()
        .route("/ui/run", get(page))
        .route("/ui/run/steer", post(steer))
        .route("/ui/stream", get(stream))
}

/// Maximum number of steps per page; a long run opens at its latest steps.
const STEPS_MAX: u32 = 400;
const ALIVE_EVERY: Duration = Duration::from_secs(15);

async fn page(
    State(dashboard): State<DashboardState>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    draw(&dashboard, &visitor, &query.unwrap_or_default()).await.unwrap_or_else(layout::problem)
}

async fn draw(dashboard: &DashboardState, visitor: &Visitor, query: &str) -> ApiResult<Response> {
    let scope = visitor.caller.scope(field(query, "org").as_deref(), None);
    let run_id = field(query, "id").unwrap_or_default();
    let found = dashboard.runtime.store.run(&scope, &run_id).await?;
    let row = found.ok_or(ApiError::NotFound("there is no such run"))?;
    let count = u32::try_from(row.step_count).unwrap_or(u32::MAX);
    let asked = field(query, "from").and_then(|from| from.parse().ok());
    let from = asked.unwrap_or_else(|| count.saturating_sub(STEPS_MAX));
    let steps = dashboard.runtime.store.steps(&row.run, from, STEPS_MAX).await?;
    let states = states_before(dashboard, &row, &steps).await?;
    let mut view = rb_view::from_store(&row, &steps, states);
    view.is_running = is_running(row.outcome.as_deref(), row.seen_ms, now_ms());
    let is_live = row.finished_ms.is_none();
    let waiting =
        if is_live { dashboard.runtime.messages.pending_texts(&row.run).await } else { Vec::new() };
    let between = html! {
        @if is_live { (steering(&waiting, visitor, &row)) }
        div data-part="pages" { (pages(&row, from, count)) }
    };
    let body = html! {
        nav.trail aria-label="Where this is" {
            a href="/" { "Runs" }
            @if is_live {
                span.live role="status" data-live=(row.run.run_id) data-live-org=(row.run.org) { "reload to see more" }
            }
        }
        (rb_view::run_with(&view, "", &between))
    };
    Ok(navigation::page(visitor, "/", &rb_view::title(&view), &body))
}

/// Replays the steps before this page if rows on it were stored without a state.
async fn states_before(
    dashboard: &DashboardState,
    run: &RunRow,
    page: &[StepRow],
) -> ApiResult<StateReplay> {
    let mut states = StateReplay::default();
    if !StateReplay::is_needed(page) {
        return Ok(states);
    }
    let end = page.first().map_or(0, |row| row.step_index);
    let mut next = 0;
    while next < end {
        let rows = dashboard.runtime.store.steps(&run.run, next, STEPS_MAX).await?;
        let Some(last) = rows.last() else { break };
        next = last.step_index.saturating_add(1);
        for row in rows.iter().take_while(|row| row.step_index < end) {
            states.observe(row);
        }
    }
    Ok(states)
}

/// Renders the links to the other pages of a long run.
fn pages(row: &RunRow, from: u32, count: u32) -> Markup {
    let here = address(&row.run);
    let (before, after) = (from.saturating_sub(STEPS_MAX), from.saturating_add(STEPS_MAX));
    html! {
        @if count > STEPS_MAX {
            p.note { "Steps from " (grouped(from.into())) " on, of " (grouped(row.step_count)) ". "
                @if from > 0 { a href={ (here) "&from=" (before) } rel="prev" { "Earlier" } " " }
                @if after < count { a href={ (here) "&from=" (after) } rel="next" { "Later" } } }
        }
    }
}

/// Renders the form for operator messages.
fn steering(waiting: &[String], visitor: &Visitor, row: &RunRow) -> Markup {
    let is_only_watched = row.metadata.get("mode").and_then(Value::as_str) == Some("observe");
    html! {
        section.steer aria-labelledby="steer-title" {
            h2 id="steer-title" { "Steer it by hand" }
            form.stack method="post" action="/ui/run/steer" {
                (visitor.token())
                input type="hidden" name="id" value=(row.run.run_id);
                input type="hidden" name="org" value=(row.run.org);
                label { "What the agent should know, with its next model call"
                    textarea name="text" maxlength=(MAX_MESSAGE_CHARS) rows="2" required {} }
                div.row { button.main { "Say it" }
                    span.soft { "Reaches agents behind the gateway, the walk, and " code { "evaluate" } " with a run id." } }
            }
            @if is_only_watched { p.note { "The gateway only watches this run: what is said waits until it is steered." } }
            div data-part="waiting" role="status" {
                @if !waiting.is_empty() {
                    p.soft { "Waits for the next model call:" }
                    @for words in waiting { blockquote { (EscapedText(words, MAX_MESSAGE_CHARS)) } }
                }
            }
        }
    }
}

async fn steer(State(dashboard): State<DashboardState>, visitor: Visitor, form: Form) -> Response {
    let said = async {
        visitor.check(&form)?;
        let scope = visitor.caller.scope(Some(form.get("org")), None);
        let messages = &dashboard.runtime.messages;
        Ok(messages.send(&scope, form.get("id"), form.get("text")).await?)
    };
    match said.await {
        Ok((run, _)) => to(&format!("{}#steer-title", address(&run))),
        Err(error) => layout::problem(error),
    }
}

/// Streams every stored step that the visitor may see.
async fn stream(
    State(dashboard): State<DashboardState>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    let org = field(&query.unwrap_or_default(), "org");
    let scope = visitor.caller.scope(org.as_deref(), None);
    let steps =
        BroadcastStream::new(dashboard.runtime.events.subscribe()).filter_map(move |event| {
            let event = event.ok().filter(|event| event.is_in(&scope))?; // a slow listener misses some
            Event::default().event("step").json_data(&event).ok().map(Ok::<_, Infallible>)
        });
    let ready = tokio_stream::once(Ok(Event::default().event("ready").data("{}")));
    Sse::new(ready.chain(steps)).keep_alive(KeepAlive::new().interval(ALIVE_EVERY)).into_response()
}
