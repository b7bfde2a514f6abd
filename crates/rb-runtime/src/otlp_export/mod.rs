//! Export of fired monitors and guidance to an OpenTelemetry collector, as log events.
//!
//! Never blocks the storing of steps: one task moves step events into a bounded queue, a second one reads the rows and
//! sends them in batches. Events that do not fit into the queue or cannot be sent are counted and dropped.

/// Settings of the collector.
mod config;
/// Conversion of a step to events.
mod events;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::{Request, StatusCode};
use prometheus_client::metrics::counter::Counter;
use rb_store::{RunKey, StepRow, Store};
use rb_wire::otlp::{self, Event};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;

pub use config::{ExportConfig, ExportRaw};

use crate::events::{Events, StepEvent};
use crate::http_client::{self, HttpClient};
use crate::metrics::ExportCounters;

const QUEUE_CAPACITY: usize = 8_192;
/// Steps per request.
const MAX_BATCH: usize = 256;
/// Wait for more steps before a batch is sent. The gateway stores a step shortly after its event.
const BATCH_LINGER: Duration = Duration::from_millis(500);
/// Attempts to read a step or to send a batch.
const MAX_ATTEMPTS: u32 = 4;
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum honoured `Retry-After`.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

/// Starts the export. The returned task ends after `events` is closed and the queue is empty.
pub fn start(
    config: ExportConfig,
    store: Arc<dyn Store>,
    events: &Events,
    counters: ExportCounters,
) -> JoinHandle<()> {
    let (queue, queued) = mpsc::channel(QUEUE_CAPACITY);
    tokio::spawn(enqueue(events.subscribe(), queue, counters.lost.clone()));
    let exporter = Exporter { config, client: http_client::new(), counters };
    tokio::spawn(exporter.run(store, queued))
}

/// Moves events into the queue without blocking, so that the subscription does not lag.
async fn enqueue(
    mut steps: broadcast::Receiver<StepEvent>,
    queue: mpsc::Sender<StepEvent>,
    lost: Counter,
) {
    loop {
        match steps.recv().await {
            Ok(step) => {
                if queue.try_send(step).is_err() {
                    lost.inc();
                }
            }
            Err(RecvError::Lagged(steps)) => drop(lost.inc_by(steps)),
            Err(RecvError::Closed) => return,
        }
    }
}

struct Exporter {
    config: ExportConfig,
    client: HttpClient,
    counters: ExportCounters,
}

/// Result of one request.
enum SendOutcome {
    Accepted,
    /// Delay before the next attempt, and the reason.
    Retry(Duration, String),
    Rejected(String),
}

impl Exporter {
    async fn run(self, store: Arc<dyn Store>, mut queued: mpsc::Receiver<StepEvent>) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while queued.recv_many(&mut batch, MAX_BATCH).await > 0 {
            tokio::time::sleep(BATCH_LINGER).await;
            let room = MAX_BATCH - batch.len();
            if room > 0 && !queued.is_empty() {
                queued.recv_many(&mut batch, room).await;
            }
            let mut found = Vec::new();
            for step in batch.drain(..) {
                match stored_row(&*store, step).await {
                    Some(row) => found.extend(events::from_row(&row)),
                    None => drop(self.counters.lost.inc()),
                }
            }
            if !found.is_empty() {
                self.send(&found).await;
            }
        }
    }

    async fn send(&self, events: &[Event]) {
        let count = events.len() as u64;
        let body = otlp::events_request(self.config.encoding, &self.config.source, events);
        let body = Bytes::from(body);
        for attempt in 1..=MAX_ATTEMPTS {
            match self.try_send(body.clone(), attempt).await {
                SendOutcome::Accepted => {
                    self.counters.sent.inc_by(count);
                    return;
                }
                SendOutcome::Retry(delay, _) if attempt < MAX_ATTEMPTS => {
                    tokio::time::sleep(delay).await;
                }
                SendOutcome::Retry(_, reason) | SendOutcome::Rejected(reason) => {
                    tracing::warn!(reason, events = count, "findings not exported");
                    self.counters.lost.inc_by(count);
                    return;
                }
            }
        }
    }

    async fn try_send(&self, body: Bytes, attempt: u32) -> SendOutcome {
        let mut request = Request::post(&self.config.url)
            .header(CONTENT_TYPE, self.config.encoding.content_type());
        for (name, value) in &self.config.headers {
            request = request.header(name, value);
        }
        let Ok(request) = request.body(Full::new(body)) else {
            return SendOutcome::Rejected("invalid address".to_owned());
        };
        let backoff = Duration::from_secs(1 << attempt.min(5)) / 2;
        let response = tokio::time::timeout(RESPONSE_TIMEOUT, self.client.request(request)).await;
        let response = match response {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return SendOutcome::Retry(backoff, error.to_string()),
            Err(_) => return SendOutcome::Retry(backoff, "no response in time".to_owned()),
        };
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = retry_after.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        match response.status() {
            status if status.is_success() => SendOutcome::Accepted,
            status @ (StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT) => {
                let delay = retry_after.unwrap_or(backoff).min(MAX_RETRY_DELAY);
                SendOutcome::Retry(delay, status.to_string())
            }
            status => SendOutcome::Rejected(status.to_string()),
        }
    }
}

/// Reads the row of a step, which may be stored shortly after its event.
async fn stored_row(store: &dyn Store, step: StepEvent) -> Option<StepRow> {
    let run = RunKey { org: step.org_id, run_id: step.run_id };
    for attempt in 0..MAX_ATTEMPTS {
        if attempt > 0 {
            tokio::time::sleep(BATCH_LINGER / 2).await;
        }
        let rows = store.steps(&run, step.step_index, 1).await.unwrap_or_default();
        let row = rows.into_iter().next().filter(|row| row.step_index == step.step_index);
        if row.is_some() {
            return row;
        }
    }
    None
}
