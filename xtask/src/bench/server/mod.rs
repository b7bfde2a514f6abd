//! `cargo xtask bench server`: requests per second of `rb serve`, beside a minimal `FastAPI` server of ours that runs the
//! public 0.1.0 suite.
//!
//! Both get the same bodies from the same load. **New** traces were never seen before; **growing** ones are what the
//! SDKs send: the same run, longer by a step each time. Where the `FastAPI` server does not know a route, there is no
//! figure beside ours. The servers run on the same two or more cores as the load.

/// The server beside ours.
mod peers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::load::{self, Load, Requests};
use super::process::Server;
use super::trace::{Mix, OwnedStep, trace};
use crate::out;

/// How long each figure is measured.
const MEASURED_FOR: Duration = Duration::from_secs(4);
const LENGTHS: [usize; 2] = [20, 200];
/// Growing traces grow by so many steps before a new one begins.
const GROWTH: usize = 20;
const WRITERS: u32 = 64;

pub(crate) fn run() -> Result<()> {
    let ours = Server::ours(&[])?;
    let idle = ours.resident_bytes()?;
    let theirs = peers::fastapi()?;
    out::say(
        "| what | rb serve, per second | p50 | p99 | p99 at half load | FastAPI, per second | ratio |",
    );
    out::say("|---|--:|--:|--:|--:|--:|--:|");
    for length in LENGTHS {
        let body = Arc::new(Bodies::new(length + GROWTH));
        let new = |connection| body.new_traces(length, connection);
        compare(&format!("evaluate, new traces of {length} steps"), &ours, Some(&theirs), 4, &new)?;
        let growing = |connection| body.growing_traces(length, connection);
        compare(
            &format!("evaluate, growing traces of {length} steps"),
            &ours,
            Some(&theirs),
            4,
            &growing,
        )?;
    }
    let steps = Arc::new(trace(Mix::Talkative, 200));
    let log = |connection| log_steps(&steps, connection);
    compare("store a step (durable)", &ours, None, WRITERS, &log)?;
    compare("retrieve E2", &ours, None, 4, &|_| retrieve())?;
    let busy = ours.resident_bytes()?;
    out::say(&format!(
        "\nresident memory of `rb serve`: {:.0} MB idle, {:.0} MB after all this",
        idle / 1e6,
        busy / 1e6
    ));
    Ok(())
}

/// One row: as fast as it goes, then at half of that, then the peer.
fn compare(
    name: &str,
    ours: &Server,
    theirs: Option<&Server>,
    connections: u32,
    requests: &dyn Fn(u32) -> Requests,
) -> Result<()> {
    let all = |from: u32| (from..from + connections).map(requests).collect::<Vec<_>>();
    let full = load::run(ours.address, all(0), MEASURED_FOR, None)?;
    let pace = Duration::from_secs_f64(2.0 * f64::from(connections) / full.per_second());
    let half = load::run(ours.address, all(1_000), MEASURED_FOR, Some(pace))?;
    let peer = match theirs {
        Some(theirs) => Some(load::run(theirs.address, all(2_000), MEASURED_FOR, None)?),
        None => None,
    };
    out::say(&row(name, &full, &half, peer.as_ref()));
    Ok(())
}

fn row(name: &str, full: &Load, half: &Load, peer: Option<&Load>) -> String {
    let ms = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
    let theirs = peer.map_or("–".to_owned(), |peer| format!("{:.1}", peer.per_second()));
    let ratio = peer
        .map_or("–".to_owned(), |peer| format!("{:.0}", full.per_second() / peer.per_second()));
    format!(
        "| {name} | {:.0} | {} | {} | {} | {theirs} | {ratio} |",
        full.per_second(),
        ms(full.percentile(50)),
        ms(full.percentile(99)),
        ms(half.percentile(99)),
    )
}

/// The steps of a long trace as JSON, ready to be put into bodies.
struct Bodies {
    steps: Vec<String>,
}

/// Gives every trace a first step of its own.
static TRACES: AtomicU64 = AtomicU64::new(0);

impl Bodies {
    fn new(length: usize) -> Self {
        Self { steps: trace(Mix::Talkative, length).iter().map(step).collect() }
    }

    fn body(&self, trace: u64, length: usize) -> Vec<u8> {
        let first = format!(r#"{{"thought": "This is trace {trace}."}}"#);
        let steps = self.steps[..length - 1].join(",");
        load::post("/monitors/evaluate", &format!(r#"{{"model": "", "steps": [{first},{steps}]}}"#))
    }

    fn new_traces(self: &Arc<Self>, length: usize, _: u32) -> Requests {
        let this = Arc::clone(self);
        Box::new(move || Some(this.body(TRACES.fetch_add(1, Ordering::Relaxed), length)))
    }

    fn growing_traces(self: &Arc<Self>, length: usize, _: u32) -> Requests {
        let this = Arc::clone(self);
        let (mut trace, mut grown) = (0, GROWTH);
        Box::new(move || {
            if grown == GROWTH {
                (trace, grown) = (TRACES.fetch_add(1, Ordering::Relaxed), 0);
            }
            grown += 1;
            Some(this.body(trace, length + grown - GROWTH / 2))
        })
    }
}

fn step(step: &OwnedStep) -> String {
    json!({
        "thought": step.thought,
        "action": step.tool,
        "action_input": step.input,
        "observation": step.observation,
        "observation_is_error": false,
    })
    .to_string()
}

/// Steps of runs, logged one after the other.
fn log_steps(steps: &Arc<Vec<OwnedStep>>, connection: u32) -> Requests {
    let steps = Arc::clone(steps);
    let mut at = 0;
    let id = TRACES.fetch_add(1, Ordering::Relaxed);
    Box::new(move || {
        let (run, index) = (at / steps.len(), at % steps.len());
        let step = &steps[index];
        at += 1;
        let body = json!({
            "step_index": index,
            "thought": step.thought,
            "action": step.tool,
            "action_input": step.input,
            "observation": step.observation,
            "tokens": 1200, "input_tokens": 1000, "output_tokens": 200,
            "step_model": "claude-sonnet-4-5",
        });
        let path = format!("/monitor/runs/bench-{connection}-{id}-{run}/steps");
        Some(load::post(&path, &body.to_string()))
    })
}

fn retrieve() -> Requests {
    let body = json!({
        "context": "The same test fails again with the same error, so I run it once more.",
        "tier": "e2", "level": "e2", "top_k": 2, "model": "", "failure_type": "loop",
    });
    let request = load::post("/traces/retrieve", &body.to_string());
    Box::new(move || Some(request.clone()))
}
