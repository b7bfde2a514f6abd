//! Keys, for the operator: see, make, revoke.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, html};
use rb_store::Change;

use crate::DashboardState;
use crate::form::Form;
use crate::layout;
use crate::layout::to;
use crate::navigation::{self, Page};
use crate::visitor::Visitor;
use rb_http::error::{ApiError, ApiResult};
use rb_runtime::auth::DEFAULT_ORG;
use rb_runtime::auth::{KeyKind, create_key};
use rb_runtime::clock::{day_of, format_day, now_ms};
use rb_view::text::{line, name};

pub(crate) const PAGE: Page = Page { name: "Keys", path: HERE, operator_only: true, routes };

fn routes() -> Router<DashboardState> {
    Router::new().route(HERE, get(page).post(create)).route("/ui/keys/revoke", post(revoke))
}

const HERE: &str = "/ui/keys";
const CHARS_MAX: usize = 128;

fn operator(visitor: &Visitor) -> ApiResult<()> {
    if visitor.caller.is_operator() {
        return Ok(());
    }
    Err(ApiError::Forbidden(
        "keys are managed by the operator: sign in with a key of `REASONBLOCKS_KEYS`",
    ))
}

async fn page(State(dashboard): State<DashboardState>, visitor: Visitor) -> Response {
    draw(&dashboard, &visitor, None).await.unwrap_or_else(layout::problem)
}

async fn draw(
    dashboard: &DashboardState,
    visitor: &Visitor,
    made: Option<&str>,
) -> ApiResult<Response> {
    operator(visitor)?;
    let keys = dashboard.runtime.store.keys().await?;
    let body = html! {
        h1 { "Keys" }
        @if let Some(secret) = made {
            p.notice role="status" { "Keep it, it is shown this once: " code { (secret) } }
        }
        @if !visitor.is_signed_in { p.note { "This server is open to this machine. The first key closes it: from then on a key is needed, here too." } }
        div.scroll tabindex="0" role="group" aria-label="Keys" { table {
            thead { tr { th { "name" } th { "key" } th { "organisation" } th { "project" } th { "made" } th { span.hidden { "what can be done" } } } }
            tbody { @for key in &keys {
                tr {
                    td { (name(&key.name)) }
                    td { code { (name(&key.shown)) } }
                    td { (name(&key.org)) }
                    td { @if key.project.is_empty() { span.soft { "all" } } @else { (name(&key.project)) } }
                    td.soft { (format_day(day_of(key.created_ms))) }
                    td { @if key.revoked_ms.is_some() { span.soft { "revoked" } } @else { (revoking(visitor, &key.key_id)) } }
                }
            } }
        } }
        h2 { "A new key" }
        form.stack method="post" action=(HERE) {
            (visitor.token())
            label { "What it is for" input name="name" maxlength="128"; }
            label { "Organisation" input name="org" value=(DEFAULT_ORG) maxlength="128"; }
            label { "Project, if it is for one only" input name="project" maxlength="128"; }
            div { button.main { "Make a key" } }
        }
    };
    Ok(navigation::page(visitor, HERE, "Keys", &body))
}

fn revoking(visitor: &Visitor, id: &str) -> Markup {
    html! {
        form method="post" action={ (HERE) "/revoke" } {
            (visitor.token())
            input type="hidden" name="id" value=(id);
            button.plain { "Revoke" span.hidden { " this key" } }
        }
    }
}

async fn create(State(dashboard): State<DashboardState>, visitor: Visitor, form: Form) -> Response {
    let made = async {
        operator(&visitor)?;
        visitor.check(&form)?;
        let field = |name: &str| line(form.get(name), CHARS_MAX);
        let org = Some(field("org"))
            .filter(|org| !org.is_empty())
            .unwrap_or_else(|| DEFAULT_ORG.to_owned());
        let (secret, row) = create_key(KeyKind::Live, &org, &field("project"), &field("name"))
            .map_err(|_| ApiError::Internal)?;
        dashboard.runtime.store.apply(vec![Change::PutKey(Box::new(row))]).await?;
        dashboard.runtime.keys.invalidate();
        draw(&dashboard, &visitor, Some(&secret)).await
    };
    made.await.unwrap_or_else(layout::problem)
}

async fn revoke(State(dashboard): State<DashboardState>, visitor: Visitor, form: Form) -> Response {
    let gone = async {
        operator(&visitor)?;
        visitor.check(&form)?;
        let change = Change::RevokeKey { key_id: form.get("id").to_owned(), at_ms: now_ms() };
        dashboard.runtime.store.apply(vec![change]).await?;
        dashboard.runtime.keys.invalidate();
        Ok(to(HERE))
    };
    gone.await.unwrap_or_else(layout::problem)
}
