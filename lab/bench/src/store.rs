//! Durable steps per second and time per page of runs, on SQLite or an empty PostgreSQL.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use rb_store::{
    Change, OutcomeClass, RunFilter, RunKey, RunStart, Scope, StepRow, Store, Tokens, open,
};
use tokio::task::JoinSet;

const MEASURED: Duration = Duration::from_secs(4);
const WRITERS: [u32; 4] = [1, 8, 64, 256];
/// Text of a step, in bytes.
const TEXT_BYTES: usize = 2_048;
const RUNS: u32 = 100_000;
const STEPS_PER_RUN: u32 = 10;
/// Runs per transaction while the store is filled.
const FILL_BATCH: u32 = 200;
const ROUNDS: usize = 9;
const T0_MS: i64 = 1_700_000_000_000;

/// Prints the figures of the database at `url`, or of a new SQLite file.
pub(crate) async fn run(url: Option<&str>) -> Result<()> {
    let folder = tempfile::tempdir_in("target")?;
    let file = format!("sqlite:{}", folder.path().join("store.db").display());
    let store = open(url.unwrap_or(&file)).await?;
    let syncs = syncs_per_second(File::create(folder.path().join("raw"))?)?;
    println!("disk syncs per second, 4 KB each: {syncs:.0}");
    for writers in WRITERS {
        let steps = steps_per_second(&store, writers).await?;
        let per_sync = steps / syncs;
        println!(
            "durable steps per second, {writers:>3} writers: {steps:.0} ({per_sync:.1} per sync)"
        );
    }
    fill(&store).await?;
    pages(&store).await
}

fn syncs_per_second(mut file: File) -> Result<f64> {
    let (start, mut syncs) = (Instant::now(), 0.0);
    while start.elapsed() < MEASURED {
        file.write_all(&[0x5A; 4_096])?;
        file.sync_data()?;
        syncs += 1.0;
    }
    Ok(syncs / start.elapsed().as_secs_f64())
}

async fn steps_per_second(store: &Arc<dyn Store>, writers: u32) -> Result<f64> {
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            let run = run_key("writers", &format!("{writer} of {writers}"));
            let mut steps = 0;
            while start.elapsed() < MEASURED {
                store.apply(vec![step(&run, steps, true)]).await?;
                steps += 1;
            }
            anyhow::Ok(steps)
        });
    }
    let steps = tasks.join_all().await.into_iter().sum::<Result<u32>>()?;
    Ok(f64::from(steps) / start.elapsed().as_secs_f64())
}

fn run_key(org: &str, run_id: &str) -> RunKey {
    RunKey { org: org.to_owned(), run_id: run_id.to_owned() }
}

fn step(run: &RunKey, step_index: u32, may_fire: bool) -> Change {
    let sentence = format!("Step {step_index}: the test still fails, perhaps it is the lexer. ");
    let text = sentence.repeat(TEXT_BYTES / sentence.len() / 2);
    let score = f64::from(step_index % 10) / 10.0;
    let is_fired = may_fire && step_index % 10 > 7;
    Change::PutStep(Arc::new(StepRow {
        run: run.clone(),
        step_index,
        at_ms: T0_MS + i64::from(step_index),
        thought: text.clone(),
        action: Some("edit".to_owned()),
        observation: Some(text),
        model: "model-a".to_owned(),
        tokens: Tokens { total: 1_200, input: 1_000, output: 200, cache_read: 500, cache_write: 0 },
        cost_usd: 0.004,
        scores: (0..12).map(|at| (format!("monitor_{at}").into(), score)).collect(),
        total_score: score,
        fired: is_fired.then(|| "monitor_3".to_owned()).into_iter().collect(),
        ..StepRow::default()
    }))
}

/// Adds runs of two organisations, nine of ten to `org-1`.
async fn fill(store: &Arc<dyn Store>) -> Result<()> {
    for first in (0..RUNS).step_by(FILL_BATCH as usize) {
        let mut changes = Vec::new();
        for at in first..first + FILL_BATCH {
            let org = if at % 10 == 0 { "org-2" } else { "org-1" };
            let run = run_key(org, &format!("run-{at}"));
            changes.push(Change::StartRun(Box::new(RunStart {
                run: run.clone(),
                at_ms: T0_MS + i64::from(at) * 1_000,
                agent_name: format!("agent-{}", at % 1_000),
                task: format!("Repair the parser: run-{at} {}", "and its tests ".repeat(20)),
                model: format!("model-{}", at % 7),
                ..RunStart::default()
            })));
            changes.extend((0..STEPS_PER_RUN).map(|index| step(&run, index, at % 500 == 1)));
            let outcome = if at % 50 == 3 { "failure" } else { "success" }.to_owned();
            changes.push(Change::FinishRun { run, at_ms: T0_MS, outcome });
        }
        store.apply(changes).await?;
    }
    Ok(())
}

async fn pages(store: &Arc<dyn Store>) -> Result<()> {
    println!("median time of a page of 50 among {RUNS} runs with {STEPS_PER_RUN} steps each:");
    let page = RunFilter { count_max: 50, ..RunFilter::default() };
    let text = |text: &str| Some(text.to_owned());
    let middle = Some(T0_MS + i64::from(RUNS) * 500);
    for (name, filter) in [
        ("newest", page.clone()),
        ("from the middle", RunFilter { until_ms: middle, ..page.clone() }),
        ("of a rare agent", RunFilter { agent_name: text("agent-77"), ..page.clone() }),
        ("of a model", RunFilter { model: text("model-3"), ..page.clone() }),
        ("failed", RunFilter { outcome: Some(OutcomeClass::Failure), ..page.clone() }),
        ("with an alarm", RunFilter { fired: text("monitor_3"), ..page.clone() }),
        ("with a frequent text", RunFilter { text: text("PARSER"), ..page.clone() }),
        ("with a text that occurs once", RunFilter { text: text("run-4711 "), ..page.clone() }),
        ("without a match", RunFilter { text: text("no such text"), ..page.clone() }),
    ] {
        let (one, all) = (Scope::org("org-1"), Scope::default());
        let one = median(store, &one, &filter).await?;
        let all = median(store, &all, &filter).await?;
        println!("  {name:<30} {one:>10.2?} one organisation  {all:>10.2?} all organisations");
    }
    let start = Instant::now();
    store.health(&Scope::org("org-1"), 0).await?;
    println!("  {:<30} {:>10.2?}", "health of all runs", start.elapsed());
    Ok(())
}

async fn median(store: &Arc<dyn Store>, scope: &Scope, filter: &RunFilter) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        store.runs(scope, filter).await?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times[ROUNDS / 2])
}
