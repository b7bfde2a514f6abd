//! Findings of agents about codebases.

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};
use rb_store::{Change, FindingRow};

use crate::DashboardState;
use crate::form::{Form, field};
use crate::layout;
use crate::layout::to;
use crate::navigation::{self, Page};
use crate::visitor::Visitor;
use rb_http::error::{ApiError, ApiResult};
use rb_runtime::clock::{day_of, format_day};
use rb_view::text::{EscapedText, counted, name};

pub(crate) const PAGE: Page =
    Page { name: "Findings", path: "/ui/findings", operator_only: false, routes };

fn routes() -> Router<DashboardState> {
    Router::new().route("/ui/findings", get(page)).route("/ui/findings/delete", post(delete))
}

/// Maximum number of findings per codebase, latest first.
const SHOWN_MAX: usize = 500;

async fn page(
    State(dashboard): State<DashboardState>,
    visitor: Visitor,
    RawQuery(query): RawQuery,
) -> Response {
    draw(&dashboard, &visitor, &query.unwrap_or_default()).await.unwrap_or_else(layout::problem)
}

fn address(codebase: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("codebase", codebase);
    format!("/ui/findings?{}", query.finish())
}

async fn draw(dashboard: &DashboardState, visitor: &Visitor, query: &str) -> ApiResult<Response> {
    let codebases = dashboard.runtime.store.codebases(&visitor.caller.scope(None, None)).await?;
    let chosen = field(query, "codebase").or_else(|| codebases.first().cloned());
    let (org, _) = visitor.caller.org_and_project(None, None);
    let found = match &chosen {
        Some(codebase) => dashboard.runtime.store.findings(&org, codebase).await?,
        None => Vec::new(),
    };
    let body = html! {
        h1 { "Findings" }
        p.lead { "What agents learned about a codebase and passed on to the next." }
        @if codebases.is_empty() { p.note { "There is none yet." } }
        nav.choices aria-label="Codebases" { @for codebase in &codebases {
            a href=(address(codebase)) aria-current=[(chosen.as_ref() == Some(codebase)).then_some("true")] { (name(codebase)) } } }
        @if let Some(codebase) = &chosen {
            section {
                h2 { (name(codebase)) " " span.count { (found.len()) } }
                @if found.is_empty() { p.note { "Nothing is known of it." } }
                @if found.len() > SHOWN_MAX { p.note { "The newest " (counted(SHOWN_MAX, "finding")) "." } }
                @for finding in found.iter().rev().take(SHOWN_MAX) { (card(visitor, finding)) }
            }
        }
    };
    Ok(navigation::page(visitor, "/ui/findings", "Findings", &body))
}

fn card(visitor: &Visitor, finding: &FindingRow) -> Markup {
    html! {
        div.card {
            p { (EscapedText(&finding.content, 4_000)) }
            div.row.soft {
                span.mark { (name(&finding.finding_type)) }
                @if !finding.file_path.is_empty() { code { (name(&finding.file_path)) } }
                span { (format_day(day_of(finding.created_ms))) }
                form.end method="post" action="/ui/findings/delete" {
                    (visitor.token())
                    input type="hidden" name="codebase" value=(finding.codebase);
                    input type="hidden" name="id" value=(finding.finding_id);
                    button.plain { "Forget" span.hidden { " this finding" } }
                }
            }
        }
    }
}

async fn delete(State(dashboard): State<DashboardState>, visitor: Visitor, form: Form) -> Response {
    let gone = async {
        visitor.check(&form)?;
        let (org, _) = visitor.caller.org_and_project(None, None);
        let (codebase, finding_id) = (form.get("codebase").to_owned(), form.get("id").to_owned());
        let one =
            Change::DeleteFinding { org: org.clone(), codebase: codebase.clone(), finding_id };
        dashboard.runtime.store.apply(vec![one]).await?;
        dashboard.runtime.findings.invalidate(&org, &codebase);
        Ok::<_, ApiError>(codebase)
    };
    match gone.await {
        Ok(codebase) => to(&address(&codebase)),
        Err(error) => layout::problem(error),
    }
}
