//! Runs as reported by the SDKs, with network and client failures.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::test_server::{OPERATOR, Trial};

/// Returns the run start of SDK version 0.2.5.
fn start(run_id: &str, org: &str) -> Value {
    json!({
        "run_id": run_id, "agent_name": "fixer", "task": "fix the cache", "model": "gpt-4o",
        "framework": "langchain", "codebase_id": "org/repo", "org_id": org,
        "project_id": "default", "task_profile": "coding", "metadata": {"team": "core"},
    })
}

/// Returns a step of SDK version 0.2.5.
fn step(index: u32) -> Value {
    json!({
        "step_index": index, "action": "bash", "action_input": "{'command': 'pytest'}",
        "thought": "The test still fails, let me run it again.", "observation": "1 failed",
        "is_error": true, "tokens": 1_100, "input_tokens": 1_000, "output_tokens": 100,
        "cache_read_tokens": 0, "step_model": "gpt-4o", "injections": [], "injection_sources": [],
        "intervention_texts": [], "monitors_fired": [], "failure_type": null,
        "metadata": {"fsm_state": "NORMAL", "difficulty": 0.3},
    })
}

#[tokio::test]
async fn a_run_is_told_and_read_back() {
    let trial = Trial::new().await;
    let key = &trial.acme;
    let begun = trial.post("/monitor/runs", key, &start("r/1", "ignored")).await;
    assert_eq!(begun.status, StatusCode::CREATED, "{}", begun.text);
    let first = json!({"step_index": 0, "thought": "(first call)", "action": null});
    let reply = trial.post("/monitor/runs/r/1/steps", key, &first).await;
    assert_eq!((reply.at("/scores"), reply.at("/fired")), (json!({}), json!([])), "no step yet");
    for index in 1..9 {
        let reply = trial.post("/v1/monitor/runs/r/1/steps", key, &step(index)).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
        assert_eq!(reply.at("/scores").as_object().unwrap().len(), 12, "both suites");
    }
    let again = trial.post("/monitor/runs/r/1/steps", key, &step(8)).await;
    assert!(again.at("/fired").as_array().is_some_and(|fired| !fired.is_empty()), "{}", again.text);
    let cited = again.at("/evidence/0/steps");
    let newest = cited.as_array().unwrap().last().cloned();
    assert_eq!(newest, Some(json!(8)), "steps are cited by their index");
    for outcome in ["success", "failure: Timeout"] {
        let reply = trial.post("/monitor/runs/r/1/finish", key, &json!({"outcome": outcome})).await;
        assert_eq!((reply.status, reply.at("/outcome")), (StatusCode::OK, json!(outcome)));
    }
    let stored = trial.get("/monitor/runs/r/1", key).await;
    assert_eq!(stored.at("/outcome"), "failure: Timeout", "the last outcome stands");
    assert_eq!(stored.at("/steps").as_array().unwrap().len(), 9);
    let cost = stored.at("/steps/1/cost_usd").as_f64();
    assert!(cost.is_none_or(|cost| cost > 0.0), "{}", stored.text);
    assert_eq!(trial.get("/monitor/runs/r/1", &trial.globex).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn nothing_is_lost_for_being_long_or_early() {
    let trial = Trial::new().await;
    let key = &trial.acme;
    let mut long = start("long", "acme");
    long["task"] = json!("x".repeat(5_000));
    long["model"] = json!("m".repeat(200));
    let reply = trial.post("/monitor/runs", key, &long).await;
    assert_eq!(
        (reply.status, reply.at("/truncated")),
        (StatusCode::CREATED, json!(["task", "model"]))
    );
    let mut long = step(3);
    long["step_model"] = json!("m".repeat(500));
    long["injections"] = json!(vec!["x"; 70]);
    long["thought"] = json!("é".repeat(64_001));
    let reply = trial.post("/monitor/runs/unheard-of/steps", key, &long).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
    assert_eq!(reply.at("/truncated"), json!(["thought", "step_model", "injections"]));
    let reply = trial
        .post("/monitor/runs/never-begun/finish", key, &json!({"outcome": "o".repeat(99)}))
        .await;
    assert_eq!((reply.status, reply.at("/truncated")), (StatusCode::OK, json!(["outcome"])));
    assert_eq!(trial.get("/monitor/runs/never-begun", key).await.status, StatusCode::OK);
    let wrong = [
        ("/monitor/runs", json!({"task": "x"}), json!(["body"])),
        ("/monitor/runs", json!({"run_id": ""}), json!(["body", "run_id"])),
        ("/monitor/runs/x/steps", json!({"step_index": 10_001}), json!(["body", "step_index"])),
        ("/monitor/runs/x/steps", json!({"step_index": -1}), json!(["body", "step_index"])),
        (
            "/monitor/runs/x/steps",
            json!({"step_index": 1, "tokens": "many"}),
            json!(["body", "tokens"]),
        ),
    ];
    for (path, body, place) in wrong {
        let reply = trial.post(path, key, &body).await;
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{path} {body}");
        assert_eq!(reply.at("/detail/0/loc"), place, "{}", reply.text);
    }
}

#[tokio::test]
async fn steps_that_come_late_or_twice_or_changed_are_read_in_their_place() {
    let (mixed, sorted) = (Trial::new().await, Trial::new().await);
    let mut changed = step(4);
    changed["observation"] = json!("2 failed");
    let orders: [(&Trial, Vec<Value>); 2] = [
        (
            &mixed,
            vec![step(1), step(2), step(4), step(3), step(3), changed.clone(), step(5), step(6)],
        ),
        (&sorted, vec![step(1), step(2), step(3), changed, step(5), step(6)]),
    ];
    let mut last = Vec::new();
    for (trial, steps) in orders {
        let mut reply = Value::Null;
        for body in steps {
            let answered = trial.post("/monitor/runs/r/steps", &trial.acme, &body).await;
            assert_eq!(answered.status, StatusCode::OK, "{}", answered.text);
            reply = answered.json;
        }
        last.push(reply);
    }
    assert_eq!(last[0], last[1]);
}

#[tokio::test]
async fn the_operators_steps_find_the_run_and_no_key_reaches_anothers() {
    let trial = Trial::new().await;
    trial.post("/monitor/runs", OPERATOR, &start("shared-id", "acme")).await;
    trial.post("/monitor/runs/shared-id/steps", OPERATOR, &step(0)).await;
    let acme = trial.get("/monitor/runs/shared-id", &trial.acme).await;
    assert_eq!(acme.at("/steps").as_array().unwrap().len(), 1, "found without naming it");
    // Another organisation with the same run id has a separate run.
    trial.post("/monitor/runs/shared-id/steps", &trial.globex, &step(7)).await;
    let globex = trial.get("/monitor/runs/shared-id", &trial.globex).await;
    assert_eq!(globex.at("/steps/0/step_index"), json!(7));
    // A key of one project does not reach the organisation's other projects.
    for (path, body) in [
        ("/monitor/runs/shared-id/steps", step(1)),
        ("/monitor/runs/shared-id/walk", step(1)),
        ("/monitor/runs/shared-id/finish", json!({})),
        ("/monitor/runs", start("shared-id", "acme")),
    ] {
        let reply = trial.post(path, &trial.alpha, &body).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{path}: {}", reply.text);
    }
}

#[tokio::test]
async fn listeners_hear_of_their_steps_and_of_no_others() {
    let trial = Trial::new().await;
    let address = format!("/v1/monitor/stream?token={}", trial.acme);
    let request = Request::builder().uri(address).body(Body::empty()).unwrap();
    let reply = trial.respond(request).await;
    assert_eq!(reply.headers()["content-type"], "text/event-stream");
    let mut events = reply.into_body();
    trial.post("/monitor/runs/theirs/steps", &trial.globex, &step(0)).await;
    trial.post("/monitor/runs/ours/steps", &trial.acme, &step(0)).await;
    let mut heard = String::new();
    while !heard.contains("ours") {
        let frame = events.frame().await.unwrap().unwrap();
        heard += std::str::from_utf8(&frame.into_data().unwrap()).unwrap();
    }
    assert!(heard.starts_with("event: ready\n") && !heard.contains("theirs"), "{heard}");
    assert!(heard.contains("event: step\ndata: {\"run_id\":\"ours\",\"step_index\":0,"), "{heard}");
    let counted = trial.get("/metrics", "").await.text;
    assert!(counted.contains("reasonblocks_steps_total 2"), "{counted}");
}
