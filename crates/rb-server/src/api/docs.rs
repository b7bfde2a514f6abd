//! The description of the routes: as OpenAPI for programs, as one page for people.
//!
//! The page is drawn here from the same document, with its style inside: it loads nothing, runs nothing, and its
//! content security policy holds it to that.

/// From the OpenAPI document to HTML.
mod page;

use std::sync::LazyLock;

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Shared;
use crate::policy;

const STYLE: &str = include_str!("docs/style.css");

/// Both never change while the program runs.
static DOCUMENT: LazyLock<String> =
    LazyLock::new(|| serde_json::to_string(&super::openapi()).unwrap_or_default());
static PAGE: LazyLock<(String, String)> = LazyLock::new(|| {
    let document: Value = serde_json::from_str(&DOCUMENT).unwrap_or_default();
    let policy = format!("{}; frame-ancestors 'none'", policy::one_style(STYLE));
    (page::page(&document, STYLE), policy)
});

pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(document)).routes(routes!(people))
}

/// This description, as OpenAPI.
#[utoipa::path(get, path = "/openapi.json", tag = "server", responses(
    (status = 200, description = "an OpenAPI document", body = Object),
))]
async fn document() -> Response {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

/// This description, as a page.
#[utoipa::path(get, path = "/docs", tag = "server", responses(
    (status = 200, description = "a page", body = String, content_type = "text/html"),
))]
async fn people() -> Response {
    let (page, policy) = &*PAGE;
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, policy.as_str()),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, page.as_str()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_nothing_and_shows_every_route() {
        let (page, policy) = &*PAGE;
        for outside in ["<script", "src=", "@import", "url(", "http://", "https://", "style=\""] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        let document: Value = serde_json::from_str(&DOCUMENT).unwrap();
        for path in document["paths"].as_object().unwrap().keys() {
            assert!(page.contains(&format!("<code class=\"path\">{path}</code>")), "{path}");
        }
        assert!(!page.contains("href=\"#schema-\""), "a link without an end");
    }
}
