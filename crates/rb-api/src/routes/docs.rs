//! Routes of the API reference: the OpenAPI document, and a page rendered from it.

use std::sync::LazyLock;

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use rb_view::{api_docs, csp};
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::ApiState;

static DOCUMENT: LazyLock<String> =
    LazyLock::new(|| serde_json::to_string(&super::openapi()).unwrap_or_default());
static PAGE: LazyLock<(String, String)> = LazyLock::new(|| {
    let document: Value = serde_json::from_str(&DOCUMENT).unwrap_or_default();
    let policy = csp::only_inline_style(api_docs::STYLE);
    (api_docs::page(&document), format!("{policy}; frame-ancestors 'none'"))
});

pub(super) fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(document)).routes(routes!(page))
}

/// OpenAPI document of this API.
#[utoipa::path(get, path = "/openapi.json", tag = "server", responses(
    (status = 200, description = "OpenAPI document", body = Object),
))]
async fn document() -> Response {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

/// API reference as a page.
#[utoipa::path(get, path = "/docs", tag = "server", responses(
    (status = 200, description = "HTML page", body = String, content_type = "text/html"),
))]
async fn page() -> Response {
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
    fn the_page_loads_no_resource_and_shows_every_route() {
        let (page, policy) = &*PAGE;
        for outside in ["<script", "src=", "@import", "url(", "http://", "https://", "style=\""] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        let document: Value = serde_json::from_str(&DOCUMENT).unwrap();
        for path in document["paths"].as_object().unwrap().keys() {
            assert!(page.contains(&format!("<code class=\"path\">{path}</code>")), "{path}");
        }
        assert!(!page.contains("href=\"#schema-\""), "a link without a target");
    }
}
