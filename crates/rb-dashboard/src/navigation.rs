//! Pages with the navigation of a visitor.

use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

use crate::PAGES;
use crate::layout::document;
use crate::visitor::Visitor;

/// A page for a visitor. `path` is the page of the navigation that it belongs to.
pub(crate) fn page(visitor: &Visitor, path: &str, title: &str, body: &Markup) -> Response {
    let pages = PAGES.iter().filter(|page| visitor.caller.is_operator() || !page.is_operators);
    let top = html! {
        a.skip href="#content" { "To the content" }
        header.top {
            nav aria-label="Pages" {
                a.brand href="/" { img src="/ui/icon.svg" alt=""; "ReasonBlocks" }
                @for page in pages {
                    a.page href=(page.path) aria-current=[(page.path == path).then_some("page")] { (page.name) }
                }
                @if visitor.is_signed_in {
                    form method="post" action="/ui/sign-out" { (visitor.token()) button.plain { "Sign out" } }
                }
            }
        }
    };
    document(StatusCode::OK, title, &top, body)
}
