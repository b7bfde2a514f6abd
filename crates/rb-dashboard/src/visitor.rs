//! Who is looking, and how they sign in and out.
//!
//! A session is a random name in a cookie that no script can read and no other site can send. The key that it stands
//! for stays in memory and is looked at on every request, so a revoked key ends its sessions.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use axum::http::request::Parts;
use axum::response::Response;
use maud::{Markup, html};
use subtle::ConstantTimeEq as _;

use crate::DashboardState;
use crate::form::Form;
use crate::layout::{self, to};
use crate::sessions::Who;
use rb_http::error::{ApiError, ApiResult};
use rb_runtime::auth::{AuthError, Caller};

const COOKIE_NAME: &str = "rb_session";
const FIELD: &str = "csrf";

/// Someone who may look.
pub(crate) struct Visitor {
    pub(crate) caller: Caller,
    pub(crate) is_signed_in: bool,
    token: String,
}

impl Visitor {
    /// The hidden field that says that a form is ours.
    pub(crate) fn token(&self) -> Markup {
        html! { input type="hidden" name=(FIELD) value=(self.token); }
    }

    /// Whether a form came from a page of ours.
    pub(crate) fn check(&self, form: &Form) -> ApiResult<()> {
        let sent = form.get(FIELD).as_bytes();
        if !sent.is_empty() && bool::from(self.token.as_bytes().ct_eq(sent)) {
            return Ok(());
        }
        Err(ApiError::Forbidden(
            "this form is out of date; go back, load the page again and send it once more",
        ))
    }
}

impl FromRequestParts<DashboardState> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        dashboard: &DashboardState,
    ) -> Result<Self, Response> {
        let session = cookie(&parts.headers).and_then(|name| dashboard.sessions.get(&name));
        let caller = match session.as_ref().map(|session| &session.who) {
            Some(Who::Link) => Ok(Caller::by_link()),
            Some(Who::Key(secret)) => {
                dashboard.runtime.keys.caller(Some(secret), &*dashboard.runtime.store).await
            }
            None => dashboard.runtime.keys.caller(None, &*dashboard.runtime.store).await,
        };
        match caller {
            Ok(caller) => {
                let is_signed_in = session.is_some();
                let token = session
                    .map(|session| session.token)
                    .or_else(|| dashboard.sessions.token.clone());
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

pub(crate) fn cookie(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value.to_owned())
}

/// What the browser keeps; over https it never sends it in the clear.
pub(crate) fn kept(
    dashboard: &DashboardState,
    headers: &HeaderMap,
    name: &str,
    seconds: u64,
) -> String {
    let secure = if is_https(dashboard, headers) { "; Secure" } else { "" };
    format!("{COOKIE_NAME}={name}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
}

/// Whether people reach us over https: the operator says so, or whoever stands before us.
fn is_https(dashboard: &DashboardState, headers: &HeaderMap) -> bool {
    let forwarded = headers.get("x-forwarded-proto").and_then(|value| value.to_str().ok());
    let forwarded = forwarded.and_then(|value| value.split(',').next());
    dashboard.public_url.as_ref().is_some_and(|url| url.starts_with("https://"))
        || forwarded.is_some_and(|value| value.trim().eq_ignore_ascii_case("https"))
}
