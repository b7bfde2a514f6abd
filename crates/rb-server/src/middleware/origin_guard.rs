//! Protection of a server without keys against DNS rebinding and cross-site requests.
//!
//! Such a server trusts every process of its machine, and a browser on the machine runs pages of other sites. While no
//! key is needed, the `Host` header must be a loopback name or an address (a DNS name could be pointed here by others),
//! and a request that changes data must not have a foreign `Origin`. With keys neither is checked: other sites have no
//! key.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use rb_http::error::ApiError;
use rb_runtime::Runtime;

use super::cors::AllowedOrigins;

const WRONG_HOST: &str = "this server needs no key, so it answers to `localhost` and to addresses only; \
    `rb keys create` makes a key, and `public_url` names another host";
const WRONG_ORIGIN: &str = "this server needs no key, so pages of other sites may change nothing; \
    `cors_allowed_origins` allows an origin, and `rb keys create` makes a key";

/// Settings of the guard.
pub(crate) struct OriginGuard {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) public_url: Option<String>,
    pub(crate) origins: AllowedOrigins,
}

/// Rejects requests of other hosts and origins while the server needs no key.
pub(crate) async fn origin_guard(
    State(guard): State<Arc<OriginGuard>>,
    request: Request,
    next: Next,
) -> Response {
    match guard.reject_reason(&request) {
        Some(reason) if guard.runtime.is_open().await => {
            ApiError::Forbidden(reason).into_response()
        }
        Some(_) | None => next.run(request).await,
    }
}

impl OriginGuard {
    fn reject_reason(&self, request: &Request) -> Option<&'static str> {
        let text = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
        let authority = request.uri().authority().map(Authority::as_str);
        let host = authority.or_else(|| text(HOST));
        let public = self.public_url.as_deref().and_then(|url| Some(url.split_once("://")?.1));
        if host.is_some_and(|host| !is_local_host(host) && Some(host) != public) {
            return Some(WRONG_HOST);
        }
        let origin = text(ORIGIN)?;
        let changes_nothing =
            [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
        let is_same_origin = origin.split_once("://").is_some_and(|(_, from)| Some(from) == host);
        (!changes_nothing && !is_same_origin && !self.origins.allow(origin)).then_some(WRONG_ORIGIN)
    }
}

/// Returns `true` for a `Host` that no foreign DNS server can resolve: an address or a `localhost` name.
fn is_local_host(host: &str) -> bool {
    let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(address, _)| is_address(address));
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let top_level = name.rsplit_once('.').map_or(name, |(_, last)| last);
    top_level.eq_ignore_ascii_case("localhost") || is_address(name)
}
