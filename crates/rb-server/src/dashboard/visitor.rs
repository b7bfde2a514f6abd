//! Who is looking, and how they sign in and out.
//!
//! A session is a random name in a cookie that no script can read and no other site can send. The key that it stands
//! for stays in memory and is looked at on every request, so a revoked key ends its sessions.

use axum::extract::{FromRequestParts, RawQuery, State};
use axum::http::header::{COOKIE, LOCATION, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};
use subtle::ConstantTimeEq as _;

use super::form::{self, Form};
use super::layout;
use super::sessions::{IDLE_MAX, Who};
use crate::app::Shared;
use rb_http::error::{ApiError, ApiResult};
use rb_runtime::auth::{AuthError, Caller};

const COOKIE_NAME: &str = "rb_session";
const FIELD: &str = "csrf";
const TOO_SOON: &str = "too many attempts; wait a minute and try again";

/// Someone who may look.
pub(super) struct Visitor {
    pub(super) caller: Caller,
    pub(super) is_signed_in: bool,
    token: String,
}

impl Visitor {
    /// The hidden field that says that a form is ours.
    pub(super) fn token(&self) -> Markup {
        html! { input type="hidden" name=(FIELD) value=(self.token); }
    }

    /// Whether a form came from a page of ours.
    pub(super) fn check(&self, form: &Form) -> ApiResult<()> {
        let sent = form.get(FIELD).as_bytes();
        if !sent.is_empty() && bool::from(self.token.as_bytes().ct_eq(sent)) {
            return Ok(());
        }
        Err(ApiError::Forbidden(
            "this form is out of date; go back, load the page again and send it once more",
        ))
    }
}

impl FromRequestParts<Shared> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Response> {
        let session = cookie(&parts.headers).and_then(|name| app.sessions.get(&name));
        let caller = match session.as_ref().map(|session| &session.who) {
            Some(Who::Link) => Ok(Caller::by_link()),
            Some(Who::Key(secret)) => app.keys.caller(Some(secret), &*app.store).await,
            None => app.keys.caller(None, &*app.store).await,
        };
        match caller {
            Ok(caller) => {
                let is_signed_in = session.is_some();
                let token =
                    session.map(|session| session.token).or_else(|| app.sessions.token.clone());
                let token = token.ok_or_else(|| layout::problem(ApiError::Internal))?;
                Ok(Self { caller, is_signed_in, token })
            }
            Err(AuthError::MissingKey | AuthError::UnknownKey | AuthError::RevokedKey) => {
                Err(to("/ui/sign-in"))
            }
            Err(error) => Err(layout::problem(error.into())),
        }
    }
}

fn cookie(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value.to_owned())
}

/// What the browser keeps; over https it never sends it in the clear.
fn kept(app: &Shared, headers: &HeaderMap, name: &str, seconds: u64) -> String {
    let secure = if is_https(app, headers) { "; Secure" } else { "" };
    format!("{COOKIE_NAME}={name}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
}

/// Whether people reach us over https: the operator says so, or whoever stands before us.
fn is_https(app: &Shared, headers: &HeaderMap) -> bool {
    let forwarded = headers.get("x-forwarded-proto").and_then(|value| value.to_str().ok());
    let forwarded = forwarded.and_then(|value| value.split(',').next());
    app.config.public_url.as_ref().is_some_and(|url| url.starts_with("https://"))
        || forwarded.is_some_and(|value| value.trim().eq_ignore_ascii_case("https"))
}

/// Sends the browser elsewhere.
pub(super) fn to(path: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, path)], "See the other page.").into_response()
}

pub(super) async fn sign_in_page() -> Response {
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
fn welcome(app: &Shared, headers: &HeaderMap, who: Who) -> Response {
    match app.sessions.begin(who) {
        Some(name) => {
            let cookie = kept(app, headers, &name, IDLE_MAX.as_secs());
            ([(SET_COOKIE, cookie)], to("/")).into_response()
        }
        None => layout::problem(ApiError::Internal),
    }
}

pub(super) async fn sign_in(State(app): State<Shared>, headers: HeaderMap, form: Form) -> Response {
    if app.sessions.is_too_soon() {
        return asking(StatusCode::TOO_MANY_REQUESTS, TOO_SOON);
    }
    let secret = form.get("key");
    match app.keys.caller(Some(secret), &*app.store).await.map_err(ApiError::from) {
        Ok(_) => welcome(&app, &headers, Who::Key(secret.to_owned())),
        Err(ApiError::Unauthorized(said)) => {
            app.sessions.note_failure();
            asking(StatusCode::UNAUTHORIZED, said)
        }
        Err(error) => layout::problem(error),
    }
}

/// The link that the server printed when it started.
pub(super) async fn enter(
    State(app): State<Shared>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    if app.sessions.is_too_soon() {
        return asking(StatusCode::TOO_MANY_REQUESTS, TOO_SOON);
    }
    let given = form::field(&query.unwrap_or_default(), "link").unwrap_or_default();
    if app.sessions.take_link(&given) {
        return welcome(&app, &headers, Who::Link);
    }
    app.sessions.note_failure();
    let said = "This link was used or is too old. Start the server again for a new one, or sign in with a key.";
    asking(StatusCode::UNAUTHORIZED, said)
}

pub(super) async fn sign_out(
    State(app): State<Shared>,
    visitor: Visitor,
    headers: HeaderMap,
    form: Form,
) -> Response {
    if let Err(error) = visitor.check(&form) {
        return layout::problem(error);
    }
    if let Some(name) = cookie(&headers) {
        app.sessions.end(&name);
    }
    ([(SET_COOKIE, kept(&app, &headers, "", 0))], to("/")).into_response()
}
