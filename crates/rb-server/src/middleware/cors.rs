//! Cross-origin requests of browsers.

use std::sync::Arc;

use axum::http::HeaderValue;
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};

/// Origins that may call the server from a browser.
#[derive(Debug, Clone)]
pub(crate) struct AllowedOrigins {
    listed: Arc<[String]>,
    /// Allows pages served from this machine.
    local: bool,
}

impl AllowedOrigins {
    pub(crate) fn new(listed: &[String], local: bool) -> Self {
        Self { listed: listed.into(), local }
    }

    pub(crate) fn allow(&self, origin: &str) -> bool {
        self.listed.iter().any(|allowed| allowed == origin) || (self.local && is_local(origin))
    }

    fn is_empty(&self) -> bool {
        self.listed.is_empty() && !self.local
    }
}

/// Returns the CORS layer; `None` if no other origin is allowed.
pub(crate) fn layer(origins: AllowedOrigins) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let allow_origin = AllowOrigin::predicate(move |origin: &HeaderValue, _| {
        origin.to_str().is_ok_and(|origin| origins.allow(origin))
    });
    let layer = CorsLayer::new()
        .allow_origin(allow_origin)
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request());
    Some(layer)
}

/// Returns `true` for a page served from this machine.
fn is_local(origin: &str) -> bool {
    let Some((_, host)) = origin.split_once("://") else { return false };
    let host = host.rsplit_once(':').map_or(host, |(host, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { host } else { origin }
    });
    ["localhost", "127.0.0.1", "[::1]"].contains(&host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_machine_are_local() {
        let cases = [
            ("http://localhost", true),
            ("http://localhost:3000", true),
            ("http://127.0.0.1:5173", true),
            ("http://[::1]:80", true),
            ("http://localhost.evil.org", false),
            ("https://example.org:3000", false),
            ("null", false),
            ("http://localhost:80a", false),
        ];
        for (origin, expected) in cases {
            assert_eq!(is_local(origin), expected, "{origin}");
        }
    }
}
