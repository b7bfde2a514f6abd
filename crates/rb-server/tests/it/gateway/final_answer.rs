//! The final answer of an agent is the closing step of its run.

use rb_store::StepRow;
use serde_json::{Value, json};

use super::Stage;
use super::upstream::{Act, Seen, answer};

const HEADERS: [(&str, &str); 1] = [("x-reasonblocks-run-id", "r")];
const FINAL: &str = "Done. The timeout is fixed and all tests pass.";

/// Responds with a tool call, and with the final answer once the tool has been called.
fn editor(seen: &Seen) -> Vec<Act> {
    let is_edited = seen.text().contains("tool_result");
    let content = if is_edited { json!([{ "type": "text", "text": FINAL }]) } else { edit_call() };
    let stop = if is_edited { "end_turn" } else { "tool_use" };
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": stop, "usage": { "input_tokens": 1_000, "output_tokens": 100 },
    });
    answer("200 OK", "application/json", body.to_string().as_bytes())
}

fn edit_call() -> Value {
    json!([
        { "type": "text", "text": "I raise the timeout." },
        { "type": "tool_use", "id": "toolu_000001", "name": "str_replace_editor", "input": {
            "command": "str_replace", "path": "src/session.py", "old_str": "30", "new_str": "60" } },
    ])
}

/// The conversation after a number of requests; the third one continues after the final answer.
fn messages(requests: usize) -> Vec<Value> {
    let result = json!([{ "type": "tool_result", "tool_use_id": "toolu_000001",
        "content": "The file src/session.py has been edited." }]);
    let all = [
        vec![json!({ "role": "user", "content": "Fix the session timeout." })],
        vec![
            json!({ "role": "assistant", "content": edit_call() }),
            json!({ "role": "user", "content": result }),
        ],
        vec![
            json!({ "role": "assistant", "content": [{ "type": "text", "text": FINAL }] }),
            json!({ "role": "user", "content": "Thanks. Also raise the connection timeout." }),
        ],
    ];
    all[..requests].concat()
}

async fn request(stage: &Stage, number: usize) {
    let tools = json!([{ "name": "str_replace_editor", "input_schema": { "type": "object" } }]);
    let body = json!({
        "model": "m", "max_tokens": 100, "tools": tools, "messages": messages(number),
    });
    let reply = stage.post("/anthropic/v1/messages", &HEADERS, &body.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(stage.app.gateway.flush().await);
}

fn counter(stage: &Stage, name: &str) -> u64 {
    let text = stage.app.runtime.metrics.text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("reasonblocks_{name} ")));
    line.map_or(0, |value| value.parse().unwrap())
}

/// Returns `true` for a closing step.
pub(super) fn is_closing(row: &StepRow) -> bool {
    row.metadata.contains_key("is_closing")
}

#[tokio::test]
async fn a_final_answer_is_stored_and_assessed() {
    let stage = Stage::new(editor).await;
    request(&stage, 1).await;
    request(&stage, 2).await;
    let rows = stage.rows("r").await;
    let last = rows.last().unwrap();
    assert_eq!((last.thought.as_str(), is_closing(last)), (FINAL, true), "{rows:?}");
    assert_eq!(last.fired, ["verification_skip"], "{last:?}");
    assert_eq!(last.failure_type.as_deref(), Some("unverified_completion"));
    assert_eq!(rows.iter().filter(|row| is_closing(row)).count(), 1);
    assert_eq!(counter(&stage, "steps_total"), rows.len() as u64);
    assert_eq!(counter(&stage, "monitor_fired_total{monitor=\"verification_skip\"}"), 1);
}

#[tokio::test]
async fn a_run_that_continues_has_its_final_answer_once() {
    for is_restarted in [false, true] {
        let mut stage = Stage::new(editor).await;
        request(&stage, 1).await;
        request(&stage, 2).await;
        let closed = stage.rows("r").await;
        let counted = counter(&stage, "steps_total");
        if is_restarted {
            stage.restart().await;
        }
        request(&stage, 3).await;
        let rows = stage.rows("r").await;
        let [closing, decided] = [&closed, &rows].map(|rows| &rows[closed.len() - 1]);
        assert_eq!(decided.thought, FINAL);
        assert!(!is_closing(decided), "restarted: {is_restarted}");
        assert_eq!(decided.scores, closing.scores, "restarted: {is_restarted}");
        assert_eq!(decided.fired, closing.fired, "restarted: {is_restarted}");
        let steps = if is_restarted { 1 } else { counted + 1 };
        assert_eq!(counter(&stage, "steps_total"), steps, "restarted: {is_restarted}");
        assert_eq!(rows.len(), closed.len() + 1, "the next final answer follows");
    }
}
