//! HTML document of all pages and its content security policy.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, StatusCode};
use axum::response::{Html, IntoResponse as _, Response};
use maud::{DOCTYPE, Markup, html};

use rb_http::error::ApiError;
use rb_view::text::EscapedText;

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
    img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Page without navigation.
pub(crate) fn bare(status: StatusCode, title: &str, body: &Markup) -> Response {
    document(status, title, &html! {}, body)
}

/// Error page.
#[expect(clippy::needless_pass_by_value, reason = "handlers own their error")]
pub fn problem(error: ApiError) -> Response {
    let (status, said) = error.in_words();
    let body = html! { h1 { "That did not work" } p { (EscapedText(&said, 2_000)) } p { a href="/" { "To the runs" } } };
    bare(status, "Problem", &body)
}

/// Redirects with GET.
pub(crate) fn to(path: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, path)], "See the other page.").into_response()
}

pub(crate) fn document(status: StatusCode, title: &str, top: &Markup, body: &Markup) -> Response {
    let whole = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (EscapedText(title, 120)) " – ReasonBlocks" }
                link rel="icon" href="/ui/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/ui/style.css";
                script src="/ui/live.js" defer {}
            }
            body { (top) main id="content" { (body) } }
        }
    };
    let headers = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
        // Forms need a referrer to prove their origin.
        (REFERRER_POLICY, "same-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    (status, headers, Html(whole.into_string())).into_response()
}
