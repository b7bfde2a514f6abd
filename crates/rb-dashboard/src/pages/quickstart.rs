//! Lines to paste, for each door, with this server's own address.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::HOST;
use axum::response::Response;
use maud::html;

use crate::DashboardState;
use crate::navigation;
use crate::visitor::Visitor;
use rb_view::text::EscapedText;

pub(crate) async fn page(
    State(dashboard): State<DashboardState>,
    visitor: Visitor,
    headers: HeaderMap,
) -> Response {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.map_or_else(|| dashboard.listen.to_string(), str::to_owned);
    let here = dashboard.public_url.clone().unwrap_or_else(|| format!("http://{host}"));
    let doors = [
        (
            "Claude Code, through the gateway",
            "Every model call passes through here; nothing else changes.",
            format!("export ANTHROPIC_BASE_URL={here}/anthropic\nclaude"),
        ),
        (
            "Anything that speaks OpenAI's API",
            "Keep your own key of the provider; it is passed on and never kept.",
            format!("export OPENAI_BASE_URL={here}/openai/v1"),
        ),
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
    ];
    let body = html! {
        h1 { "Quickstart" }
        p.lead { "Several doors, one engine. Choose the one that is nearest to your agent; its runs appear under " a href="/" { "Runs" } "." }
        @for (what, why, lines) in &doors {
            section { h2 { (what) } p.soft { (why) } pre tabindex="0" role="group" aria-label=(what) { (EscapedText(lines, 2_000)) } }
        }
        section { h2 { "Further" } p { "Every route is described at " a href="/docs" { "/docs" } ". A key is needed where one exists; "
            @if visitor.caller.is_operator() { a href="/ui/keys" { "Keys" } " makes one." } @else { "the operator makes one." } } }
    };
    navigation::page(&visitor, "/ui/quickstart", "Quickstart", &body)
}
