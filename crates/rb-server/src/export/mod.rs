//! Findings out: what fired and what was said goes to an OpenTelemetry collector, as events.
//!
//! Nothing waits for it. Whoever stores a step tells it anyway; a listener takes the steps into a bounded queue, and a
//! second task looks them up, writes the events and sends them. What does not fit, or cannot be sent, is counted and
//! lost.

/// Where to.
mod config;
/// From a step to its events.
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

use crate::app::App;
use crate::events::StepEvent;
use crate::outbound::{self, Outbound};

/// Steps that may wait.
const WAITING_MAX: usize = 8_192;
/// Steps that are looked up and sent together.
const BATCH_MAX: usize = 256;
/// So long is waited for more before a batch is sent; the gateway stores its steps a moment after it tells them.
const GATHER: Duration = Duration::from_millis(500);
/// How often a step that is not stored yet, or a batch that is not taken, is tried again.
const TRIES: u32 = 4;
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// No collector may ask for a longer pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// What was sent and what was lost.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    pub(crate) sent: Counter,
    pub(crate) lost: Counter,
}

/// Begins to export, if a collector is named. The task ends once no more steps are told and the last are sent.
pub(crate) fn start(app: &App) -> Option<JoinHandle<()>> {
    let config = app.config.export.clone()?;
    let counters = app.metrics.exported.clone();
    let (queue, waiting) = mpsc::channel(WAITING_MAX);
    tokio::spawn(hear(app.events.listen(), queue, counters.lost.clone()));
    let sender = Sender { config, client: outbound::client(), counters };
    Some(tokio::spawn(sender.work(Arc::clone(&app.store), waiting)))
}

/// Takes steps as they are told. Never waits, so that it never lags.
async fn hear(
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

struct Sender {
    config: ExportConfig,
    client: Outbound,
    counters: Counters,
}

/// What became of a batch.
enum Sent {
    Taken,
    /// The same batch may be taken later.
    Later(Duration, String),
    Refused(String),
}

impl Sender {
    async fn work(self, store: Arc<dyn Store>, mut waiting: mpsc::Receiver<StepEvent>) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while waiting.recv_many(&mut batch, BATCH_MAX).await > 0 {
            tokio::time::sleep(GATHER).await;
            let room = BATCH_MAX - batch.len();
            if room > 0 && !waiting.is_empty() {
                waiting.recv_many(&mut batch, room).await;
            }
            let mut found = Vec::new();
            for step in batch.drain(..) {
                match stored(&*store, step).await {
                    Some(row) => found.extend(events::of(&row)),
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
        for again in 1..=TRIES {
            match self.try_send(body.clone(), again).await {
                Sent::Taken => {
                    self.counters.sent.inc_by(count);
                    return;
                }
                Sent::Later(pause, _) if again < TRIES => tokio::time::sleep(pause).await,
                Sent::Later(_, why) | Sent::Refused(why) => {
                    tracing::warn!(why, events = count, "findings could not be exported");
                    self.counters.lost.inc_by(count);
                    return;
                }
            }
        }
    }

    async fn try_send(&self, body: Bytes, again: u32) -> Sent {
        let mut request = Request::post(&self.config.url)
            .header(CONTENT_TYPE, self.config.encoding.content_type());
        for (name, value) in &self.config.headers {
            request = request.header(name, value);
        }
        let Ok(request) = request.body(Full::new(body)) else {
            return Sent::Refused("the address cannot be written into a request".to_owned());
        };
        let pause = Duration::from_secs(1 << again.min(5)) / 2;
        let answer = tokio::time::timeout(ANSWERS_WITHIN, self.client.request(request)).await;
        let answer = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Sent::Later(pause, error.to_string()),
            Err(_) => return Sent::Later(pause, "no answer in time".to_owned()),
        };
        let asked = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let asked = asked.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        match answer.status() {
            status if status.is_success() => Sent::Taken,
            status @ (StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT) => {
                Sent::Later(asked.unwrap_or(pause).min(PAUSE_MAX), status.to_string())
            }
            status => Sent::Refused(status.to_string()),
        }
    }
}

/// The row of a step that was told. It may come into the store a moment after it was told.
async fn stored(store: &dyn Store, step: StepEvent) -> Option<StepRow> {
    let run = RunKey { org: step.org_id, run_id: step.run_id };
    for again in 0..TRIES {
        if again > 0 {
            tokio::time::sleep(GATHER / 2).await;
        }
        let rows = store.steps(&run, step.step_index, 1).await.unwrap_or_default();
        let row = rows.into_iter().next().filter(|row| row.step_index == step.step_index);
        if row.is_some() {
            return row;
        }
    }
    None
}
