//! Export to a collector that is unavailable at first.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use bytes::Bytes;
use serde_json::{Value, json};

use rb_runtime::otlp_export::{self, ExportRaw};

use crate::test_server::{OPERATOR, Trial};
use rb_server::config::RawConfig;

/// Collector that rejects its first request.
#[derive(Default)]
struct Collector {
    calls: AtomicU32,
    got: Mutex<Vec<(String, Value)>>,
}

async fn take(
    State(collector): State<Arc<Collector>>,
    address: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, [(&'static str, &'static str); 1]) {
    if collector.calls.fetch_add(1, Ordering::Relaxed) == 0 {
        return (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "0")]);
    }
    assert_eq!(address.path(), "/v1/logs");
    let key = headers.get("x-key").map(|key| key.to_str().unwrap().to_owned()).unwrap_or_default();
    collector.got.lock().unwrap().push((key, serde_json::from_slice(&body).unwrap()));
    (StatusCode::OK, [("content-type", "application/json")])
}

/// The attribute of a record.
fn attribute(record: &Value, name: &str) -> Value {
    let all = record["attributes"].as_array().unwrap();
    let found = all.iter().find(|pair| pair["key"] == name);
    found.map(|pair| pair["value"].clone()).unwrap_or_default()
}

#[tokio::test]
async fn findings_reach_a_collector_that_was_unavailable() {
    let collector = Arc::new(Collector::default());
    let routes = Router::new().fallback(take).with_state(Arc::clone(&collector));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let builder = hyper::server::conn::http1::Builder::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = hyper_util::service::TowerToHyperService::new(routes.clone());
            let builder = builder.clone();
            tokio::spawn(async move {
                let io = hyper_util::rt::TokioIo::new(stream);
                let _ = builder.serve_connection(io, service).await;
            });
        }
    });
    let export = ExportRaw {
        endpoint: format!("http://{address}/"),
        headers: ExportRaw::parse_headers("x-key=a%20b").unwrap(),
        protocol: "http/json".to_owned(),
        ..ExportRaw::default()
    };
    let raw = RawConfig { static_keys: vec![OPERATOR.to_owned()], export, ..RawConfig::default() };
    let config = raw.clone().check().unwrap().export.unwrap();
    let trial = Trial::with(raw).await;
    let (store, counters) = (Arc::clone(trial.store()), trial.app.runtime.metrics.exported.clone());
    let exporting = otlp_export::start(config, store, &trial.app.runtime.events, counters);
    for at in 0..12 {
        let step = json!({"step_index": at, "thought": "Again.", "action": "bash", "action_input": "pytest",
            "observation": "1 failed", "injections": if at == 11 { json!(["Look."]) } else { json!([]) },
            "injection_sources": if at == 11 { json!(["monitor"]) } else { json!([]) }});
        let reply = trial.post("/monitor/runs/r/steps", OPERATOR, &step).await;
        assert!(reply.status.is_success(), "{reply:?}");
    }
    trial.app.runtime.events.close();
    exporting.await.unwrap();
    serving.abort();
    let got = collector.got.lock().unwrap();
    let records: Vec<&Value> = got
        .iter()
        .flat_map(|(_, body)| {
            body["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap()
        })
        .collect();
    assert!(got.iter().all(|(key, _)| key == "a b"));
    let fired = records.iter().find(|record| record["eventName"] == "gen_ai.evaluation.result");
    let fired = fired.unwrap();
    assert_eq!(attribute(fired, "reasonblocks.run.id")["stringValue"], "r");
    assert!(!attribute(fired, "gen_ai.evaluation.explanation")["stringValue"].is_null());
    assert!(attribute(fired, "gen_ai.evaluation.score.value")["doubleValue"].as_f64() > Some(0.0));
    let said = records.iter().find(|record| record["eventName"] == "reasonblocks.guidance");
    let said = said.unwrap();
    assert_eq!(attribute(said, "reasonblocks.step.index")["intValue"], "11");
    assert_eq!(said["body"]["stringValue"], "Look.");
    assert_eq!(trial.app.runtime.metrics.exported.sent.get(), records.len() as u64);
    assert_eq!(trial.app.runtime.metrics.exported.lost.get(), 0);
}
