//! Lines to paste, for each door, with this server's own address.

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::HOST;
use axum::response::Response;
use axum::routing::get;
use maud::html;
use rb_wire::providers::PROVIDERS;

use crate::DashboardState;
use crate::navigation::{self, Page};
use crate::visitor::Visitor;
use rb_view::text::EscapedText;

pub(crate) const PAGE: Page =
    Page { name: "Quickstart", path: "/ui/quickstart", operator_only: false, routes };

fn routes() -> Router<DashboardState> {
    Router::new().route("/ui/quickstart", get(page))
}

/// Description of the gateway.
const GATEWAY: &str =
    "Model calls pass through this server. Keys of the provider are passed on and not stored.";

async fn page(
    State(dashboard): State<DashboardState>,
    visitor: Visitor,
    headers: HeaderMap,
) -> Response {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.map_or_else(|| dashboard.listen.to_string(), str::to_owned);
    let here = dashboard.public_url.clone().unwrap_or_else(|| format!("http://{host}"));
    let gateway = PROVIDERS.iter().map(|provider| {
        let title = format!("{}, through the gateway", provider.clients);
        let line = format!("export {}={here}{}", provider.base_url_env[0], provider.client_path());
        (title, GATEWAY, line)
    });
    let others = [
        (
            "The Python SDK",
            "The middleware inside the agent's process talks to this server.",
            format!(
                "pip install reasonblocks\nexport REASONBLOCKS_BASE_URL={here}\nexport REASONBLOCKS_API_KEY=<key>"
            ),
        ),
        (
            "Plain HTTP",
            "Tell a step, and read what the monitors say.",
            format!(
                "curl {here}/v1/monitor/runs/my-run/steps -H 'Authorization: Bearer <key>' \\\n  -H 'Content-Type: application/json' \\\n  -d '{{\"step_index\": 0, \"thought\": \"Let me look.\"}}'"
            ),
        ),
        (
            "A harness in any language",
            "One small call before each model call: what the last step did goes in, scores and guidance come back.",
            format!(
                "curl {here}/v1/monitor/runs/my-run/walk -H 'Authorization: Bearer <key>' \\\n  -H 'Content-Type: application/json' \\\n  -d '{{\"step_index\": 0, \"task\": \"Make the tests pass.\"}}'"
            ),
        ),
        (
            "One command",
            "A gateway of its own for this command alone.",
            "rb run -- claude".to_owned(),
        ),
        (
            "Recorded runs",
            "Without any server: a page of a transcript or a folder of them.",
            "rb report ~/.claude/projects/ -o report.html".to_owned(),
        ),
    ]
    .map(|(title, about, lines)| (title.to_owned(), about, lines));
    let body = html! {
        h1 { "Quickstart" }
        p.lead { "Several doors, one engine. Choose the one that is nearest to your agent; its runs appear under " a href="/" { "Runs" } "." }
        @for (what, why, lines) in gateway.chain(others) {
            section { h2 { (what) } p.soft { (why) } pre tabindex="0" role="group" aria-label=(what) { (EscapedText(&lines, 2_000)) } }
        }
        section { h2 { "Further" } p { "Every route is described at " a href="/docs" { "/docs" } ". A key is needed where one exists; "
            @if visitor.caller.is_operator() { a href="/ui/keys" { "Keys" } " makes one." } @else { "the operator makes one." } } }
    };
    navigation::page(&visitor, "/ui/quickstart", "Quickstart", &body)
}
