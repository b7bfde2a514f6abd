//! `cargo xtask bench server`: requests per second of `rb serve`, beside a minimal `FastAPI` server of ours that runs the
//! public 0.1.0 suite.
//!
//! Both get the same bodies from the same load. **New** traces were never seen before, so every step of them is judged;
//! once with the six monitors that the public package has, and once with those that the SDKs get from our server.
//! **Growing** ones are what the SDKs send: runs that go on, each longer by a step whenever its turn comes. What they were
//! before the measured part is told to our server beforehand, as it would have been; the other one remembers nothing.
//! Where the `FastAPI` server does not know a route, there is no figure beside ours. The servers run on the same two or
//! more cores as the load, and what is durable waits for the disk, so what the disk needs is measured in the same run. Of
//! several rounds the quietest counts, and **taken away** is the share of the processors' time that others had even then.

/// The server beside ours.
mod peers;

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::load::{self, Connection, Load, Requests};
use super::process::{Server, fresh_folder};
use super::quiet::quietest;
use super::trace::{Mix, OwnedStep, trace};
use crate::{out, shell};

/// How long each figure is measured.
const MEASURED_FOR: Duration = Duration::from_secs(2);
const LENGTHS: [usize; 2] = [20, 200];
/// Growing traces grow by so many steps, around the length that is measured.
pub(in crate::bench) const GROWTH: usize = 20;
/// Runs that each connection has in hand at once.
const RUNS_EACH: usize = 60;
/// Clients that log steps.
const WRITERS: u32 = 64;
/// Writes by which the disk is measured.
const SYNCS: usize = 100;

/// Measures the rows whose names hold these words.
pub(crate) fn run(words: &str) -> Result<()> {
    if cfg!(debug_assertions) {
        let args = ["run", "--quiet", "--release", "--package", "xtask", "--", "bench", "server"];
        return shell::run(shell::cargo(&args)?.arg(words));
    }
    let ours = Server::ours(&[])?;
    let idle = ours.resident_bytes()?;
    let theirs = peers::fastapi()?;
    out::say(
        "| what | rb serve, per second | p50 | p99 | p50 at half load | p99 | FastAPI, per second | ratio | taken away |",
    );
    out::say("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    let both = Both { ours: &ours, theirs: Some(&theirs), words };
    let alone = Both { theirs: None, ..both };
    for length in LENGTHS {
        let bodies = Arc::new(Bodies::new(length + GROWTH));
        both.compare(
            &format!("evaluate, new traces of {length} steps, the same monitors"),
            4,
            &|_| Ok(bodies.new_traces(length, "heuristic")),
        )?;
        both.compare(&format!("evaluate, new traces of {length} steps"), 4, &|_| {
            Ok(bodies.new_traces(length, "semantic"))
        })?;
        both.compare(&format!("evaluate, growing traces of {length} steps"), 4, &|at| {
            bodies.growing_traces(length, at)
        })?;
    }
    let steps = logged_steps();
    alone.compare("store a step (durable)", WRITERS, &|_| Ok(log_steps(&steps)))?;
    alone.compare("retrieve E2", 4, &|_| Ok(retrieve()))?;
    let busy = ours.resident_bytes()?;
    let [sync_50, sync_99] = disk()?;
    out::say(&format!(
        "\nresident memory of `rb serve`: {:.0} MB idle, {:.0} MB after all this",
        idle / 1e6,
        busy / 1e6
    ));
    out::say(&format!(
        "the disk takes 8 KB for good in {sync_50:.1} ms (p50), {sync_99:.1} ms (p99)"
    ));
    Ok(())
}

/// Sends a server of ours a bit of everything.
pub(crate) fn train(server: &Server) -> Result<()> {
    let [short, _] = LENGTHS;
    let bodies = Arc::new(Bodies::new(short + GROWTH));
    let steps = logged_steps();
    let connections = [
        bodies.new_traces(short, "heuristic"),
        bodies.new_traces(short, "semantic"),
        bodies.growing_traces(short, Some(server.address))?,
        log_steps(&steps),
        log_steps(&steps),
        retrieve(),
    ];
    load::run(server.address, connections.into(), MEASURED_FOR, None).map(drop)
}

/// What the disk needs until a write is there for good, in milliseconds.
fn disk() -> Result<[f64; 2]> {
    let folder = fresh_folder("bench-disk")?;
    let mut file = std::fs::File::create(folder.join("synced"))?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        file.write_all(&[b'x'; 8192])?;
        let begun = Instant::now();
        file.sync_data()?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    std::fs::remove_dir_all(folder)?;
    times.sort_by(f64::total_cmp);
    Ok([50, 99].map(|percent| load::percentile(&times, percent)))
}

/// Our server, and the one beside it where it knows the route.
#[derive(Clone, Copy)]
struct Both<'a> {
    ours: &'a Server,
    theirs: Option<&'a Server>,
    /// Only rows with these words are measured.
    words: &'a str,
}

impl Both<'_> {
    /// One row: as fast as it goes, then at half of that, then the peer. Requests are made for a server that remembers,
    /// at an address, or for one that does not.
    fn compare(
        &self,
        name: &str,
        connections: u32,
        requests: &dyn Fn(Option<SocketAddr>) -> Result<Requests>,
    ) -> Result<()> {
        if !name.contains(self.words) {
            return Ok(());
        }
        let all = |at| (0..connections).map(|_| requests(at)).collect::<Result<Vec<_>>>();
        let remembers = Some(self.ours.address);
        let ours = |pace| load::run(self.ours.address, all(remembers)?, MEASURED_FOR, pace);
        let full = quietest(|| ours(None))?;
        let pace = Duration::from_secs_f64(2.0 * f64::from(connections) / full.per_second());
        let half = quietest(|| ours(Some(pace)))?;
        let theirs = self.theirs.map(|server| server.address);
        let theirs = theirs.map(|at| quietest(|| load::run(at, all(None)?, MEASURED_FOR, None)));
        out::say(&row(name, &full, &half, theirs.transpose()?.as_ref()));
        Ok(())
    }
}

fn row(name: &str, full: &Load, half: &Load, peer: Option<&Load>) -> String {
    let ms = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
    let theirs = peer.map_or("–".to_owned(), |peer| format!("{:.1}", peer.per_second()));
    let ratio = peer
        .map_or("–".to_owned(), |peer| format!("{:.0}", full.per_second() / peer.per_second()));
    format!(
        "| {name} | {:.0} | {} | {} | {} | {} | {theirs} | {ratio} | {:.1} % |",
        full.per_second(),
        ms(full.percentile(50)),
        ms(full.percentile(99)),
        ms(half.percentile(50)),
        ms(half.percentile(99)),
        peer.map_or(0.0, |peer| peer.stolen).max(full.stolen).max(half.stolen) * 100.0,
    )
}

/// The steps of a long trace as JSON, ready to be put into bodies.
pub(in crate::bench) struct Bodies {
    steps: String,
    /// Where each step ends.
    ends: Vec<usize>,
}

/// Gives every trace a first step of its own.
static TRACES: AtomicU64 = AtomicU64::new(0);

impl Bodies {
    pub(in crate::bench) fn new(length: usize) -> Self {
        let (mut steps, mut ends) = (String::new(), Vec::new());
        for one in trace(Mix::Talkative, length).iter().map(step) {
            steps.push(',');
            steps.push_str(&one);
            ends.push(steps.len());
        }
        Self { steps, ends }
    }

    fn body(&self, trace: u64, length: usize, suite: &str) -> Vec<u8> {
        let first = format!(r#"{{"thought": "This is trace {trace}."}}"#);
        let steps = &self.steps[..self.ends[length - 2]];
        let body = format!(r#"{{"model": "", "suite": "{suite}", "steps": [{first}{steps}]}}"#);
        load::post("/monitors/evaluate", &body)
    }

    fn new_traces(self: &Arc<Self>, length: usize, suite: &'static str) -> Requests {
        let this = Arc::clone(self);
        Box::new(move || Some(this.body(TRACES.fetch_add(1, Ordering::Relaxed), length, suite)))
    }

    /// Runs that take turns. A server that remembers has seen them until shortly before.
    pub(in crate::bench) fn growing_traces(
        self: &Arc<Self>,
        length: usize,
        remembers: Option<SocketAddr>,
    ) -> Result<Requests> {
        let this = Arc::clone(self);
        let begin = length - GROWTH / 2;
        let mut server = remembers.map(Connection::open).transpose()?;
        let mut runs = Vec::with_capacity(RUNS_EACH);
        for _ in 0..RUNS_EACH {
            let run = TRACES.fetch_add(1, Ordering::Relaxed);
            if let Some(server) = &mut server {
                server.call(&this.body(run, begin, "semantic"))?;
            }
            runs.push(run);
        }
        let mut at = 0;
        Ok(Box::new(move || {
            let (run, grown) = (runs[at % RUNS_EACH], 1 + at / RUNS_EACH);
            at += 1;
            (grown <= GROWTH).then(|| this.body(run, begin + grown, "semantic"))
        }))
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

/// The steps of a run as they are logged.
pub(in crate::bench) fn logged_steps() -> Arc<Vec<String>> {
    let steps = trace(Mix::Talkative, 200);
    let logged = steps.iter().enumerate().map(|(index, step)| {
        json!({
            "step_index": index,
            "thought": step.thought,
            "action": step.tool,
            "action_input": step.input,
            "observation": step.observation,
            "tokens": 1200, "input_tokens": 1000, "output_tokens": 200,
            "step_model": "claude-sonnet-4-5",
        })
        .to_string()
    });
    Arc::new(logged.collect())
}

/// Steps of runs, logged one after the other.
pub(in crate::bench) fn log_steps(steps: &Arc<Vec<String>>) -> Requests {
    let steps = Arc::clone(steps);
    let mut at = 0;
    let id = TRACES.fetch_add(1, Ordering::Relaxed);
    Box::new(move || {
        let (run, index) = (at / steps.len(), at % steps.len());
        at += 1;
        Some(load::post(&format!("/monitor/runs/bench-{id}-{run}/steps"), &steps[index]))
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
