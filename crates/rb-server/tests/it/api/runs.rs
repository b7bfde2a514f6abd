//! Runs as they are read.

use std::sync::Arc;

use axum::http::StatusCode;
use rb_store::{Change, RunKey, RunStart, StepRow};
use serde_json::{Value, json};

use super::{field, run, with_runs};
use crate::test_server::Trial;

#[tokio::test]
async fn a_run_has_the_fields_that_clients_know() {
    let trial = with_runs().await;
    let run = trial.get("/monitor/runs?limit=1&project_id=alpha", &trial.acme).await.at("/0");
    let cases = [
        ("run_id", json!("a/1")),
        ("agent_name", json!("fixer")),
        ("task", json!("fix a/1")),
        ("model", json!("gpt-4o")),
        ("framework", json!("")),
        ("codebase_id", json!("org/repo")),
        ("started_at", json!("1970-01-01T00:00:01.000Z")),
        ("finished_at", json!("1970-01-01T00:00:01.020Z")),
        ("outcome", json!("success")),
        ("metadata", json!({"experiment_id": "trial", "arm": "on"})),
        ("step_count", json!(1)),
        ("avg_score", json!(0.1235)),
        ("peak_score", json!(0.1235)),
        ("org_id", json!("acme")),
        ("tokens", json!(110)),
        ("fires_by_monitor", json!({"streak": 1})),
    ];
    for (name, expected) in cases {
        assert_eq!(run[name], expected, "{name}");
    }
}

#[tokio::test]
async fn a_run_in_detail_has_its_steps_and_may_have_slashes_in_its_id() {
    let trial = with_runs().await;
    for path in ["/monitor/runs/a/1", "/v1/monitor/runs/a/1", "/monitor/runs/a%2F1"] {
        let reply = trial.get(path, &trial.acme).await;
        assert_eq!(reply.status, StatusCode::OK, "{path}");
        let step = reply.at("/steps/0");
        let cases = [
            ("step_index", json!(0)),
            ("occurred_at", json!("1970-01-01T00:00:01.010Z")),
            ("action", json!("read")),
            ("action_input", Value::Null),
            ("thought", json!("look")),
            ("observation", Value::Null),
            ("tokens", json!(110)),
            ("scores", json!({"streak": 0.7})),
            ("fired", json!(["streak"])),
            ("injections", json!(["[monitor]"])),
            ("injection_sources", json!([])),
            ("intervention_texts", json!([])),
            ("monitors_fired", json!([])),
            ("failure_type", Value::Null),
            ("metadata", json!({})),
        ];
        for (name, expected) in cases {
            assert_eq!(step[name], expected, "{path} {name}");
        }
    }
    let none = trial.get("/monitor/runs/a/1?from_step=1", &trial.acme).await;
    assert_eq!(none.at("/steps"), json!([]));
}

#[tokio::test]
async fn lists_are_filtered_and_paged() {
    let trial = with_runs().await;
    let cases = [
        ("", vec!["a-2", "a/1"]),
        ("limit=1", vec!["a-2"]),
        ("limit=1&offset=1", vec!["a/1"]),
        ("after=a-2", vec!["a/1"]),
        ("agent=nobody", vec![]),
        ("model=gpt-4o", vec!["a-2", "a/1"]),
        ("outcome=success", vec!["a-2", "a/1"]),
        ("outcome=failure", vec![]),
        ("fired=streak", vec!["a-2", "a/1"]),
        ("fired=hedge", vec![]),
        ("q=A-2", vec!["a-2"]),
        ("since=1970-01-01T00:00:02Z", vec!["a-2"]),
        ("since=2000", vec!["a-2"]),
        ("until=2000", vec!["a/1"]),
        ("api_key_name=", vec!["a-2", "a/1"]),
        ("api_key_name=x", vec![]),
    ];
    for (query, expected) in cases {
        let reply = trial.get(&format!("/monitor/runs?{query}"), &trial.acme).await;
        assert_eq!(field(&reply.json, "run_id"), expected, "{query}");
    }
}

#[tokio::test]
async fn what_is_wrong_in_a_query_is_said_with_its_place() {
    let trial = Trial::new().await;
    let cases = [
        ("/monitor/runs?limit=0", "limit"),
        ("/monitor/runs?limit=10001", "limit"),
        ("/monitor/runs?limit=many", "limit"),
        ("/monitor/runs?offset=-1", "offset"),
        ("/monitor/runs?outcome=won", "outcome"),
        ("/monitor/runs?since=yesterday", "since"),
        ("/monitor/runs?until=never", "until"),
        ("/monitor/runs?after=nobody", "after"),
        ("/monitor/experiments/x/report?on_fraction=2", "on_fraction"),
        ("/monitor/experiments/x/report?on_fraction=NaN", "on_fraction"),
        ("/billing/meter?days=366", "days"),
    ];
    for (path, name) in cases {
        let reply = trial.get(path, &trial.acme).await;
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{path}: {}", reply.text);
        assert_eq!(reply.at("/detail/0/loc"), json!(["query", name]), "{path}");
    }
}

#[tokio::test]
async fn the_summary_counts_what_there_is() {
    let trial = Trial::new().await;
    let empty = trial.get("/monitor/health-summary", &trial.acme).await;
    for (name, expected) in [
        ("total_runs", json!(0)),
        ("avg_score", json!(0.0)),
        ("clean_run_rate", json!(0.0)),
        ("recent_run_scores", json!([])),
    ] {
        assert_eq!(empty.json[name], expected, "{name}");
    }

    let worse = RunKey { org: "acme".to_owned(), run_id: "worse".to_owned() };
    let start = RunStart {
        run: worse.clone(),
        at_ms: 5_000,
        framework: "langchain".to_owned(),
        ..RunStart::default()
    };
    let step = |step_index, total_score| {
        let run = worse.clone();
        Change::PutStep(Arc::new(StepRow { run, step_index, total_score, ..StepRow::default() }))
    };
    let mut changes = run("acme", "alpha", "good", 1_000);
    changes.extend([Change::StartRun(Box::new(start)), step(0, 0.2), step(1, 0.9)]);
    trial.store().apply(changes).await.unwrap();
    let summary = trial.get("/monitor/health-summary", &trial.acme).await;
    let cases = [
        ("/total_runs", json!(2)),
        ("/total_steps", json!(3)),
        ("/success_runs", json!(1)),
        ("/runs_with_fires", json!(1)),
        // (0.12345 + 0.2 + 0.9) / 3
        ("/avg_score", json!(0.4078)),
        ("/peak_score", json!(0.9)),
        ("/clean_run_rate", json!(0.5)),
        ("/fires_by_monitor", json!({"streak": 1})),
        // By composite: 0.12345, 0.2 and 0.9.
        ("/steps_by_monitor_severity", json!({"low": 2, "warn": 0, "danger": 1})),
        ("/severity_by_monitor/streak", json!({"low": 0, "warn": 0, "danger": 1})),
        ("/by_framework/langchain", json!({"runs": 1, "avg_score": 0.55, "peak_score": 0.9})),
        ("/by_framework/(none)/runs", json!(1)),
        ("/recent_run_scores/0/run_id", json!("good")),
        (
            "/recent_run_scores/1",
            json!({
                "run_id": "worse", "started_at": "1970-01-01T00:00:05.000Z", "peak_score": 0.9,
                "avg_score": 0.55, "step_count": 2,
            }),
        ),
    ];
    for (at, expected) in cases {
        assert_eq!(summary.at(at), expected, "{at}");
    }
    let lately = trial.get("/monitor/health-summary?days=7", &trial.acme).await;
    assert_eq!(lately.at("/total_runs"), json!(0));
}
