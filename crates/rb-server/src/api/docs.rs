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
use sha2::{Digest as _, Sha256};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Shared;

const STYLE: &str = include_str!("docs/style.css");

/// Both never change while the program runs.
static DOCUMENT: LazyLock<String> =
    LazyLock::new(|| serde_json::to_string(&super::openapi()).unwrap_or_default());
static PAGE: LazyLock<(String, String)> = LazyLock::new(|| {
    let document: Value = serde_json::from_str(&DOCUMENT).unwrap_or_default();
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        base64(&Sha256::digest(STYLE.as_bytes()))
    );
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

/// As content security policies write hashes.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number = three.iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
        let number = number << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = DIGITS[number >> (18 - 6 * place) & 63];
            text.push(if place > three.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_as_in_the_standard() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

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
