//! `cargo lab-bench gateway`: what the gateway adds to a call, beside nginx as a plain reverse proxy.
//!
//! *Growing* requests are conversations as agents send them: each has one more turn than the previous one, both suites
//! assess it, and the step is stored in SQLite. *Identical* requests repeat one body and contain no new step. Provider,
//! proxy and load share the machine; of several rounds the fastest counts.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use crate::conversation::{Conversation, Protocol};
use crate::load::{self, Load, Sender};
use crate::process::Server;
use crate::provider;

const ROUND: Duration = Duration::from_secs(2);
const ROUNDS: usize = 3;
const CONNECTIONS: usize = 8;
/// Average size of a body and number of turns.
const SIZES: [(&str, usize, usize); 3] =
    [("4 KB", 4_000, 3), ("100 KB", 100_000, 75), ("1 MB", 1_000_000, 20)];
/// Protocols and whether the response is a stream.
const KINDS: [(Protocol, bool); 3] =
    [(Protocol::Messages, false), (Protocol::Messages, true), (Protocol::Completions, false)];

pub(crate) async fn run(rb: &Path) -> Result<()> {
    let provider = provider::start().await?;
    let (rb, nginx) = (Server::rb(rb, provider, &[])?, Server::nginx(provider)?);
    println!(
        "| body | response | server | requests/s | p50 ms | p99 ms | CPU µs per request | of nginx |"
    );
    println!("|---|---|---|--:|--:|--:|--:|--:|");
    for (size, bytes, turns) in SIZES {
        for (protocol, is_stream) in KINDS {
            let conversation = Arc::new(Conversation::new(protocol, bytes, turns, is_stream));
            let base = measure(&nginx, false, &conversation, false).await?;
            let response = if is_stream { "stream" } else { "whole" };
            let rows = [
                ("nginx", None),
                ("rb, growing", Some(measure(&rb, true, &conversation, false).await?)),
                ("rb, identical", Some(measure(&rb, true, &conversation, true).await?)),
            ];
            for (name, row) in rows {
                let (load, cpu) = row.as_ref().unwrap_or(&base);
                println!(
                    "| {size} | {protocol:?}, {response} | {name} | {:.0} | {:.2} | {:.2} | {:.0} | {:.2} |",
                    load.per_second,
                    load.percentile_ms(50),
                    load.percentile_ms(99),
                    cpu * 1e6,
                    load.per_second / base.0.per_second,
                );
            }
        }
    }
    Ok(())
}

/// Returns the fastest of several rounds and the server's CPU seconds per request in it.
async fn measure(
    server: &Server,
    is_gateway: bool,
    conversation: &Arc<Conversation>,
    is_identical: bool,
) -> Result<(Load, f64)> {
    let sender = Sender::new(server.address, is_gateway);
    let mut best: Option<(Load, f64)> = None;
    for _ in 0..ROUNDS {
        let before = server.cpu_seconds()?;
        let load = load::run(&sender, conversation, CONNECTIONS, ROUND, is_identical).await?;
        let cpu =
            (server.cpu_seconds()? - before) / f64::from(u32::try_from(load.requests().max(1))?);
        if best.as_ref().is_none_or(|(best, _)| load.per_second > best.per_second) {
            best = Some((load, cpu));
        }
    }
    best.ok_or_else(|| anyhow::anyhow!("no round was measured"))
}

/// Sends every kind of conversation once, as training load for profile-guided optimisation.
pub(crate) async fn train(rb: &Path) -> Result<()> {
    let server = Server::rb(rb, provider::start().await?, &[])?;
    let sender = Sender::new(server.address, true);
    for (_, bytes, turns) in SIZES {
        for (protocol, is_stream) in KINDS {
            let conversation = Arc::new(Conversation::new(protocol, bytes, turns, is_stream));
            load::run(&sender, &conversation, CONNECTIONS, ROUND, false).await?;
        }
    }
    server.stop() // a process that is killed writes no profile
}
