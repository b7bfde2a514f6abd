//! An open server trusts whoever is on this machine, and a browser on this machine shows pages of everybody.
//!
//! So while no key is needed, a request must name this machine itself (a name that somebody else's DNS points here is
//! refused), and what changes something must not come from a page of another site. With keys neither matters: no
//! other site has one.

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{Method, Request};

use crate::app::App;

const WRONG_HOST: &str = "this server needs no key, so it answers to `localhost` and to addresses only; \
    `rb keys create` makes a key, and `public_url` names another host";
const WRONG_ORIGIN: &str = "this server needs no key, so pages of other sites may change nothing; \
    `cors_allowed_origins` lets one in, and `rb keys create` makes a key";

/// Why a request may be somebody else's doing: to be refused while the server is open.
pub(crate) fn stranger<B>(app: &App, request: &Request<B>) -> Option<&'static str> {
    let text = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    let authority = request.uri().authority().map(Authority::as_str);
    let host = authority.or_else(|| text(HOST));
    let public = app.config.public_url.as_deref().and_then(|url| Some(url.split_once("://")?.1));
    if host.is_some_and(|host| !is_here(host) && Some(host) != public) {
        return Some(WRONG_HOST);
    }
    let origin = text(ORIGIN)?;
    let is_harmless = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
    let is_same = origin.split_once("://").is_some_and(|(_, from)| Some(from) == host);
    let is_let_in = app.config.cors_origins.iter().any(|allowed| allowed == origin)
        || (app.config.cors_dev && origin.split_once("://").is_some_and(|(_, from)| is_here(from)));
    (!is_harmless && !is_same && !is_let_in).then_some(WRONG_ORIGIN)
}

/// Whether a host with its port is this machine by a name that nobody else can give away.
fn is_here(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => return rest.split_once(']').is_some_and(|(ip, _)| is_address(ip)),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let last = name.rsplit_once('.').map_or(name, |(_, last)| last);
    last.eq_ignore_ascii_case("localhost") || is_address(name)
}

fn is_address(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok()
}
