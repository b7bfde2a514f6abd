//! Guidance is injected after several equal calls, keeps its position, and every request starts with the bytes of
//! the previous one, up to the closing brackets.

use rb_store::{RunFilter, RunLists as _, Scope};
use serde_json::{Value, json};

use super::Stage;
use super::dialects::{DIALECTS, Dialect, SIGN, obliging};
use super::upstream::{Act, Seen, answer};
use rb_runtime::auth::DEFAULT_ORG;

const TURNS: usize = 10;
/// Closing brackets of the conversation and the request.
const CLOSING: &str = "]}";

/// Runs an agent that repeats the same call, with a restart before one of the calls, and returns the upstream
/// requests.
async fn seen(dialect: Dialect, run: Option<&str>, restart_before: Option<usize>) -> Vec<String> {
    let mut stage = Stage::new(obliging).await;
    let named: Vec<(&str, &str)> =
        run.map(|run| ("x-reasonblocks-run-id", run)).into_iter().collect();
    for turns in 0..TURNS {
        if restart_before == Some(turns) {
            stage.restart().await;
        }
        let body = dialect.request("m", &dialect.history(turns));
        assert_eq!(stage.post(dialect.path(), &named, &body).await.status, 200);
    }
    assert_eq!(stage.failed_open(), 0);
    stage.upstream.seen().iter().map(Seen::text).collect()
}

fn items(dialect: Dialect, body: &str) -> Vec<Value> {
    let body: Value = serde_json::from_str(body).unwrap();
    body[dialect.list()].as_array().cloned().unwrap_or_default()
}

/// Returns the index of the first request with guidance.
fn came_at(seen: &[String]) -> Option<usize> {
    seen.iter().position(|body| body.contains(SIGN))
}

fn check(dialect: Dialect, seen: &[String], what: &str) {
    for (call, pair) in seen.windows(2).enumerate() {
        let before = pair[0].strip_suffix(CLOSING).unwrap();
        assert!(
            pair[1].starts_with(before),
            "{dialect:?} {what} call {call}:\n{}\n{}",
            pair[0],
            pair[1]
        );
    }
    for (turns, body) in seen.iter().enumerate() {
        let theirs: Vec<Value> = items(dialect, body)
            .into_iter()
            .filter(|item| !item.to_string().contains(SIGN))
            .collect();
        assert_eq!(theirs, dialect.history(turns), "{dialect:?} {what}: the rest is as it came");
    }
}

#[tokio::test]
async fn guidance_comes_after_the_same_call_and_stays_where_it_is() {
    for dialect in DIALECTS {
        for run in [Some("named"), None] {
            let seen = seen(dialect, run, None).await;
            check(dialect, &seen, "in one go");
            let came = came_at(&seen).unwrap_or_else(|| panic!("{dialect:?}: no guidance"));
            assert!((3..=5).contains(&came), "{dialect:?}: after {came} equal calls");
            let at = items(dialect, &seen[came]).len() - 1;
            let planted = items(dialect, &seen[came])[at].clone();
            for later in &seen[came..] {
                assert_eq!(items(dialect, later)[at], planted, "{dialect:?}: it stays");
            }
        }
    }
}

#[tokio::test]
async fn a_restart_changes_nothing_that_was_sent() {
    for dialect in DIALECTS {
        let whole = seen(dialect, Some("r"), None).await;
        let came = came_at(&whole).unwrap();
        for restart_before in [1, came, came + 1, TURNS - 1] {
            let seen = seen(dialect, Some("r"), Some(restart_before)).await;
            check(dialect, &seen, &format!("restarted before call {restart_before}"));
            assert_eq!(seen, whole, "{dialect:?} restarted before call {restart_before}");
        }
    }
}

#[tokio::test]
async fn two_nodes_send_what_one_would_send() {
    for dialect in DIALECTS {
        for run in [Some("r"), None] {
            let whole = seen(dialect, run, None).await;
            // Two bits per turn: the first node, and whether the other node gets the request at the same time.
            for script in [0b01_00_01_00_01_u64, 0b01_01_00_00_01_01, 0b10_11_10_11_10_11_10_11_10]
            {
                let stage = Stage::new(obliging).await;
                let nodes = [stage.address, stage.neighbour().await];
                let named: Vec<(&str, &str)> =
                    run.map(|run| ("x-reasonblocks-run-id", run)).into_iter().collect();
                for (turns, expected) in whole.iter().enumerate() {
                    let choice = script >> (2 * turns) & 0b11;
                    let body = dialect.request("m", &dialect.history(turns));
                    let post = |address| {
                        super::client::post(address, dialect.path(), &named, body.as_bytes())
                    };
                    let (first, other) =
                        (nodes[usize::from(choice & 1 == 1)], nodes[usize::from(choice & 1 == 0)]);
                    if choice & 2 == 2 && run.is_some() {
                        let (one, two) = tokio::join!(post(first), post(other));
                        assert_eq!((one.status, two.status), (200, 200));
                    } else {
                        assert_eq!(post(first).await.status, 200);
                    }
                    let sent = stage.upstream.seen();
                    let sent = sent.last().unwrap().text();
                    assert_eq!(sent, *expected, "{dialect:?} {run:?} {script:b} turn {turns}");
                }
                let name = run.unwrap_or_default();
                let told = stage.steps(name).await;
                assert_eq!(told.len(), if run.is_some() { TURNS } else { 0 }, "{dialect:?}");
                assert_eq!(stage.failed_open(), 0);
            }
        }
    }
}

#[tokio::test]
async fn nothing_is_said_before_anything_happened() {
    for has_rules in [false, true] {
        let mut raw = super::patient();
        raw.gateway.standing_rules = has_rules;
        let stage = Stage::with(raw, obliging).await;
        for dialect in DIALECTS {
            let body = dialect.request("m", &dialect.history(0));
            stage.post(dialect.path(), &[], &body).await;
            let sent = stage.upstream.seen().last().unwrap().text();
            assert_eq!(
                sent != body,
                has_rules,
                "{dialect:?}: standing rules come where they are wanted"
            );
        }
    }
}

/// Answers with the same search each time, with ids that come back in the history.
fn searching() -> impl FnMut(&Seen) -> Vec<Act> + Send + 'static {
    let mut answers = 0;
    move |_| {
        let call = json!({ "id": format!("call_{answers:06}"), "type": "function", "function": { "name": "search", "arguments": "{}" } });
        let message = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
        let body = json!({ "id": "c", "model": "m", "choices": [{ "index": 0, "message": message, "finish_reason": "tool_calls" }] });
        answers += 1;
        answer("200 OK", "application/json", body.to_string().as_bytes())
    }
}

/// Distribution of the requests over nodes.
#[derive(Debug, Clone, Copy)]
enum Nodes {
    One,
    /// Restart before each request.
    Restarting,
    /// Alternating nodes.
    Two,
}

/// Sends requests whose last message is a temporary note, and whose system prompt contains the time. Returns the
/// upstream requests and the number of steps.
async fn rewritten(nodes: Nodes, run: Option<&str>) -> (Vec<String>, usize) {
    let mut stage = Stage::new(searching()).await;
    let mut other = match nodes {
        Nodes::Two => Some(stage.neighbour().await),
        Nodes::One | Nodes::Restarting => None,
    };
    let named: Vec<(&str, &str)> =
        run.map(|run| ("x-reasonblocks-run-id", run)).into_iter().collect();
    let dialect = Dialect::Chat;
    for turns in 0..8 {
        let mut messages = dialect.history(turns);
        messages
            .insert(0, json!({ "role": "system", "content": format!("It is {turns} o'clock.") }));
        messages.push(json!({ "role": "system", "content": format!("{turns} files are open.") }));
        if matches!(nodes, Nodes::Restarting) {
            stage.restart().await;
        }
        let got = stage.post(dialect.path(), &named, &dialect.request("m", &messages)).await;
        assert_eq!(got.status, 200);
        assert!(stage.app.gateway.flush().await);
        if let Some(other) = &mut other {
            std::mem::swap(other, &mut stage.address);
        }
    }
    let filter = RunFilter { count_max: 50, ..RunFilter::default() };
    let runs = stage.store.runs(&Scope::org(DEFAULT_ORG), &filter).await.unwrap();
    assert_eq!(runs.len(), 1, "{nodes:?}: {runs:?}");
    let steps = stage.steps(&runs[0].run.run_id).await;
    (stage.upstream.seen().iter().map(Seen::text).collect(), steps.len())
}

#[tokio::test]
async fn a_history_that_is_rewritten_each_time_is_the_run_whose_answers_it_holds() {
    for run in [None, Some("named")] {
        let (seen, steps) = rewritten(Nodes::One, run).await;
        assert_eq!(steps, 8, "every step once");
        assert!(came_at(&seen).is_some(), "and it is steered");
        for nodes in [Nodes::Restarting, Nodes::Two] {
            let (seen_here, steps_here) = rewritten(nodes, run).await;
            assert_eq!((steps_here, &seen_here), (steps, &seen), "{nodes:?} {run:?}");
        }
    }
}
