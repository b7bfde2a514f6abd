//! Pages with the navigation of a visitor.

use axum::Router;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

use crate::layout::document;
use crate::visitor::Visitor;
use crate::{DashboardState, PAGES};

/// Page of the navigation.
pub struct Page {
    pub name: &'static str,
    pub path: &'static str,
    /// Hides the page from visitors without an operator's key.
    pub operator_only: bool,
    /// Routes of the page and its forms.
    pub(crate) routes: fn() -> Router<DashboardState>,
}

/// Renders a page. `path` is its page in the navigation.
pub(crate) fn page(visitor: &Visitor, path: &str, title: &str, body: &Markup) -> Response {
    let pages = PAGES.iter().filter(|page| visitor.caller.is_operator() || !page.operator_only);
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
