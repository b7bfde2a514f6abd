//! Sign-in and sign-out.

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use maud::html;
use rb_http::error::ApiError;

use crate::DashboardState;
use crate::form::{self, Form};
use crate::layout::{self, to};
use crate::sessions::{SESSION_TTL, Who};
use crate::visitor::{Visitor, cookie, kept};

pub(crate) fn routes() -> Router<DashboardState> {
    Router::new()
        .route("/ui/sign-in", get(sign_in_page).post(sign_in))
        .route("/ui/enter", get(enter))
        .route("/ui/sign-out", post(sign_out))
}

const TOO_SOON: &str = "too many attempts; wait a minute and try again";

async fn sign_in_page() -> Response {
    asking(StatusCode::OK, "")
}

fn asking(status: StatusCode, said: &str) -> Response {
    let body = html! {
        div.door {
            h1 { "ReasonBlocks" }
            p.lead { "Sign in with a key of this server. " code { "rb keys create" } " makes one, and the server prints a link that works once when it starts." }
            @if !said.is_empty() { p.notice role="alert" { (said) } }
            form.stack method="post" action="/ui/sign-in" {
                label { "Key" input type="password" name="key" autocomplete="current-password" required autofocus; }
                div { button.main { "Sign in" } }
            }
        }
    };
    layout::bare(status, "Sign in", &body)
}

/// Opens a session and sends the browser to the runs.
fn welcome(dashboard: &DashboardState, headers: &HeaderMap, who: Who) -> Response {
    match dashboard.sessions.begin(who) {
        Some(name) => {
            let cookie = kept(dashboard, headers, &name, SESSION_TTL.as_secs());
            ([(SET_COOKIE, cookie)], to("/")).into_response()
        }
        None => layout::problem(ApiError::Internal),
    }
}

async fn sign_in(
    State(dashboard): State<DashboardState>,
    headers: HeaderMap,
    form: Form,
) -> Response {
    if dashboard.sessions.is_too_soon() {
        return asking(StatusCode::TOO_MANY_REQUESTS, TOO_SOON);
    }
    let secret = form.get("key");
    match dashboard
        .runtime
        .keys
        .caller(Some(secret), &*dashboard.runtime.store)
        .await
        .map_err(ApiError::from)
    {
        Ok(_) => welcome(&dashboard, &headers, Who::Key(secret.to_owned())),
        Err(ApiError::Unauthorized(said)) => {
            dashboard.sessions.note_failure();
            asking(StatusCode::UNAUTHORIZED, said)
        }
        Err(error) => layout::problem(error),
    }
}

/// The link that the server printed when it started.
async fn enter(
    State(dashboard): State<DashboardState>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    if dashboard.sessions.is_too_soon() {
        return asking(StatusCode::TOO_MANY_REQUESTS, TOO_SOON);
    }
    let given = form::field(&query.unwrap_or_default(), "link").unwrap_or_default();
    if dashboard.sessions.take_link(&given) {
        return welcome(&dashboard, &headers, Who::Link);
    }
    dashboard.sessions.note_failure();
    let said = "This link was used or is too old. Start the server again for a new one, or sign in with a key.";
    asking(StatusCode::UNAUTHORIZED, said)
}

async fn sign_out(
    State(dashboard): State<DashboardState>,
    visitor: Visitor,
    headers: HeaderMap,
    form: Form,
) -> Response {
    if let Err(error) = visitor.check(&form) {
        return layout::problem(error);
    }
    if let Some(name) = cookie(&headers) {
        dashboard.sessions.end(&name);
    }
    ([(SET_COOKIE, kept(&dashboard, &headers, "", 0))], to("/")).into_response()
}
