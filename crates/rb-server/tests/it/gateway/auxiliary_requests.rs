//! Requests of Claude Code in one session: the agent's conversation and auxiliary requests.

use rb_store::{RunLists as _, Runs as _, Scope};
use serde_json::{Value, json};

use super::Stage;
use super::dialects::{Dialect, TASK, obliging};
use rb_runtime::auth::DEFAULT_ORG;

const MESSAGES: &str = "/anthropic/v1/messages?beta=true";
const SESSION: &str = "0199-session";
const MAIN: &str = "claude-opus-4-8";
const SMALL: &str = "claude-haiku-4-5";

/// Returns an auxiliary request of the program.
fn small(system: &str, said: &str, tools: &Value) -> String {
    let body = json!({ "model": SMALL, "max_tokens": 512, "temperature": 0, "stream": false,
        "system": [{ "type": "text", "text": system }], "tools": tools,
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": said }] }],
        "metadata": { "user_id": format!("{{\"device_id\":\"d\",\"session_id\":\"{SESSION}\"}}") } });
    body.to_string()
}

fn quota() -> String {
    small("", "quota", &json!([]))
}

fn topic() -> String {
    small("Analyze if this message indicates a new conversation topic.", TASK, &json!([]))
}

fn title() -> String {
    small(
        "Generate a concise title for this session.",
        &format!("<session>{TASK}</session>"),
        &json!([]),
    )
}

fn web_search() -> String {
    let tool = json!([{ "type": "web_search_20250305", "name": "web_search", "max_uses": 8 }]);
    small("You search the web.", "Perform a web search for the query: session timeout", &tool)
}

/// Returns a request for a summary: the whole conversation, one more message, and no tools.
fn summary(turns: usize) -> String {
    let mut items = Dialect::Anthropic.history(turns);
    items.push(json!({ "role": "user", "content": "Summarise the conversation so far." }));
    json!({ "model": MAIN, "max_tokens": 512, "messages": items }).to_string()
}

fn main_call(turns: usize) -> String {
    Dialect::Anthropic.request(MAIN, &Dialect::Anthropic.history(turns))
}

/// Returns a request of an unnamed subagent, as in old versions: another model and another first message.
fn nameless_agent(turns: usize) -> String {
    let mut items = vec![json!({ "role": "user", "content": "Look through the configuration." })];
    items.extend((0..turns).flat_map(|turn| Dialect::Anthropic.turn(turn + 100)));
    Dialect::Anthropic.request(SMALL, &items)
}

async fn send(stage: &Stage, agent: Option<&str>, body: &str) -> String {
    let mut headers = vec![
        ("x-claude-code-session-id", SESSION),
        ("user-agent", "claude-cli/2.1.0 (external, cli)"),
    ];
    headers.extend(agent.map(|agent| ("x-claude-code-agent-id", agent)));
    let got = stage.post(MESSAGES, &headers, body).await;
    assert_eq!(got.status, 200, "{}", got.text());
    stage.app.gateway.flush().await;
    stage.upstream.seen().last().unwrap().text()
}

/// Sends all requests of a long session in a realistic order.
async fn play(stage: &mut Stage, restarts: bool) {
    for aside in [quota(), topic()] {
        assert_eq!(send(stage, None, &aside).await, aside, "an aside goes out as it came");
    }
    for turns in 0..5 {
        send(stage, None, &main_call(turns)).await;
        if restarts {
            stage.restart().await;
        }
        for aside in [title(), topic(), web_search(), summary(turns)] {
            assert_eq!(send(stage, None, &aside).await, aside, "an aside goes out as it came");
        }
        send(stage, Some("explorer"), &nameless_agent(turns)).await;
        send(stage, None, &nameless_agent(turns)).await;
    }
}

#[tokio::test]
async fn asides_are_no_part_of_the_trace() {
    for restarts in [false, true] {
        let mut stage = Stage::new(obliging).await;
        play(&mut stage, restarts).await;
        let main = format!("claude-code:{SESSION}");
        let steps = stage.steps(&main).await;
        let actions: Vec<_> = steps.iter().map(|step| step.action.as_deref()).collect();
        let search = Some("search");
        assert_eq!(actions, [None, search, search, search, search], "restarts: {restarts}");
        assert!(steps.iter().all(|step| step.model == MAIN), "the small model took none of them");
        let scope = Scope::org(DEFAULT_ORG);
        let row = stage.store.run(&scope, &main).await.unwrap().unwrap();
        assert_eq!((row.task.as_str(), row.model.as_str()), (TASK, MAIN));
        assert_eq!(row.agent_name, "claude-cli");
        // Subagents are separate runs, identified by their name or by their first message.
        let all = stage
            .store
            .runs(&scope, &rb_store::RunFilter { count_max: 50, ..Default::default() })
            .await
            .unwrap();
        let mut children: Vec<_> = all.iter().filter(|run| run.run.run_id != main).collect();
        children.sort_by_key(|run| run.run.run_id.ends_with("/explorer"));
        assert_eq!(children.len(), 2, "{children:?}");
        for child in children {
            assert_eq!(child.parent, main);
            assert!(child.run.run_id.starts_with(&format!("{main}/")));
            let steps = stage.steps(&child.run.run_id).await;
            assert!(steps.iter().filter(|step| step.action.is_some()).count() == 4, "{steps:?}");
        }
    }
}

#[tokio::test]
async fn asides_cost_what_they_cost() {
    let mut raw = super::patient();
    raw.gateway.budget.run_tokens = Some(3_300);
    let mut stage = Stage::with(raw, obliging).await;
    send(&stage, None, &main_call(0)).await;
    send(&stage, None, &title()).await;
    stage.restart().await;
    send(&stage, None, &topic()).await;
    let got = stage.post(MESSAGES, &[("x-claude-code-session-id", SESSION)], &main_call(1)).await;
    assert_eq!(got.status, 429, "two asides and one call are three: {}", got.text());
}

#[tokio::test]
async fn counting_tokens_is_nobodys_step() {
    let stage = Stage::new(obliging).await;
    let body = main_call(3);
    let headers = [("x-claude-code-session-id", SESSION)];
    stage.post("/anthropic/v1/messages/count_tokens", &headers, &body).await;
    assert_eq!(stage.upstream.seen()[0].text(), body);
    assert!(stage.steps(&format!("claude-code:{SESSION}")).await.is_empty());
}

#[tokio::test]
async fn a_session_that_begins_with_an_aside_is_known_by_its_work() {
    // Versions without headers send the session id only in the body.
    let stage = Stage::new(obliging).await;
    let user = json!({ "user_id": format!("{{\"session_id\":\"{SESSION}\"}}") });
    let named = |body: &str| {
        let mut body: Value = serde_json::from_str(body).unwrap();
        body["metadata"] = user.clone();
        body.to_string()
    };
    for body in [topic(), main_call(0), main_call(1), title(), main_call(2)] {
        assert_eq!(stage.post(MESSAGES, &[], &named(&body)).await.status, 200);
        stage.app.gateway.flush().await;
    }
    let run = format!("user-id:{SESSION}");
    let steps = stage.steps(&run).await;
    let actions: Vec<_> = steps.iter().map(|step| step.action.as_deref()).collect();
    assert_eq!(actions, [None, Some("search"), Some("search")]);
    let row = stage.store.run(&Scope::org(DEFAULT_ORG), &run).await.unwrap().unwrap();
    assert_eq!(row.model, MAIN);
}
