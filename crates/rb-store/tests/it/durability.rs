//! Acknowledged writes survive `kill -9`: a child process writes and prints acknowledged steps until it is killed.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rb_store::{Change, RunKey, Scope, StepRow, Store, open};
use rb_testkit::store_contract;

/// Environment variable of the child process with the path of its store.
const FILE: &str = "RB_TEST_STORE_FILE";
const ROUND: &str = "RB_TEST_STORE_ROUND";
/// Number of kills; the small number is for every test run.
const KILLS: &str = "RB_TEST_STORE_KILLS";
const KILLS_QUICK: u32 = 5;

const WRITERS: u32 = 8;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn run(writer: u32) -> RunKey {
    RunKey { org: "a".to_owned(), run_id: format!("run {writer}") }
}

async fn opened(file: &str) -> Arc<dyn Store> {
    open(&format!("sqlite:{file}")).await.expect("the database opens")
}

/// Body of the child: writes and prints until it is killed.
fn write_for_ever(file: &str) {
    let round = variable(ROUND).expect("a round");
    let first = round.parse::<u32>().expect("a number") * 1_000_000;
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = opened(file).await;
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            let store = Arc::clone(&store);
            writers.spawn(async move {
                for step_index in first.. {
                    let thought = format!("{step_index} ").repeat(200);
                    let step =
                        StepRow { run: run(writer), step_index, thought, ..StepRow::default() };
                    store.apply(vec![Change::PutStep(Arc::new(step))]).await.expect("written");
                    // A single write, so that a line is complete or missing.
                    let line = format!("kept {writer} {step_index}\n");
                    std::io::stdout().write_all(line.as_bytes()).expect("published");
                }
            });
        }
        writers.join_all().await;
    });
}

/// Starts the child, kills it after a while and returns the acknowledged steps.
fn kill_once(file: &Path, round: u32) -> BTreeSet<(u32, u32)> {
    let itself = std::env::current_exe().expect("this program");
    let mut child = Command::new(itself)
        .args(["--exact", "durability::acknowledged_steps_survive_kill_9", "--nocapture"])
        .env(FILE, file)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the child starts");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut text = String::new();
    while !text.contains("kept") {
        assert!(
            output.read_line(&mut text).expect("a line") > 0,
            "the child ended by itself: {text}"
        );
    }
    std::thread::sleep(Duration::from_millis(u64::from(10 + round * 37 % 90)));
    child.kill().expect("killed");
    let status = child.wait().expect("deleted");
    assert!(!status.success(), "the child must not exit by itself");
    output.read_to_string(&mut text).expect("the rest");
    let kept = text.lines().filter_map(|line| {
        let (writer, step_index) = line.split_once("kept ")?.1.split_once(' ')?;
        Some((writer.parse().ok()?, step_index.parse().ok()?))
    });
    kept.collect()
}

#[test]
fn acknowledged_steps_survive_kill_9() {
    // The test starts its own executable; this branch is the child.
    if let Some(file) = variable(FILE) {
        return write_for_ever(&file);
    }
    let kills = variable(KILLS).map_or(KILLS_QUICK, |kills| kills.parse().expect("a number"));
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("killed.db");
    let mut kept = BTreeSet::new();
    for round in 0..kills {
        kept.append(&mut kill_once(&file, round));
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let store = opened(file.to_str().expect("UTF-8")).await;
            let mut found = BTreeSet::new();
            for writer in 0..WRITERS {
                let steps = store.steps(&run(writer), 0, u32::MAX).await.expect("steps");
                found.extend(steps.iter().map(|step| (writer, step.step_index)));
                let row = store.run(&Scope::org("a"), &run(writer).run_id).await.expect("a run");
                let count = row.map_or(0, |row| row.step_count);
                assert_eq!(count, steps.len() as u64, "the total is as durable as the steps");
            }
            let lost: Vec<_> = kept.difference(&found).collect();
            assert!(
                lost.is_empty(),
                "round {round}: {} of {} lost: {lost:?}",
                lost.len(),
                kept.len()
            );
            store_contract::recount(store, &[]).await.expect("aggregates equal a recount");
        });
    }
    assert!(kept.len() >= kills as usize, "the child wrote {} steps", kept.len());
    println!("{kills} kills, {} answered steps, none lost", kept.len());
}
