//! Operator messages through the whole server.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::test_server::Trial;

const SAID: &str = "A person who is watching this run says: Look at the lexer.";

async fn steer(trial: &Trial, run: &str, text: &str) -> StatusCode {
    let body = json!({ "text": text });
    trial.post(&format!("/v1/monitor/runs/{run}/steer"), &trial.acme, &body).await.status
}

async fn walk(trial: &Trial, run: &str, body: Value) -> Value {
    let reply = trial.post(&format!("/v1/monitor/runs/{run}/walk"), &trial.acme, &body).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
    reply.json
}

#[tokio::test]
async fn a_persons_words_go_with_the_next_walk_once_and_are_recorded() {
    let trial = Trial::new().await;
    walk(&trial, "org/r", json!({"step_index": 0, "task": "Repair the parser."})).await;
    assert_eq!(steer(&trial, "org/r", " Look at the lexer. ").await, StatusCode::ACCEPTED);
    let step =
        json!({"step_index": 1, "thought": "I read.", "action": "read", "observation": "fn"});
    let told = walk(&trial, "org/r", step.clone()).await;
    let guidance = told["guidance"].as_str().unwrap();
    assert!(guidance.starts_with("[REASONBLOCKS]\n") && guidance.contains(SAID), "{guidance}");
    assert_eq!((&told["decision"], &told["sources"][0]), (&json!("steer"), &json!("hand")));

    let again = trial.restarted().await;
    let repeated = walk(&again, "org/r", step).await;
    assert_eq!(repeated["guidance"], told["guidance"], "a replayed run says the same again");
    let later =
        json!({"step_index": 2, "thought": "I read on.", "action": "read", "observation": "x"});
    let later = walk(&trial, "org/r", later).await;
    assert!(!later["sources"].as_array().unwrap().contains(&json!("hand")), "{later}");

    let run = trial.get("/v1/monitor/runs/org/r", &trial.acme).await;
    assert_eq!(run.at("/steps/1/injection_sources/0"), json!("hand"));
    assert_eq!(run.at("/steps/1/intervention_texts/0"), json!(SAID));
    assert_eq!(run.at("/api_key_name"), json!("trial"));
}

#[tokio::test]
async fn evaluate_with_a_run_id_says_it_too_and_telemetry_knows_who_spoke() {
    let trial = Trial::new().await;
    let begins = json!({"run_id": "r", "task": "Repair the parser."});
    trial.post("/v1/monitor/runs", &trial.acme, &begins).await;
    assert_eq!(steer(&trial, "r", "Look at the lexer.").await, StatusCode::ACCEPTED);
    let body = json!({"run_id": "r", "steps": [{"thought": "I read."}]});
    let reply = trial.post("/v1/monitors/evaluate", &trial.acme, &body).await;
    assert_eq!(reply.at("/intervention_text"), json!(SAID));
    assert_eq!((reply.at("/inject"), reply.at("/injection_path")), (json!(true), json!("hand")));
    let more = json!({"run_id": "r", "steps": [{"thought": "I read."}, {"thought": "And on."}]});
    let reply = trial.post("/v1/monitors/evaluate", &trial.acme, &more).await;
    assert_eq!(reply.at("/inject"), json!(false), "once");

    let step = json!({"step_index": 0, "thought": "I read.", "intervention_texts": [SAID],
        "injection_sources": ["RemoteMonitorSteering"]});
    trial.post("/v1/monitor/runs/r/steps", &trial.acme, &step).await;
    let run = trial.get("/v1/monitor/runs/r", &trial.acme).await;
    assert_eq!(run.at("/steps/0/injection_sources"), json!(["RemoteMonitorSteering", "hand"]));
}

#[tokio::test]
async fn nobody_steers_what_is_not_theirs_over_or_flooded() {
    let trial = Trial::new().await;
    for run in ["mine", "over"] {
        trial.post("/v1/monitor/runs", &trial.acme, &json!({"run_id": run})).await;
    }
    trial.post("/v1/monitor/runs/over/finish", &trial.acme, &json!({"outcome": "success"})).await;
    let theirs = trial.post("/v1/monitor/runs", &trial.globex, &json!({"run_id": "theirs"})).await;
    assert!(theirs.status.is_success());
    let long = "x".repeat(1_501);
    for (run, text, expected) in [
        ("theirs", "words", StatusCode::NOT_FOUND),
        ("nobody", "words", StatusCode::NOT_FOUND),
        ("over", "words", StatusCode::CONFLICT),
        ("mine", " ", StatusCode::UNPROCESSABLE_ENTITY),
        ("mine", long.as_str(), StatusCode::UNPROCESSABLE_ENTITY),
        ("mine", "one", StatusCode::ACCEPTED),
        ("mine", "two", StatusCode::ACCEPTED),
        ("mine", "three", StatusCode::ACCEPTED),
        ("mine", "four", StatusCode::CONFLICT),
    ] {
        assert_eq!(steer(&trial, run, text).await, expected, "{run} {text:.10}");
    }
}

#[tokio::test]
async fn runs_are_found_by_the_key_that_told_of_them_and_by_pattern() {
    let trial = Trial::new().await;
    let step = json!({"step_index": 0, "thought": "I read.", "injections": ["[e1:p-7]"]});
    trial.post("/v1/monitor/runs/a/steps", &trial.acme, &step).await;
    trial.post("/v1/monitor/runs/b/finish", &trial.acme, &json!({})).await;
    for (query, expected) in [
        ("api_key_name=trial", vec!["b", "a"]),
        ("api_key_name=another", vec![]),
        ("pattern=e1:p-7", vec!["a"]),
        ("pattern=e1:p", vec![]),
    ] {
        let reply = trial.get(&format!("/v1/monitor/runs?{query}"), &trial.acme).await;
        let mut found = super::field(&reply.json, "run_id");
        found.sort_by(|a, b| b.cmp(a));
        assert_eq!(found, expected, "{query}");
    }
}
