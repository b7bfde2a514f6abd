//! Tracing span and panics of gateway requests.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use rb_testkit::Fault;
use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

use super::Stage;
use super::dialects::{Dialect, obliging};

#[tokio::test]
async fn a_panic_is_answered_and_counted() {
    let stage = Stage::new(obliging).await;
    stage.store.set_fault(Fault::PanicOnRead);
    let got = stage.post("/v1/findings/repo/search", &[], r#"{"query": "x"}"#).await;
    assert_eq!(got.status, 500, "{}", got.text());
    assert!(got.json()["detail"].is_string(), "{}", got.text());
    assert!(got.header("x-request-id").is_some(), "the log has it under an id");
    let metrics = stage.app.runtime.metrics.text();
    assert!(
        metrics.contains(r#"route="/findings/{codebase_id}/search",status="500"} 1"#),
        "{metrics}"
    );
}

/// Log lines of a test.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Log {
    /// Returns the span of the completed request with this id.
    fn span(&self, id: &str) -> Value {
        let log = String::from_utf8(self.0.lock().clone()).unwrap();
        let mut lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let found = lines.find(|line| {
            line["fields"]["message"] == "request completed" && line["span"]["id"] == id
        });
        found.map(|line| line["span"].clone()).unwrap_or_default()
    }
}

#[tokio::test]
async fn the_span_of_a_gateway_request_has_its_run_and_its_decision() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(log.clone())
        .finish();
    // The only subscriber of this binary: callsites do not register with one that is local to a thread.
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let stage = Stage::new(obliging).await;
    for (mode, decision) in [("observe", "observed"), ("off", "off")] {
        let headers = [
            ("x-reasonblocks-run-id", "spanned"),
            ("x-reasonblocks-mode", mode),
            ("x-request-id", mode),
        ];
        let body = Dialect::Chat.request("m", &Dialect::Chat.history(2));
        assert_eq!(stage.post(Dialect::Chat.path(), &headers, &body).await.status, 200);
        let span = log.span(mode);
        let expected = [
            ("name", Value::from("request")),
            ("method", Value::from("POST")),
            ("route", Value::from("/openai/{*path}")),
            ("status", Value::from(200)),
            ("dialect", Value::from("openai-chat")),
            ("decision", Value::from(decision)),
        ];
        for (field, value) in expected {
            assert_eq!(span[field], value, "{mode}: {field} of {span}");
        }
        if mode == "observe" {
            assert_eq!(
                (&span["run_id"], &span["conflicts"]),
                (&Value::from("spanned"), &Value::from(0))
            );
        }
    }
}
