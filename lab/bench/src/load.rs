//! A closed-loop HTTP load generator: each connection sends its next request as soon as the response has arrived.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt as _;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::conversation::Conversation;

/// Makes the names of runs unique.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// Sends conversations to one server.
#[derive(Clone)]
pub(crate) struct Sender {
    client: Client<HttpConnector, Body>,
    address: SocketAddr,
    /// Uses the gateway's paths.
    is_gateway: bool,
}

impl Sender {
    pub(crate) fn new(address: SocketAddr, is_gateway: bool) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Self { client, address, is_gateway }
    }

    /// Sends one request of a run and reads the response.
    pub(crate) async fn send(
        &self,
        conversation: &Conversation,
        run: &str,
        length: usize,
    ) -> Result<()> {
        let url = format!("http://{}{}", self.address, conversation.protocol.path(self.is_gateway));
        let request = Request::post(url)
            .header("content-type", "application/json")
            .header("x-reasonblocks-key", "operator")
            .header("x-api-key", "operator")
            .header("authorization", "Bearer operator")
            .header("anthropic-version", "2023-06-01")
            .header("x-reasonblocks-run-id", run)
            .body(Body::from(conversation.body(length)))?;
        let response = self.client.request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        ensure!(status.is_success(), "request failed: {status} {}", String::from_utf8_lossy(&body));
        Ok(())
    }
}

/// Latencies of a measurement in seconds, sorted.
pub(crate) struct Load {
    pub(crate) per_second: f64,
    latencies: Vec<f64>,
}

impl Load {
    pub(crate) fn requests(&self) -> usize {
        self.latencies.len()
    }

    /// The latency that `percent` of the requests stay below, in milliseconds.
    pub(crate) fn percentile_ms(&self, percent: usize) -> f64 {
        self.latencies.get(self.latencies.len() * percent / 100).copied().unwrap_or(f64::NAN) * 1e3
    }
}

/// Sends growing conversations on `connections` connections for `duration`; a finished conversation is followed by the next
/// run. With `is_identical` each connection repeats one request instead.
pub(crate) async fn run(
    sender: &Sender,
    conversation: &Arc<Conversation>,
    connections: usize,
    duration: Duration,
    is_identical: bool,
) -> Result<Load> {
    let started = Instant::now();
    let workers: Vec<_> = (0..connections)
        .map(|_| {
            let (sender, conversation) = (sender.clone(), Arc::clone(conversation));
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                let (mut run, mut length) = (next_run(), conversation.turns() / 2);
                while started.elapsed() < duration {
                    if !is_identical {
                        length += 1;
                        if length > conversation.turns() {
                            (run, length) = (next_run(), 1);
                        }
                    }
                    let sent = Instant::now();
                    sender.send(&conversation, &run, length).await?;
                    latencies.push(sent.elapsed().as_secs_f64());
                }
                anyhow::Ok(latencies)
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for worker in workers {
        latencies.extend(worker.await??);
    }
    latencies.sort_by(f64::total_cmp);
    let count = f64::from(u32::try_from(latencies.len())?);
    Ok(Load { per_second: count / started.elapsed().as_secs_f64(), latencies })
}

fn next_run() -> String {
    format!("bench-{}", RUNS.fetch_add(1, Ordering::Relaxed))
}
