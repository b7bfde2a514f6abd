//! The library from outside, and whole traces in.

use axum::http::StatusCode;
use serde_json::json;

use crate::test_server::{OPERATOR, Trial};

#[tokio::test]
async fn patterns_are_added_changed_and_removed_by_whoever_may() {
    let trial = Trial::new().await;
    let rule = json!({"tier": "e3", "pattern_id": "p", "fields": {"instruction": "Cite."}});
    let refused = trial.post("/library/patterns", &trial.acme, &rule).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    let added = trial.post("/library/patterns", OPERATOR, &rule).await;
    assert_eq!((added.status, added.at("/org_id")), (StatusCode::CREATED, json!("")));
    let again = trial.post("/library/patterns", OPERATOR, &rule).await;
    assert_eq!(again.status, StatusCode::CONFLICT);

    let own = json!({
        "tier": "e1", "pattern_id": "mine", "org_id": "acme", "gate_threshold": 0.95,
        "fields": {"situation": "s", "unlock": "u", "tier": "e3", "customer_id": "x"},
    });
    let added = trial.post("/library/patterns", &trial.globex, &own).await;
    assert_eq!((added.at("/org_id"), added.at("/tier")), (json!("globex"), json!("e1")));
    assert_eq!(added.at("/fields/customer_id"), json!(null), "structural keys are not taken");

    let change =
        json!({"fields": {"unlock": "better", "pattern_id": "other"}, "failure_type": "x"});
    let address = "/library/patterns/e1/mine";
    assert_eq!(trial.patch(address, &trial.acme, &change).await.status, StatusCode::NOT_FOUND);
    let changed = trial.patch(address, &trial.globex, &change).await;
    assert_eq!(changed.at("/fields/recommended_action"), "better", "{}", changed.text);
    assert_eq!(changed.at("/fields/pattern_id"), "mine");
    assert_eq!(changed.at("/gate_threshold"), json!(0.95));

    let listed = trial.get("/library/patterns?tier=e1", &trial.acme).await;
    assert_eq!(listed.json, json!([]));
    let listed = trial.get("/library/patterns?tier=e1", &trial.globex).await;
    assert_eq!(super::field(&listed.json, "pattern_id"), ["mine"]);
    let all = trial.get("/library/patterns?limit=1000", &trial.acme).await;
    assert!(all.json.as_array().unwrap().len() >= 42, "the starter library");

    assert_eq!(trial.delete(address, &trial.acme).await.status, StatusCode::NOT_FOUND);
    assert_eq!(trial.delete(address, &trial.globex).await.at("/status"), "deleted");
    assert_eq!(trial.delete(address, &trial.globex).await.status, StatusCode::NOT_FOUND);
    assert_eq!(
        trial.delete("/library/patterns/e3/p", &trial.acme).await.status,
        StatusCode::FORBIDDEN
    );

    for body in [
        json!({"tier": "e4", "fields": {}}),
        json!({"tier": "e1", "fields": {"situation": "s"}}),
        json!({"tier": "e1", "fields": {"situation": "s", "unlock": "u"}, "gate_threshold": 2.0}),
    ] {
        let reply = trial.post("/library/patterns", &trial.acme, &body).await;
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    }
}

#[tokio::test]
async fn what_the_operator_removed_stays_removed() {
    let trial = Trial::new().await;
    let address = "/library/patterns/e3/verify-before-done";
    assert_eq!(trial.delete(address, OPERATOR).await.status, StatusCode::OK);
    let restarted = trial.restarted().await;
    let rules = restarted.get("/library/patterns?tier=e3", OPERATOR).await;
    let ids = super::field(&rules.json, "pattern_id");
    assert!(ids.len() >= 11 && !ids.contains(&"verify-before-done".to_owned()), "{ids:?}");
}

#[tokio::test]
async fn uses_are_counted() {
    let trial = Trial::new().await;
    for _ in 0..3 {
        trial
            .post(
                "/traces/retrieve",
                &trial.acme,
                &json!({"context": "", "tier": "e3", "top_k": 1}),
            )
            .await;
    }
    let rules = trial.get("/library/patterns?tier=e3", OPERATOR).await;
    let uses: Vec<u64> =
        rules.json.as_array().unwrap().iter().filter_map(|row| row["uses"].as_u64()).collect();
    assert_eq!(uses.iter().sum::<u64>(), 3, "{uses:?}");
}

#[tokio::test]
async fn whole_traces_come_in_two_shapes() {
    let trial = Trial::new().await;
    let steps = json!({
        "trace_id": "old", "outcome": "success",
        "steps": [
            {"step_index": 0, "thought": "look", "action": "ls", "action_input": "-l", "observation": "a.py", "tokens_used": 5, "state": "NORMAL", "difficulty": 0.1},
            {"step_index": 1, "thought": "done"},
        ],
    });
    let calls = json!({
        "manifest": {"trace_id": "new", "model": "gpt-4o", "task_context": "fix it", "outcome_status": "failure"},
        "calls": [
            {"call_index": 0, "messages": [{"role": "user", "content": "fix it"}], "response": {"content": [{"type": "text", "text": "look"}]},
             "tool_calls": [{"function": {"name": "ls", "arguments": "{\"path\": \".\"}"}}], "tokens": 7},
            {"call_index": 1, "messages": [{"role": "tool", "content": "a.py"}], "response": {"content": "done"}},
        ],
    });
    for (body, id, status, word) in [
        (&steps, "old", StatusCode::OK, "stored"),
        (&calls, "new", StatusCode::ACCEPTED, "accepted"),
    ] {
        let reply = trial.post("/traces", &trial.acme, body).await;
        assert_eq!((reply.status, reply.at("/status")), (status, json!(word)), "{}", reply.text);
        let run = trial.get(&format!("/monitor/runs/{id}"), &trial.acme).await;
        for (pointer, value) in [
            ("/steps/0/thought", "look"),
            ("/steps/0/action", "ls"),
            ("/steps/0/observation", "a.py"),
            ("/steps/1/thought", "done"),
        ] {
            assert_eq!(run.at(pointer), value, "{id} {pointer}: {}", run.text);
        }
    }
    for body in
        [json!({"calls": []}), json!({"steps": [{"step_index": 10_001}]}), json!({"manifest": {}})]
    {
        let reply = trial.post("/traces", &trial.acme, &body).await;
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    }
}
