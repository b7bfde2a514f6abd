//! Server time of the pages with a million stored steps. The store is filled through its trait, a thousand steps a call.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use rb_engine::monitors::ALL;
use rb_store::{Change, RunKey, RunStart, StepRow, Tokens};

use super::load::Connection;
use super::process::{Server, fresh_folder};
use crate::out;

const STEPS_DEFAULT: u64 = 1_000_000;
/// Steps of a run; a few runs are long.
const STEPS_A_RUN: u32 = 40;
const STEPS_LONG: u32 = 2_000;
const LONG_EVERY: u64 = 500;
const STEPS_A_CALL: usize = 1_000;
/// The runs began over this time.
const SPAN_MS: i64 = 60 * 86_400_000;
/// Each page is asked for so often; the middle of the times is shown.
const ROUNDS: usize = 15;

/// The pages, as people ask for them.
const PAGES: [(&str, &str); 11] = [
    ("Runs", "/"),
    ("Runs, a page in the middle", "/?after_ms={middle}&after_org=default&after_id=z"),
    ("Runs of an agent", "/?agent=agent-7"),
    ("Runs of an agent that is not there", "/?agent=nobody"),
    ("Runs in which a monitor fired", "/?fired=semantic_loop"),
    ("Runs that showed a pattern", "/?pattern=e1:pattern-3"),
    ("Runs with a text that is rare", "/?q=run-0000777"),
    ("Runs with a text that is nowhere", "/?q=no+such+words"),
    ("Run, 40 steps", "/ui/run?id=run-0000777"),
    ("Run, 2,000 steps (the newest 400)", "/ui/run?id=run-0000000"),
    ("Health, 30 days", "/ui/health"),
];

/// Fills a store and prints how long the server takes for each page.
pub(crate) fn run(steps: Option<&str>) -> Result<()> {
    let steps = steps.map_or(Ok(STEPS_DEFAULT), str::parse).context("the number of steps")?;
    let data = fresh_folder("bench-pages-data")?;
    let now_ms = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    let begun = Instant::now();
    let runtime = tokio::runtime::Runtime::new()?;
    let (runs, steps) = runtime.block_on(fill(&data.join("reasonblocks.db"), steps, now_ms))?;
    drop(runtime);
    out::say(&format!("{runs} runs, {steps} steps, filled in {}", out::seconds(begun.elapsed())));
    let server = Server::on(data, &[("REASONBLOCKS_KEYS", String::new())])?;
    let mut connection = Connection::open(server.address)?;
    let middle = (now_ms - SPAN_MS / 2).to_string();
    out::say(&format!("\n{:<40} {:>9} {:>9} {:>9}", "page", "median", "worst", "size"));
    for (name, path) in PAGES {
        let path = path.replace("{middle}", &middle);
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let mut times = Vec::with_capacity(ROUNDS);
        let mut size = 0;
        for _ in 0..ROUNDS {
            let asked = Instant::now();
            let (status, body) = connection.call(request.as_bytes())?;
            times.push(asked.elapsed());
            anyhow::ensure!(status == 200, "{path} is answered with {status}");
            size = body.len();
        }
        times.sort_unstable();
        let (median, worst) = (times[ROUNDS / 2], times[ROUNDS - 1]);
        let ms = |time: std::time::Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        out::say(&format!("{name:<40} {:>9} {:>9} {:>6} KB", ms(median), ms(worst), size / 1000));
    }
    Ok(())
}

async fn fill(database: &Path, steps_wanted: u64, now_ms: i64) -> Result<(u64, u64)> {
    let store = rb_store::open(&format!("sqlite:{}", database.display())).await?;
    let runs_wanted = (steps_wanted / u64::from(STEPS_A_RUN)).max(1);
    let apart_ms = SPAN_MS / i64::try_from(runs_wanted)?;
    let (mut runs, mut steps) = (0_u64, 0_u64);
    let mut changes = Vec::with_capacity(STEPS_A_CALL + 2);
    while steps < steps_wanted {
        let at_ms = now_ms - SPAN_MS + apart_ms * i64::try_from(runs)?;
        let run = RunKey { org: "default".to_owned(), run_id: format!("run-{runs:07}") };
        changes.push(Change::StartRun(Box::new(start(&run, runs, at_ms))));
        let count = if runs.is_multiple_of(LONG_EVERY) { STEPS_LONG } else { STEPS_A_RUN };
        for index in 0..count {
            changes.push(Change::PutStep(Arc::new(step(&run, runs, index, at_ms))));
            if changes.len() >= STEPS_A_CALL {
                store.apply(std::mem::take(&mut changes)).await?;
            }
        }
        let outcome = if runs.is_multiple_of(3) { "failure" } else { "success" };
        let at_ms = at_ms + 60_000;
        changes.push(Change::FinishRun { run, at_ms, outcome: outcome.to_owned() });
        steps += u64::from(count);
        runs += 1;
    }
    store.apply(changes).await?;
    Ok((runs, steps))
}

fn start(run: &RunKey, number: u64, at_ms: i64) -> RunStart {
    RunStart {
        run: run.clone(),
        project: "default".to_owned(),
        at_ms,
        agent_name: format!("agent-{}", number % 40),
        task: format!(
            "Repair the parser of module {number} so that nested lists are read as they were written."
        ),
        model: format!("model-{}", number % 7),
        framework: "langchain".to_owned(),
        ..RunStart::default()
    }
}

/// A step as a coding agent makes it: a short thought, a call, half a kilobyte of output.
fn step(run: &RunKey, number: u64, index: u32, at_ms: i64) -> StepRow {
    let height = |place: usize| {
        let mixed = (number * 31 + u64::from(index) * 17 + place as u64 * 7) % 100;
        u32::try_from(mixed).map_or(0.0, f64::from) / 130.0
    };
    let scores: BTreeMap<String, f64> =
        ALL.iter().enumerate().map(|(at, spec)| (spec.id.to_owned(), height(at))).collect();
    let fired = scores.iter().filter(|(_, score)| **score >= 0.72).map(|(id, _)| id.clone());
    let fired: Vec<String> = fired.take(1).collect();
    let is_told = index == 0 || !fired.is_empty();
    StepRow {
        run: run.clone(),
        project: "default".to_owned(),
        step_index: index,
        at_ms: at_ms + i64::from(index) * 1_000,
        thought:
            "The lists are read by the same function as the rows, so I look at how it ends them."
                .to_owned(),
        action: Some("read_file".to_owned()),
        action_input: Some(format!("{{\"path\": \"src/parser/module_{index}.rs\"}}")),
        input_is_structured: true,
        observation: Some("pub fn list(input: &str) -> Result<List, Error> {\n".repeat(10)),
        model: "model".to_owned(),
        tokens: Tokens {
            total: 2_200,
            input: 2_000,
            output: 200,
            cache_read: 1_500,
            cache_write: 0,
        },
        cost_usd: 0.002,
        total_score: height(3),
        fired,
        scores,
        injections: if is_told {
            vec![format!("[e1:pattern-{}]", number % 50)]
        } else {
            Vec::new()
        },
        ..StepRow::default()
    }
}
