//! Received spans: parts of a trace in any order, encodings, compression, limits, and tenants.

use std::io::Write as _;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::test_server::{OPERATOR, Reply, Trial};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

async fn post(trial: &Trial, key: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Reply {
    let mut request =
        Request::post("/otlp/v1/traces").header("authorization", format!("Bearer {key}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    trial.browse(request.body(Body::from(body)).unwrap()).await
}

async fn send(trial: &Trial, key: &str, spans: &[Value]) -> Reply {
    let body = json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] });
    post(trial, key, &[("content-type", "application/json")], body.to_string().into_bytes()).await
}

fn span(id: u64, parent: Option<u64>, attributes: &Value) -> Value {
    let pair =
        |(key, value): (&String, &Value)| json!({ "key": key, "value": { "stringValue": value } });
    let attributes: Vec<Value> = attributes.as_object().unwrap().iter().map(pair).collect();
    let nanos = |ms: u64| format!("{ms}000000");
    let mut span = json!({
        "traceId": TRACE, "spanId": format!("{id:016x}"), "name": "span", "attributes": attributes,
        "startTimeUnixNano": nanos(1_700_000_000_000 + id), "endTimeUnixNano": nanos(1_700_000_000_001 + id),
    });
    if let Some(parent) = parent {
        span["parentSpanId"] = format!("{parent:016x}").into();
    }
    span
}

fn thinks(id: u64, text: &str, call: &str) -> Value {
    let said = json!([{ "role": "assistant", "parts": [
        { "type": "text", "content": text },
        { "type": "tool_call", "id": call, "name": "bash", "arguments": { "command": "pytest" } },
    ]}]);
    let told = json!([{ "role": "user", "parts": [{ "type": "text", "content": "Mend it." }] }]);
    let attributes = json!({
        "gen_ai.operation.name": "chat", "gen_ai.response.model": "m-1",
        "gen_ai.input.messages": told.to_string(), "gen_ai.output.messages": said.to_string(),
    });
    span(id, Some(1), &attributes)
}

fn acts(id: u64, call: &str) -> Value {
    let attributes = json!({ "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "bash",
        "gen_ai.tool.call.id": call, "gen_ai.tool.call.result": format!("1 failed in {call}") });
    span(id, Some(1), &attributes)
}

fn agent() -> Value {
    let about = json!({ "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "mender", "session.id": "s" });
    span(1, None, &about)
}

/// Returns the observations of the run's steps, in order.
async fn seen(trial: &Trial, key: &str) -> Vec<Value> {
    let run = trial.get(&format!("/monitor/runs/{TRACE}"), key).await;
    let steps = run.at("/steps");
    steps.as_array().into_iter().flatten().map(|step| step["observation"].clone()).collect()
}

#[tokio::test]
async fn a_trace_grows_with_every_piece_in_any_order() {
    let trial = Trial::new().await;
    let key = trial.acme.clone();
    // The second turn arrives before the first, the agent span last, and one part twice.
    let pieces: [&[Value]; 4] = [
        &[thinks(6, "Again.", "b"), acts(7, "b")],
        &[thinks(2, "First.", "a")],
        &[thinks(2, "First.", "a"), acts(3, "a")],
        &[agent()],
    ];
    let counts = [1, 2, 2, 2];
    for (piece, count) in pieces.into_iter().zip(counts) {
        let reply = send(&trial, &key, piece).await;
        assert_eq!((reply.status, reply.text.as_str()), (StatusCode::OK, "{}"));
        assert_eq!(seen(&trial, &key).await.len(), count);
    }
    assert_eq!(seen(&trial, &key).await, ["1 failed in a", "1 failed in b"]);
    let run = trial.get(&format!("/monitor/runs/{TRACE}"), &key).await;
    assert_eq!((run.at("/agent_name"), run.at("/model")), (json!("mender"), json!("m-1")));
    assert_eq!((run.at("/task"), run.at("/framework")), (json!("Mend it."), json!("otlp")));
    assert_eq!(run.at("/metadata/session_id"), "s");
    let runs = trial.get("/monitor/runs", &key).await;
    assert_eq!(runs.json.as_array().map(Vec::len), Some(1), "{}", runs.text);
}

#[tokio::test]
async fn a_trace_goes_on_after_a_restart() {
    let trial = Trial::new().await;
    let key = trial.acme.clone();
    send(&trial, &key, &[thinks(2, "First.", "a"), acts(3, "a")]).await;
    let trial = trial.restarted().await;
    // The client sends the last part again, as after a lost response.
    send(&trial, &key, &[thinks(2, "First.", "a"), acts(3, "a")]).await;
    assert_eq!(seen(&trial, &key).await.len(), 1);
    let trial = trial.restarted().await;
    send(&trial, &key, &[thinks(6, "Again.", "b"), acts(7, "b")]).await;
    send(&trial, &key, &[thinks(8, "Once more.", "c"), acts(9, "c"), agent()]).await;
    assert_eq!(seen(&trial, &key).await, ["1 failed in a", "1 failed in b", "1 failed in c"]);
}

#[tokio::test]
async fn a_loop_is_noticed_and_nobody_elses_is_touched() {
    let trial = Trial::new().await;
    let mut spans = vec![agent()];
    for at in 0..8 {
        let call = format!("c{at}");
        spans.push(thinks(2 + 2 * at, "Let me run the tests again.", &call));
        spans.push(acts(3 + 2 * at, &call));
    }
    let mut heard = trial.app.runtime.events.subscribe();
    send(&trial, &trial.acme, &spans).await;
    let run = trial.get(&format!("/monitor/runs/{TRACE}"), &trial.acme).await;
    assert!(!run.at("/steps/7/signals").as_array().unwrap().is_empty(), "{}", run.text);
    assert_eq!(run.at("/injected_steps"), 0);
    assert_eq!(heard.try_recv().unwrap().run_id, TRACE);
    // The same trace id of another organisation is another run; a key of another project cannot change this run.
    send(&trial, &trial.globex, &[thinks(2, "Mine.", "z")]).await;
    send(&trial, &trial.alpha, &[thinks(2, "Mine.", "z")]).await;
    assert_eq!(seen(&trial, &trial.acme).await.len(), 8);
    assert_eq!(seen(&trial, &trial.globex).await.len(), 1);
}

#[tokio::test]
async fn forms_packings_and_refusals() {
    let trial = Trial::new().await;
    let (json, protobuf) = ("application/json", "application/x-protobuf");
    let nameless = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"x"}]}]}]}"#;
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(nameless).unwrap();
    let packed = packed.finish().unwrap();
    let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
    bomb.write_all(&vec![b' '; 40 << 20]).unwrap();
    let bomb = bomb.finish().unwrap();
    let cases: [(&str, &str, &[u8], u16, &str); 9] = [
        (json, "", b"{}", 200, "{}"),
        (protobuf, "", b"", 200, ""),
        (json, "", nameless, 200, "\"rejectedSpans\":\"1\""),
        (json, "gzip", &packed, 200, "\"rejectedSpans\":\"1\""),
        (json, "gzip", &bomb, 413, "larger"),
        (json, "br", b"{}", 415, "gzip"),
        (json, "gzip", b"{}", 400, "gzip"),
        (protobuf, "", b"\xff\xff", 400, "protobuf"),
        ("text/plain", "", b"x", 415, "application/x-protobuf"),
    ];
    for (content_type, packing, body, status, said) in cases {
        let mut headers = vec![("content-type", content_type)];
        if !packing.is_empty() {
            headers.push(("content-encoding", packing));
        }
        let reply = post(&trial, OPERATOR, &headers, body.to_vec()).await;
        assert_eq!(reply.status.as_u16(), status, "{content_type} {packing}: {}", reply.text);
        assert!(reply.text.contains(said), "{content_type} {packing}: {}", reply.text);
        if content_type != "text/plain" {
            assert_eq!(reply.headers["content-type"], content_type);
        }
    }
    let reply = post(&trial, "wrong", &[("content-type", json)], b"{}".to_vec()).await;
    assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
}
