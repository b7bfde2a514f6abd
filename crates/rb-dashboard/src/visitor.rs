//! Visitors of the dashboard.
//!
//! A session is a random id in an `HttpOnly`, `SameSite=Strict` cookie. Its key stays in memory and is checked on every
//! request, so that revoking a key ends its sessions.

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

/// Visitor with access.
pub(crate) struct Visitor {
    pub(crate) caller: Caller,
    pub(crate) is_signed_in: bool,
    token: String,
}

impl Visitor {
    /// Hidden form field with the CSRF token.
    pub(crate) fn token(&self) -> Markup {
        html! { input type="hidden" name=(FIELD) value=(self.token); }
    }

    /// Checks the CSRF token of a form.
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

/// Value of `Set-Cookie`; secure if the browser uses HTTPS.
pub(crate) fn kept(
    dashboard: &DashboardState,
    headers: &HeaderMap,
    name: &str,
    seconds: u64,
) -> String {
    let secure = if is_https(dashboard, headers) { "; Secure" } else { "" };
    format!("{COOKIE_NAME}={name}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
}

/// Returns `true` if browsers use HTTPS, according to the configuration or to a reverse proxy.
fn is_https(dashboard: &DashboardState, headers: &HeaderMap) -> bool {
    let forwarded = headers.get("x-forwarded-proto").and_then(|value| value.to_str().ok());
    let forwarded = forwarded.and_then(|value| value.split(',').next());
    dashboard.public_url.as_ref().is_some_and(|url| url.starts_with("https://"))
        || forwarded.is_some_and(|value| value.trim().eq_ignore_ascii_case("https"))
}
