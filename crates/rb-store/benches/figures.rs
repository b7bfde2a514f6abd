//! Measures the cost of storing steps and listing runs: `cargo bench -p rb-store`.
//!
//! A durable step ends with a disk sync, so the rate of syncs of this disk is measured in the same run; compare the
//! ratio. `-- writers` and `-- lists` run one half. `RB_BENCH_DATABASE_URL=postgres://…` measures an empty database
//! instead of files. `cargo test --benches` runs everything once with a small size.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rb_store::{
    Change, OutcomeClass, Result, RunFilter, RunKey, RunStart, Scope, StepRow, Store, StoreError,
    Tokens, open,
};

/// Text of a step.
const TEXT_BYTES: usize = 2_048;
/// Number of scores of a step.
const MONITORS: usize = 17;

/// Size of the benchmark.
struct Size {
    seconds: f64,
    runs: u32,
    steps_a_run: u32,
    rounds: u32,
}

fn main() {
    let small = std::env::args().all(|argument| argument != "--bench");
    let size = if small {
        Size { seconds: 0.05, runs: 200, steps_a_run: 2, rounds: 1 }
    } else {
        Size { seconds: 4.0, runs: 100_000, steps_a_run: 10, rounds: 9 }
    };
    if let Err(error) = figures(&size) {
        print_line(&error.to_string());
    }
}

fn figures(size: &Size) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| io(&error))?;
    let directory =
        tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).map_err(|error| io(&error))?;
    let lists_file = directory.path().join("lists.db");
    if is_asked_for("writers") {
        writers_table(&runtime, directory.path(), size)?;
    }
    if is_asked_for("lists") { runtime.block_on(lists(&lists_file, size)) } else { Ok(()) }
}

fn is_asked_for(part: &str) -> bool {
    let mut parts =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).peekable();
    parts.peek().is_none() || parts.any(|asked| asked == part)
}

fn writers_table(runtime: &tokio::runtime::Runtime, directory: &Path, size: &Size) -> Result<()> {
    let waits =
        fsyncs_a_second(&directory.join("raw"), size.seconds).map_err(|error| io(&error))?;
    print_line(&format!("{:<44}{waits:>12.0}", "waits for the disk a second, 4 KB each"));
    print_line(&format!(
        "{:<44}{:>12}{:>14}{:>18}",
        "durable steps a second, 2 KB of text", "steps", "a wait", "processor a step"
    ));
    for writers in [1, 8, 64, 256] {
        let file = directory.join(format!("{writers}.db"));
        let before = processor_seconds();
        let steps = runtime.block_on(steps_a_second(&file, writers, size.seconds))?;
        let each_us = (processor_seconds() - before) / (steps * size.seconds) * 1e6;
        let name = format!("  {writers} writers");
        print_line(&format!("{name:<44}{steps:>12.0}{:>14.2}{each_us:>15.0} µs", steps / waits));
    }
    Ok(())
}

fn io(error: &std::io::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

/// Measures the rate at which a page can be written and synced.
fn fsyncs_a_second(path: &Path, seconds: f64) -> std::io::Result<f64> {
    let mut file = File::create(path)?;
    let page = [0x5A_u8; 4_096];
    let (start, mut waits) = (Instant::now(), 0.0);
    while start.elapsed().as_secs_f64() < seconds {
        file.write_all(&page)?;
        file.sync_data()?;
        waits += 1.0;
    }
    Ok(waits / start.elapsed().as_secs_f64())
}

/// Returns the CPU time of this process, including the construction of the steps, to interpret rates on a busy
/// machine. 0 if the system does not report it.
fn processor_seconds() -> f64 {
    let output = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = output.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Returns the URL of the measured database: a file unless another one is configured.
fn address(file: &Path) -> String {
    let named = std::env::var("RB_BENCH_DATABASE_URL");
    named.unwrap_or_else(|_| format!("sqlite:{}", file.display()))
}

async fn steps_a_second(file: &Path, writers: u32, seconds: f64) -> Result<f64> {
    let store = open(&address(file)).await?;
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..writers {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let mut steps = 0.0;
            for index in 0.. {
                if start.elapsed().as_secs_f64() >= seconds {
                    break;
                }
                store.apply(vec![step(&format!("run {writer} of {writers}"), index)]).await?;
                steps += 1.0;
            }
            Ok::<f64, StoreError>(steps)
        });
    }
    let steps = tasks.join_all().await.into_iter().sum::<Result<f64>>()?;
    Ok(steps / start.elapsed().as_secs_f64())
}

fn step(run_id: &str, step_index: u32) -> Change {
    let words = format!("Step {step_index}: the test still fails, perhaps it is the lexer. ");
    let text = words.repeat(TEXT_BYTES / words.len() / 2);
    let reading = |at: usize| (format!("monitor_{at}").into(), f64::from(step_index % 10) / 10.0);
    let fires = step_index % 10 > 7;
    Change::PutStep(Arc::new(StepRow {
        run: RunKey { org: "default".to_owned(), run_id: run_id.to_owned() },
        step_index,
        at_ms: 1_700_000_000_000 + i64::from(step_index),
        thought: text.clone(),
        action: Some("edit".to_owned()),
        observation: Some(text),
        model: "model-a".to_owned(),
        tokens: Tokens { total: 1_200, input: 1_000, output: 200, cache_read: 500, cache_write: 0 },
        cost_usd: 0.004,
        scores: (0..MONITORS).map(reading).collect(),
        total_score: f64::from(step_index % 10) / 10.0,
        fired: if fires { vec!["monitor_3".to_owned()] } else { vec![] },
        ..StepRow::default()
    }))
}

/// Fills a store of a realistic maximum size and measures a page of it.
async fn lists(file: &Path, size: &Size) -> Result<()> {
    let store = open(&address(file)).await?;
    let start = Instant::now();
    fill(&store, size).await?;
    let steps = size.runs * size.steps_a_run;
    let title = format!("a page of 50 among {} runs, {steps} steps", size.runs);
    print_line(&format!("  (filled in {:.1?})", start.elapsed()));
    print_line(&format!("{title:<44}{:>12}", "median"));
    let own = Scope::org("org-1");
    let page = RunFilter { count_max: 50, ..RunFilter::default() };
    let text = |text: &str| Some(text.to_owned());
    let middle = 1_700_000_000_000 + i64::from(size.runs) * 500;
    let cases = [
        ("newest", page.clone()),
        ("from the middle on", RunFilter { until_ms: Some(middle), ..page.clone() }),
        ("of an agent that is rare", RunFilter { agent_name: text("agent-77"), ..page.clone() }),
        ("of a model", RunFilter { model: text("model-3"), ..page.clone() }),
        ("that failed", RunFilter { outcome: Some(OutcomeClass::Failure), ..page.clone() }),
        ("in which a monitor fired", RunFilter { fired: text("monitor_3"), ..page.clone() }),
        ("with a text that is frequent", RunFilter { text: text("PARSER"), ..page.clone() }),
        ("with a text that is there once", RunFilter { text: text("run-4711 "), ..page.clone() }),
        ("with a text that is nowhere", RunFilter { text: text("no such text"), ..page.clone() }),
    ];
    for (name, filter) in &cases {
        let (mut within, mut over_all) = (Vec::new(), Vec::new());
        for _ in 0..size.rounds {
            let start = Instant::now();
            store.runs(&own, filter).await?;
            within.push(start.elapsed());
            let start = Instant::now();
            store.runs(&Scope::default(), filter).await?;
            over_all.push(start.elapsed());
        }
        let (within, over_all) = (median(within), median(over_all));
        print_line(&format!("  {name:<42}{within:>12.2?}  over all organisations {over_all:.2?}"));
    }
    let start = Instant::now();
    store.health(&own, 0).await?;
    print_line(&format!("  {:<42}{:>12.2?}", "health of all of them", start.elapsed()));
    let start = Instant::now();
    store.codebases(&own).await?;
    print_line(&format!("  {:<42}{:>12.2?}", "codebases", start.elapsed()));
    let start = Instant::now();
    let expire = Change::ExpireRuns { before_ms: i64::MAX, runs_max: 100 };
    store.apply(vec![expire]).await?;
    print_line(&format!("  {:<42}{:>12.2?}", "a hundred runs expire", start.elapsed()));
    Ok(())
}

/// Nine of ten runs belong to one organisation.
async fn fill(store: &Arc<dyn Store>, size: &Size) -> Result<()> {
    for first in (0..size.runs).step_by(200) {
        let mut changes = Vec::new();
        for at in first..(first + 200).min(size.runs) {
            let org = if at % 10 == 0 { "org-2" } else { "org-1" };
            let run = RunKey { org: org.to_owned(), run_id: format!("run-{at}") };
            changes.push(Change::StartRun(Box::new(RunStart {
                run: run.clone(),
                at_ms: 1_700_000_000_000 + i64::from(at) * 1_000,
                agent_name: format!("agent-{}", at % 1_000),
                task: format!("Repair the parser: run-{at} {}", "and its tests ".repeat(20)),
                model: format!("model-{}", at % 7),
                framework: "langchain".to_owned(),
                codebase: format!("code-{}", at % 30),
                ..RunStart::default()
            })));
            for index in 0..size.steps_a_run {
                if let Change::PutStep(row) = step("", index) {
                    let mut row = Arc::unwrap_or_clone(row);
                    row.run = run.clone();
                    row.fired.retain(|_| at % 500 == 1);
                    changes.push(Change::PutStep(Arc::new(row)));
                }
            }
            let outcome = if at % 50 == 3 { "failure" } else { "success" }.to_owned();
            changes.push(Change::FinishRun { run, at_ms: 1_800_000_000_000, outcome });
        }
        store.apply(changes).await?;
    }
    Ok(())
}

fn median(mut costs: Vec<Duration>) -> Duration {
    costs.sort_unstable();
    costs.get(costs.len() / 2).copied().unwrap_or_default()
}

fn print_line(line: &str) {
    // Ignore a closed pipe.
    drop(writeln!(std::io::stdout(), "{line}"));
}
