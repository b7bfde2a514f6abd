//! What agents learned about codebases.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use maud::html;

use super::layout;
use super::visitor::Visitor;
use crate::app::Shared;
use crate::clock::day_of;
use crate::clock::iso_day;
use crate::error::ApiResult;
use crate::view::text::{Shown, name};

pub(super) async fn page(
    State(app): State<Shared>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    draw(&app, &visitor, &query.unwrap_or_default()).await.unwrap_or_else(layout::problem)
}

async fn draw(app: &Shared, visitor: &Visitor, query: &str) -> ApiResult<Response> {
    let chosen = form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "codebase")
        .map(|(_, value)| value.into_owned());
    let codebases = app.store.codebases(&visitor.caller.scope(None, None)).await?;
    let (org, _) = visitor.caller.home(None, None);
    let found = match &chosen {
        Some(codebase) => app.store.findings(&org, codebase).await?,
        None => Vec::new(),
    };
    let address = |codebase: &str| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("codebase", codebase);
        format!("/ui/findings?{}", query.finish())
    };
    let body = html! {
        h1 { "Findings" }
        p.lead { "What agents learned about a codebase and passed on to the next." }
        @if codebases.is_empty() { p.note { "There is none yet." } }
        ul { @for codebase in &codebases { li { a href=(address(codebase)) { (name(codebase)) } } } }
        @if let Some(codebase) = &chosen {
            h2 { (name(codebase)) }
            @if found.is_empty() { p.note { "Nothing is known of it." } }
            @for finding in &found {
                div.card {
                    p { (Shown(&finding.content, 4_000)) }
                    p.soft { (name(&finding.file_path)) " · " (name(&finding.finding_type)) " · " (iso_day(day_of(finding.created_ms))) }
                }
            }
        }
    };
    Ok(layout::page(visitor, "/ui/findings", "Findings", &body))
}
