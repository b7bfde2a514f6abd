//! Who is looking, and how they sign in and out.
//!
//! A session is a random name in a cookie that no script can read and no other site can send. The key that it stands
//! for stays in memory and is looked at on every request, so a revoked key ends its sessions.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, State};
use axum::http::header::{COOKIE, LOCATION, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};
use subtle::ConstantTimeEq as _;

use super::form::Form;
use super::layout;
use crate::app::Shared;
use crate::auth::Caller;
use crate::error::{ApiError, ApiResult};

const COOKIE_NAME: &str = "rb_session";
const FIELD: &str = "csrf";
/// A session that was not used for so long is over.
const IDLE_MAX: Duration = Duration::from_hours(12);
/// More sessions than this are not kept: the oldest goes.
const SESSIONS_MAX: usize = 1_000;

/// Whoever is signed in.
pub(crate) struct Sessions {
    open: Mutex<HashMap<String, Session>>,
    /// The token of forms while the server needs no key.
    token: Option<String>,
}

#[derive(Clone)]
struct Session {
    secret: String,
    token: String,
    used: Instant,
}

/// A name that nobody can guess; `None` if the machine has no chance to give.
fn random() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    let mut name = String::with_capacity(64);
    for byte in bytes {
        let _ = write!(name, "{byte:02x}"); // a string takes it
    }
    Some(name)
}

impl Default for Sessions {
    fn default() -> Self {
        Self { open: Mutex::default(), token: random() }
    }
}

impl Sessions {
    fn begin(&self, secret: &str) -> Option<String> {
        let (name, token) = (random()?, random()?);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, session| session.used.elapsed() < IDLE_MAX);
        if open.len() >= SESSIONS_MAX {
            let oldest = open.iter().min_by_key(|(_, session)| session.used);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                open.remove(&oldest);
            }
        }
        open.insert(
            name.clone(),
            Session { secret: secret.to_owned(), token, used: Instant::now() },
        );
        Some(name)
    }

    fn get(&self, name: &str) -> Option<Session> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let session = open.get_mut(name).filter(|session| session.used.elapsed() < IDLE_MAX)?;
        session.used = Instant::now();
        Some(session.clone())
    }

    fn end(&self, name: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

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
        let secret = session.as_ref().map(|session| session.secret.as_str());
        match app.keys.caller(secret, &*app.store).await {
            Ok(caller) => {
                let is_signed_in = session.is_some();
                let token =
                    session.map(|session| session.token).or_else(|| app.sessions.token.clone());
                let token = token.ok_or_else(|| layout::problem(ApiError::Internal))?;
                Ok(Self { caller, is_signed_in, token })
            }
            Err(ApiError::Unauthorized(_)) => Err(to("/ui/sign-in")),
            Err(error) => Err(layout::problem(error)),
        }
    }
}

fn cookie(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value.to_owned())
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
        h1 { "ReasonBlocks" }
        p.lead { "Sign in with a key of this server. " code { "rb keys create" } " makes one." }
        @if !said.is_empty() { p.notice role="alert" { (said) } }
        form.stack method="post" action="/ui/sign-in" {
            label { "Key" input type="password" name="key" autocomplete="current-password" required autofocus; }
            div { button.main { "Sign in" } }
        }
    };
    layout::bare(status, "Sign in", &body)
}

pub(super) async fn sign_in(State(app): State<Shared>, form: Form) -> Response {
    let secret = form.get("key");
    match app.keys.caller(Some(secret), &*app.store).await {
        Ok(_) => match app.sessions.begin(secret) {
            Some(name) => {
                let cookie = format!(
                    "{COOKIE_NAME}={name}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}",
                    IDLE_MAX.as_secs()
                );
                ([(SET_COOKIE, cookie)], to("/")).into_response()
            }
            None => layout::problem(ApiError::Internal),
        },
        Err(ApiError::Unauthorized(said)) => asking(StatusCode::UNAUTHORIZED, said),
        Err(error) => layout::problem(error),
    }
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
    let gone = format!("{COOKIE_NAME}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    ([(SET_COOKIE, gone)], to("/")).into_response()
}
