//! Import of transcripts through the whole server.

use std::io::Write as _;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use serde_json::json;

use crate::test_server::{OPERATOR, Reply, Trial};
use rb_server::config::RawConfig;

/// Two runs with steps, a run without steps, and an invalid line.
const LINES: &str = concat!(
    "{\"run_id\": \"first\", \"task\": \"t\", \"steps\": [{\"thought\": \"I read.\"}, {\"thought\": \"I write.\"}]}\n",
    "oops\n",
    "{\"steps\": [{\"thought\": \"Who am I?\"}]}\n",
    "{\"run_id\": \"empty\", \"steps\": []}\n",
);

async fn import(trial: &Trial, query: &str, body: &str) -> Reply {
    let path = format!("/v1/monitor/import?{query}");
    trial.send(&Method::POST, &path, &trial.acme, body.to_owned()).await
}

#[tokio::test]
async fn a_transcript_is_read_judged_and_stored_once() {
    let trial = Trial::new().await;
    let first = import(&trial, "file=a/night.jsonl&line=11", LINES).await;
    assert_eq!(first.status, StatusCode::OK, "{}", first.text);
    let counts = ["runs", "steps", "new_runs", "same_runs", "empty_runs", "complaint_count"];
    let counted = |reply: &Reply| counts.map(|name| reply.json[name].as_u64().unwrap());
    assert_eq!(counted(&first), [2, 3, 2, 0, 1, 1]);
    assert_eq!((first.at("/format"), first.at("/complaints/0/line")), (json!("runs"), json!(12)));
    assert_eq!(first.at("/complaints/0/is_loss"), json!(true));
    let run = trial.get("/v1/monitor/runs/night:13", &trial.acme).await;
    assert_eq!(run.at("/steps/0/thought"), json!("Who am I?"), "{}", run.text);
    let again = import(&trial, "file=a/night.jsonl&line=11", LINES).await;
    assert_eq!(counted(&again), [2, 3, 0, 2, 1, 1]);
    let hidden = trial.get("/v1/monitor/runs/first", &trial.globex).await;
    assert_eq!(hidden.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_body_may_be_packed() {
    let trial = Trial::new().await;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(LINES.as_bytes()).unwrap();
    let request = Request::post("/v1/monitor/import")
        .header("authorization", format!("Bearer {}", trial.acme))
        .header("content-encoding", "gzip");
    let reply = trial.browse(request.body(Body::from(packed.finish().unwrap())).unwrap()).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
    assert!(reply.text.contains("\"runs\":2"), "{}", reply.text);
}

#[tokio::test]
async fn what_cannot_be_taken_is_refused_with_the_reason() {
    let raw = RawConfig {
        static_keys: vec![OPERATOR.to_owned()],
        max_body_bytes: 500,
        ..RawConfig::default()
    };
    let trial = Trial::with(raw).await;
    let long = LINES.repeat(3);
    for (query, body, status, said) in [
        ("", "hello", StatusCode::BAD_REQUEST, "docs/transcripts.md"),
        ("format=words", LINES, StatusCode::UNPROCESSABLE_ENTITY, "claude-code"),
        ("line=x", LINES, StatusCode::UNPROCESSABLE_ENTITY, "line"),
        ("", long.as_str(), StatusCode::PAYLOAD_TOO_LARGE, "500"),
    ] {
        let reply = import(&trial, query, body).await;
        assert_eq!(reply.status, status, "{query}: {}", reply.text);
        assert!(reply.text.contains(said), "{query}: {}", reply.text);
    }
}
