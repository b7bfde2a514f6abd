//! Write queue in front of a database that is unavailable, here because another process has locked it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rb_store::{
    Backlog, Change, ConversationRow, RunKey, RunStart, Scope, StepRow, Store, StoreError, open,
};
use rb_testkit::store_contract;

/// Maximum time until the queue is drained.
const TIMEOUT: Duration = Duration::from_secs(40);

fn run() -> RunKey {
    RunKey { org: "a".to_owned(), run_id: "r".to_owned() }
}

fn step(step_index: u32) -> Change {
    let thought = format!("thought {step_index}");
    Change::PutStep(Arc::new(StepRow { run: run(), step_index, thought, ..StepRow::default() }))
}

struct Place {
    _directory: tempfile::TempDir,
    database: PathBuf,
    backlog: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let [database, backlog] =
            ["store.db", "backlog.db"].map(|name| directory.path().join(name));
        Self { _directory: directory, database, backlog }
    }

    async fn open(&self, max_bytes: u64) -> Arc<dyn Store> {
        let store = open(&format!("sqlite:{}", self.database.display())).await.expect("a store");
        Backlog::wrap(store, &self.backlog, max_bytes).await.expect("a queue")
    }
}

fn lock(database: &Path) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(database).expect("a database");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    other
}

async fn wait_until_drained(store: &Arc<dyn Store>) {
    let begun = Instant::now();
    while store.backlog().expect("a queue").is_pending {
        assert!(begun.elapsed() < TIMEOUT, "the queue is not drained");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_changes_are_stored_when_the_database_is_available_again() {
    for is_restarted in [false, true] {
        let place = Place::new();
        let mut store = place.open(1 << 30).await;
        let start = RunStart { run: run(), task: "Repair.".to_owned(), ..RunStart::default() };
        let begins = vec![Change::StartRun(Box::new(start)), step(0)];
        store.apply(begins).await.expect("stored");
        let other = lock(&place.database);
        let guarded = vec![Change::ExpectVersion { run: run(), version: 2 }, step(1)];
        store.apply(guarded).await.expect("written");
        let conversation =
            ConversationRow { run: run(), state: "s".to_owned(), ..ConversationRow::default() };
        let rest = vec![step(2), Change::PutConversation(Box::new(conversation))];
        store.apply(rest).await.expect("written");
        let waiting = store.backlog().expect("a queue");
        assert!(waiting.is_pending && waiting.bytes > 0 && place.backlog.exists(), "{waiting:?}");
        let key = Change::PutKey(Box::default());
        let error = store.apply(vec![key]).await.expect_err("a key cannot wait");
        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
        if is_restarted {
            drop(store);
            tokio::time::sleep(Duration::from_millis(600)).await; // longer than the retry interval
            store = place.open(1 << 30).await;
        }
        drop(other);
        wait_until_drained(&store).await;
        let steps = store.steps(&run(), 0, 9).await.expect("steps");
        let thoughts: Vec<&str> = steps.iter().map(|step| step.thought.as_str()).collect();
        assert_eq!(thoughts, ["thought 0", "thought 1", "thought 2"], "restarted: {is_restarted}");
        let row = store.run(&Scope::org("a"), "r").await.expect("a run").expect("it is there");
        assert_eq!((row.task.as_str(), row.step_count), ("Repair.", 3));
        assert_eq!(store.conversation(&run()).await.expect("read").as_deref(), Some("s"));
        assert!(!place.backlog.exists(), "the queue file is removed");
        store_contract::recount(store, &[]).await.expect("aggregates equal a recount");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_rejects_changes() {
    let place = Place::new();
    let store = place.open(1).await;
    store.apply(vec![step(0)]).await.expect("stored");
    let other = lock(&place.database);
    store.apply(vec![step(1)]).await.expect("the queue was empty");
    let error = store.apply(vec![step(2)]).await.expect_err("full").to_string();
    assert!(error.contains("write queue full"), "{error}");
    drop(other);
    wait_until_drained(&store).await;
    assert_eq!(store.steps(&run(), 0, 9).await.expect("steps").len(), 2);
}
