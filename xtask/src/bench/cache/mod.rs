//! `cargo xtask bench cache [DATA]`: what steering costs the providers' prompt caches.
//!
//! Runs become conversations of a client that marks its cache as coding agents do. Each is sent three times through a
//! simulation of the providers' published rules: as it is, with guidance at the **tail**, and with guidance in the **system**
//! prompt. When there is guidance, and what it says, is decided by the engine with both suites and no library; where it
//! goes is decided by the code of the gateway. Without DATA (a file of runs as JSON lines, or a folder of them) the runs are
//! made up and loop.

/// The providers' rules.
mod rules;
/// Runs as conversations.
mod runs;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use rb_engine::analysis::embedding::Vector;
use rb_engine::config::{Engine, EngineConfig};
use rb_engine::guidance::Retrieved;
use rb_engine::guidance::fragment::FRAGMENT_MARK;
use rb_engine::run::Run;
use rb_engine::run::record::Reply;
use rb_engine::step::{Input, Step};
use rb_wire::body_edits::BodyEdits;
use rb_wire::channel::Channel;
use rb_wire::dialects::{self, Dialect};
use rb_wire::inject::{self, Injection};
use rb_wire::request::ParsedRequest;
use serde_json::Value;

use crate::{out, shell};
use rules::{Anthropic, Cache, Count, OpenAi};
use runs::Recorded;

/// Dollars for a million tokens of input: fresh, written, read.
const SONNET: [f64; 3] = [3.0, 3.75, 0.3];
const GPT: [f64; 3] = [1.25, 1.25, 0.125];

#[derive(Clone, Copy)]
enum Placement {
    None,
    Tail,
    System,
}

const PLACEMENTS: [(&str, Placement); 3] =
    [("no gateway", Placement::None), ("tail", Placement::Tail), ("system", Placement::System)];

pub(crate) fn run(data: Option<&str>) -> Result<()> {
    if cfg!(debug_assertions) {
        let args = ["run", "--quiet", "--release", "--package", "xtask", "--", "bench", "cache"];
        return shell::run(shell::cargo(&args)?.args(data));
    }
    let runs = match data {
        Some(data) => runs::recorded(Path::new(data))?,
        None => runs::looping(),
    };
    let bench = Bench::new()?;
    let mut totals = [Totals::default(); PLACEMENTS.len()];
    let (mut requests, mut said, mut steered) = (0, 0, 0);
    for run in &runs {
        let fragments = bench.fragments(run);
        let count = fragments.iter().flatten().count();
        requests += fragments.len();
        said += count;
        steered += usize::from(count > 0);
        for (total, (_, placement)) in totals.iter_mut().zip(PLACEMENTS) {
            total.add(&bench.send(run, &fragments, placement)?);
        }
    }
    out::say(&format!(
        "{} runs, {requests} requests; guidance {said} times in {steered} runs\n",
        runs.len()
    ));
    print(&totals);
    Ok(())
}

/// What both providers' caches did.
#[derive(Clone, Copy, Default)]
struct Totals {
    anthropic: Count,
    openai: Count,
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.anthropic.add(other.anthropic);
        self.openai.add(other.openai);
    }
}

fn print(totals: &[Totals; PLACEMENTS.len()]) {
    out::say(
        "| provider | placement | input tokens | read from the cache | client's cached tokens lost | cost |",
    );
    out::say("|---|---|--:|--:|--:|--:|");
    let anthropic = totals.map(|totals| totals.anthropic);
    let openai = totals.map(|totals| totals.openai);
    for (provider, counts, prices) in [("Anthropic", anthropic, SONNET), ("OpenAI", openai, GPT)] {
        let ([fresh, written, read], base) = (prices, counts[0]);
        for (it, (name, _)) in counts.iter().zip(PLACEMENTS) {
            let lost = 1.0 - share(it.read_of_client, base.read_of_client);
            let cost =
                (as_f64(it.fresh) * fresh + as_f64(it.written) * written + as_f64(it.read) * read)
                    / 1e6;
            out::say(&format!(
                "| {provider} | {name} | {} | {:.2} % | {:.2} % | ${cost:.3} |",
                out::grouped(it.all()),
                share(it.read, it.all()) * 100.0,
                lost * 100.0,
            ));
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { as_f64(part) / as_f64(whole) }
}

#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

struct Bench {
    rules: Arc<Engine>,
    dialect: &'static Dialect,
    /// Those that need no beta.
    channels: Vec<Channel>,
    opening: (Value, String),
}

impl Bench {
    fn new() -> Result<Self> {
        let rules = EngineConfig::default().check()?;
        let embedder = Arc::new(|text: &str| Vector::of(rb_embed::embed(text).values()));
        let dialect = dialects::by_id("anthropic").context("the dialect of Anthropic")?;
        let channels = dialect.channels.iter().copied().filter(|it| it.beta().is_none()).collect();
        Ok(Self {
            rules: Arc::new(rules.with_embedder(embedder)),
            dialect,
            channels,
            opening: runs::opening(),
        })
    }

    /// What the engine says before each request: one before each turn, and one behind the last.
    fn fragments(&self, run: &Recorded) -> Vec<Option<String>> {
        let mut engine = Run::new(Arc::clone(&self.rules), &run.task);
        let steps = std::iter::once(None).chain(run.turns.iter().map(Some));
        let walk = steps.map(|turn| {
            let step = turn.map(|turn| {
                let input =
                    if turn.input.is_empty() { Input::None } else { Input::Text(&turn.input) };
                Step::thought(&turn.thought)
                    .with_action(&turn.tool, input)
                    .with_observation(&turn.observation)
                    .with_error(turn.is_error)
            });
            let ask = engine.before_model(step.as_slice());
            let plan = engine.plan(ask, Retrieved::NONE, "claude-sonnet-4-5");
            let text = plan.fragment.as_ref().map(|fragment| fragment.as_str().to_owned());
            let _ = engine.record(plan, Reply::default());
            text
        });
        walk.collect()
    }

    /// Sends the requests of a run, steered in one way, to both caches.
    fn send(
        &self,
        run: &Recorded,
        fragments: &[Option<String>],
        placement: Placement,
    ) -> Result<Totals> {
        let (mut anthropic, mut openai) = (Anthropic::default(), OpenAi::default());
        let mut totals = Totals::default();
        let mut planted: Vec<Injection> = Vec::new();
        for (turns, fragment) in fragments.iter().enumerate() {
            let body = serde_json::to_vec(&runs::request(run, turns, &self.opening))?;
            let chat = ParsedRequest::parse(self.dialect, &body)
                .context("a request that cannot be read")?;
            let mut splices = BodyEdits::new(&body);
            match (placement, fragment.as_deref()) {
                (Placement::None, _) | (Placement::System, None) => {}
                (Placement::Tail, text) => {
                    let tail = inject::inject_tail(&chat, &planted, text, &self.channels);
                    splices.extend(tail.edits);
                    planted.extend(tail.injection);
                }
                (Placement::System, Some(text)) => {
                    splices.extend(inject::inject_system(&chat, text));
                }
            }
            let sent: Value = if splices.is_empty() {
                serde_json::from_slice(&body)?
            } else {
                serde_json::from_slice(&splices.apply())?
            };
            let prompt = rules::blocks(&sent, FRAGMENT_MARK);
            totals
                .add(&Totals { anthropic: anthropic.send(&prompt), openai: openai.send(&prompt) });
        }
        Ok(totals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guidance_at_the_tail_costs_looping_runs_no_cached_token() {
        let bench = Bench::new().unwrap();
        for run in runs::looping() {
            let fragments = bench.fragments(&run);
            assert!(fragments.iter().any(Option::is_some), "a run that loops is steered");
            let [none, tail, system] =
                PLACEMENTS.map(|(_, placement)| bench.send(&run, &fragments, placement).unwrap());
            assert!(none.anthropic.read > 0 && none.openai.read > 0);
            assert!(tail.anthropic.read_of_client >= none.anthropic.read_of_client);
            assert!(tail.openai.read_of_client * 100 >= none.openai.read_of_client * 99);
            assert!(system.anthropic.read_of_client < none.anthropic.read_of_client);
        }
    }
}
