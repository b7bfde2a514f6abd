//! `cargo xtask bench gateway`: what the gateway adds to a call, beside nginx as a plain reverse proxy and `LiteLLM`'s
//! proxy, all before the same trivial provider and under the same load, on the same cores as that load.
//!
//! Requests are growing conversations, as agents send them: one more turn each time, under the name of a run, with the
//! monitors at work and every step stored in `SQLite`. **Identical** is the same request again and again, which is less work.
//! **Half load** is half of what our gateway does at most; the same pace goes to everybody, and to the provider alone.
//! Of several rounds the quietest counts, and **taken away** is the share of the processors' time that others had even then.

/// What stands beside our gateway.
mod peers;
/// Conversations as agents hold them.
mod talk;
/// A trivial provider.
mod upstream;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::load::{self, Connection, Load, Requests, percentile};
use super::process::Server;
use super::quiet::quietest;
use crate::{out, shell};
use talk::{Protocol, Talk};
use upstream::{HELD, PACED, PLAIN};

/// How long each figure is measured.
const MEASURED_FOR: Duration = Duration::from_secs(2);
const CONNECTIONS: usize = 8;
/// The sizes of bodies on average, and the turns by which a conversation grows around them.
const SIZES: [(&str, (usize, usize)); 3] =
    [("4 KB", (4_000, 3)), ("100 KB", (100_000, 75)), ("1 MB", (1_000_000, 20))];
/// The same for streams that are looked at one by one.
const MIDDLE: (usize, usize) = SIZES[1].1;
/// The kinds of calls, and whether the answer is a stream.
const KINDS: [(Protocol, bool); 3] =
    [(Protocol::Messages, false), (Protocol::Messages, true), (Protocol::Completions, false)];
/// Streams that are held open at once to see what one of them needs.
const HELD_STREAMS: u32 = 500;

/// Somebody that answers.
struct Peer<'a> {
    name: &'static str,
    address: SocketAddr,
    /// The process, where it is one of its own.
    server: Option<&'a Server>,
    is_ours: bool,
    /// Too slow for the pace of the others.
    is_slow: bool,
}

/// Measures the rows whose names hold these words; without any, all of them, and `LiteLLM` too.
pub(crate) fn run(words: &str) -> Result<()> {
    if cfg!(debug_assertions) {
        let args = ["run", "--quiet", "--release", "--package", "xtask", "--", "bench", "gateway"];
        return shell::run(shell::cargo(&args)?.arg(words));
    }
    let provider = provider()?;
    let ours = peers::ours(provider)?;
    let nginx = peers::nginx(provider)?;
    let litellm = words.is_empty().then(|| peers::litellm(provider)).and_then(|started| {
        started
            .inspect_err(|error| out::complain(&format!("no figures of LiteLLM: {error:#}")))
            .ok()
    });
    let alone = Peer {
        name: "provider alone",
        address: provider,
        server: None,
        is_ours: false,
        is_slow: false,
    };
    let mut all =
        vec![Peer { is_ours: true, ..Peer::of("rb", &ours) }, alone, Peer::of("nginx", &nginx)];
    all.extend(
        litellm.as_ref().map(|server| Peer { is_slow: true, ..Peer::of("LiteLLM", server) }),
    );
    throughput(&all, words)?;
    half_load(&all, words)?;
    if "gaps".contains(words) {
        paced(&all)?;
    }
    if "memory".contains(words) {
        memory(&ours)?;
    }
    out::say(&format!("load of the machine: {}", machine_load()));
    Ok(())
}

/// A trivial provider; it ends with the process.
pub(crate) fn provider() -> Result<SocketAddr> {
    upstream::start()
}

/// What `rb serve` is told so that it stands before a provider.
pub(crate) fn before(provider: SocketAddr) -> [(&'static str, String); 2] {
    ["RB_UPSTREAM_ANTHROPIC", "RB_UPSTREAM_OPENAI"].map(|name| (name, format!("http://{provider}")))
}

/// Sends a server of ours a bit of everything.
pub(crate) fn train(server: &Server) -> Result<()> {
    let ours = Peer { is_ours: true, ..Peer::of("rb", server) };
    for (_, shape) in SIZES {
        for (protocol, is_stream) in KINDS {
            let talk = Arc::new(Talk::new(protocol, shape, PLAIN, is_stream));
            let path = ours.path(protocol);
            ours.load((0..CONNECTIONS).map(|_| talk.growing(path)).collect(), None)?;
        }
    }
    Ok(())
}

fn machine_load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

impl<'a> Peer<'a> {
    fn of(name: &'static str, server: &'a Server) -> Self {
        Self { name, address: server.address, server: Some(server), is_ours: false, is_slow: false }
    }

    /// Sends it requests for a while, and counts its processor time too.
    fn load(&self, connections: Vec<Requests>, pace: Option<Duration>) -> Result<Load> {
        let processor = || self.server.map_or(Ok(f64::NAN), Server::processor_seconds);
        let before = processor()?;
        let load = load::run(self.address, connections, MEASURED_FOR, pace)?;
        Ok(Load { processor_seconds: processor()? - before, ..load })
    }

    fn path(&self, protocol: Protocol) -> &'static str {
        if self.is_ours { protocol.path_of_ours() } else { protocol.path() }
    }
}

/// Sends growing conversations to a peer.
fn growing(
    peer: &Peer<'_>,
    talk: &Arc<Talk>,
    count: usize,
    pace: Option<Duration>,
) -> Result<Load> {
    let path = peer.path(Protocol::Messages);
    quietest(|| peer.load((0..count).map(|_| talk.growing(path)).collect(), pace))
}

/// Requests a second, as fast as they are answered.
fn throughput(all: &[Peer<'_>], words: &str) -> Result<()> {
    out::say(&format!("load of the machine: {}\n", machine_load()));
    out::say("Requests a second, growing conversations; ours also with identical requests\n");
    let names: Vec<&str> = all.iter().map(|peer| peer.name).collect();
    out::say(&format!(
        "| body | answer | {} | rb, identical | rb / nginx | identical / nginx | rb / LiteLLM | identical / LiteLLM | µs of processor time: rb, identical, nginx | taken away |",
        names.join(" | ")
    ));
    out::say(&format!("|---|---{}|--:|--:|--:|--:|--:|--:|--:|", "|--:".repeat(names.len())));
    for (size, shape) in SIZES {
        for (protocol, is_stream) in KINDS {
            let answer = format!("{}, {}", protocol.name(), whole_or_stream(is_stream));
            if !format!("{size}, {answer}").contains(words) {
                continue;
            }
            let talk_of = |model| Arc::new(Talk::new(protocol, shape, model, is_stream));
            let talk = talk_of(PLAIN);
            let mut loads = Vec::new();
            for peer in all {
                // LiteLLM is told by the name of a model which protocol the provider speaks.
                let is_renamed = peer.is_slow && protocol == Protocol::Completions;
                let talk = if is_renamed { &talk_of(peers::COMPLETIONS) } else { &talk };
                loads.push(full(peer, protocol, |path| talk.growing(path))?);
            }
            let identical = full(&all[0], protocol, |path| talk.identical(path))?;
            let processor = [&loads[0], &identical, &loads[2]]
                .map(|load| format!("{:.0}", load.processor_seconds_each() * 1e6));
            let stolen = loads.iter().map(|load| load.stolen).fold(identical.stolen, f64::max);
            let identical = identical.per_second();
            let rates: Vec<f64> = loads.iter().map(Load::per_second).collect();
            let cells: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
            let ratio =
                |ours: f64, at: usize| rates.get(at).map_or(f64::NAN, |theirs| ours / theirs);
            out::say(&format!(
                "| {size} | {answer} | {} | {identical:.0} | {:.2} | {:.2} | {:.0} | {:.0} | {} | {:.1} % |",
                cells.join(" | "),
                ratio(rates[0], 2),
                ratio(identical, 2),
                ratio(rates[0], 3),
                ratio(identical, 3),
                processor.join(", "),
                stolen * 100.0,
            ));
        }
    }
    Ok(())
}

/// As many requests as are answered on all connections.
fn full(
    peer: &Peer<'_>,
    protocol: Protocol,
    requests: impl Fn(&'static str) -> Requests,
) -> Result<Load> {
    quietest(|| peer.load((0..CONNECTIONS).map(|_| requests(peer.path(protocol))).collect(), None))
}

/// Latencies at half of what our gateway does at most.
fn half_load(all: &[Peer<'_>], words: &str) -> Result<()> {
    out::say("\nLatency at half load; added is what lies above the provider alone\n");
    out::say(
        "| body | answer | who | p50 | p99 | added p50 | added p99 | first byte p50 | first byte p99 | taken away |",
    );
    out::say("|---|---|---|--:|--:|--:|--:|--:|--:|--:|");
    for (size, shape) in SIZES {
        for is_stream in [false, true] {
            let answer = whole_or_stream(is_stream);
            if !format!("half load, {size}, {answer}").contains(words) {
                continue;
            }
            let talk = Arc::new(Talk::new(Protocol::Messages, shape, PLAIN, is_stream));
            let full = growing(&all[0], &talk, CONNECTIONS, None)?.per_second();
            let connections = f64::from(u32::try_from(CONNECTIONS).unwrap_or(u32::MAX));
            let pace = Duration::from_secs_f64(2.0 * connections / full);
            let alone = growing(&all[1], &talk, CONNECTIONS, Some(pace))?;
            for peer in all.iter().filter(|peer| !peer.is_slow) {
                let seen = growing(peer, &talk, CONNECTIONS, Some(pace))?;
                let added = |percent| ms(seen.percentile(percent) - alone.percentile(percent));
                let first = |percent| ms(percentile(&seen.first_bytes, percent));
                out::say(&format!(
                    "| {size} | {answer} | {} | {} | {} | {} | {} | {} | {} | {:.1} % |",
                    peer.name,
                    ms(seen.percentile(50)),
                    ms(seen.percentile(99)),
                    added(50),
                    added(99),
                    first(50),
                    first(99),
                    seen.stolen.max(alone.stolen) * 100.0,
                ));
            }
        }
    }
    // One call at a time is all that the slow ones can be asked for.
    for peer in all.iter().filter(|peer| peer.is_slow) {
        for (size, shape) in SIZES {
            let talk = Arc::new(Talk::new(Protocol::Messages, shape, PLAIN, false));
            let seen = growing(peer, &talk, 1, None)?;
            out::say(&format!(
                "| {size} | whole | {}, one call at a time | {} | {} | | | | | |",
                peer.name,
                ms(seen.percentile(50)),
                ms(seen.percentile(99))
            ));
        }
    }
    Ok(())
}

/// The gaps between the chunks of a stream whose provider pauses between events.
fn paced(all: &[Peer<'_>]) -> Result<()> {
    out::say(&format!(
        "\nGaps between chunks, the provider pausing {} ms, 100 KB\n",
        upstream::PAUSE.as_millis()
    ));
    out::say("| who | gap p50 | gap p99 | first byte p50 | first byte p99 |");
    out::say("|---|--:|--:|--:|--:|");
    let talk = Arc::new(Talk::new(Protocol::Messages, MIDDLE, PACED, true));
    for peer in all {
        let seen = growing(peer, &talk, if peer.is_slow { 1 } else { CONNECTIONS }, None)?;
        let [gap_50, gap_99] = [50, 99].map(|percent| ms(percentile(&seen.gaps, percent)));
        let [first_50, first_99] =
            [50, 99].map(|percent| ms(percentile(&seen.first_bytes, percent)));
        out::say(&format!("| {} | {gap_50} | {gap_99} | {first_50} | {first_99} |", peer.name));
    }
    Ok(())
}

/// What a run of ours needs after its first step, and what a stream needs that such a run has open: its newest call, made
/// again.
fn memory(ours: &Server) -> Result<()> {
    let size = (4_000, 3);
    let path = Protocol::Messages.path_of_ours();
    let whole = Talk::new(Protocol::Messages, size, PLAIN, false);
    let held = Talk::new(Protocol::Messages, size, HELD, true);
    let mut connection = Connection::open(ours.address)?;
    let mut begin = |runs: Range<u64>| -> Result<()> {
        for run in runs {
            for length in [1, 2] {
                connection.call(&whole.request(path, run, length))?;
            }
        }
        Ok(())
    };
    let open = |runs: Range<u64>| {
        runs.map(|run| hold(ours.address, &held, run)).collect::<Result<Vec<_>>>()
    };
    let (count, few) = (u64::from(HELD_STREAMS), u64::from(HELD_STREAMS / 5));
    let first = 1 << 40..(1 << 40) + few; // these pay for what stays
    let runs = 1 << 41..(1 << 41) + count;
    begin(first.clone())?;
    let mut streams = open(first)?;
    let settled = || {
        thread::sleep(Duration::from_secs(1)); // what is queued is written
        ours.resident_bytes()
    };
    let before = settled()?;
    begin(runs.clone())?;
    let with_runs = settled()?;
    streams.extend(open(runs)?);
    let with_streams = settled()?;
    let kilobytes = |bytes: f64| bytes / f64::from(HELD_STREAMS) / 1e3;
    out::say(&format!(
        "\nmemory with {} open streams: {:.1} KB for each of them, {:.1} KB for a run after its first step",
        streams.len(),
        kilobytes(with_streams - with_runs),
        kilobytes(with_runs - before),
    ));
    Ok(())
}

/// Opens a stream and leaves it open.
fn hold(address: SocketAddr, talk: &Talk, run: u64) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(&talk.request(Protocol::Messages.path_of_ours(), run, 2))?;
    stream.read_exact(&mut [0])?;
    Ok(stream)
}

fn whole_or_stream(is_stream: bool) -> &'static str {
    if is_stream { "stream" } else { "whole" }
}

fn ms(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}
