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

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::StatusCode;

    use super::*;
    use crate::config::RawConfig;
    use crate::trial::Trial;

    async fn status(trial: &Trial, method: Method, host: &str, origin: &str) -> StatusCode {
        let mut request = Request::builder().method(method).uri("/v1/score").header("host", host);
        if !origin.is_empty() {
            request = request.header("origin", origin);
        }
        let body = Body::from(r#"{"thought": "x"}"#);
        trial.browse(request.body(body).unwrap()).await.status
    }

    #[tokio::test]
    async fn an_open_server_answers_to_its_own_names_and_pages_alone() {
        let open = Trial::with(RawConfig {
            cors_allowed_origins: vec!["https://friend.example".to_owned()],
            public_url: "https://rb.example".to_owned(),
            ..RawConfig::default()
        })
        .await;
        for host in ["localhost:9000", "127.0.0.1:9000", "[::1]:9000", "10.0.0.7", "rb.example"] {
            assert_eq!(status(&open, Method::POST, host, "").await, StatusCode::OK, "{host}");
        }
        for host in ["evil.example:9000", "127.0.0.1.evil.example", "localhost.evil", "[evil]:1"] {
            for method in [Method::GET, Method::POST] {
                assert_eq!(status(&open, method, host, "").await, StatusCode::FORBIDDEN, "{host}");
            }
        }
        for (origin, expected) in [
            ("http://localhost:9000", StatusCode::OK),
            ("https://friend.example", StatusCode::OK),
            ("http://localhost:3000", StatusCode::FORBIDDEN),
            ("https://evil.example", StatusCode::FORBIDDEN),
            ("null", StatusCode::FORBIDDEN),
        ] {
            let told = status(&open, Method::POST, "localhost:9000", origin).await;
            assert_eq!(told, expected, "{origin}");
        }
    }

    #[tokio::test]
    async fn a_server_with_keys_lets_the_key_decide() {
        let closed = Trial::new().await;
        let told = status(&closed, Method::POST, "rb.example", "https://rb.example").await;
        assert_eq!(told, StatusCode::UNAUTHORIZED);
    }
}
