//! Damaged, locked, foreign and readable files, and invalid URLs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rb_store::{Change, RunKey, Scope, StepRow, StoreError, open};

fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    (directory, path)
}

fn setting(value: &str) -> Vec<Change> {
    vec![Change::PutSetting { name: "colour".to_owned(), value: value.to_owned() }]
}

fn step(index: u32) -> Change {
    let run = RunKey { org: "a".to_owned(), run_id: "r".to_owned() };
    Change::PutStep(Arc::new(StepRow { run, step_index: index, ..StepRow::default() }))
}

async fn refusal(url: &str) -> StoreError {
    open(url).await.err().unwrap_or_else(|| panic!("{url} was opened"))
}

#[tokio::test]
async fn an_invalid_url_is_rejected_with_advice() {
    for (url, expected) in [
        ("sqlite:", "`sqlite:` has no path"),
        ("store.db", "without a scheme"),
        ("mysql://user:secret@host/db", "unknown scheme `mysql:`"),
        ("a secret:b", "without a scheme"),
    ] {
        let error = refusal(url).await.to_string();
        assert!(error.contains(expected) && !error.contains("secret"), "{url}: {error}");
        assert!(error.contains("write `sqlite:PATH`"), "{url}: {error}");
    }
}

#[tokio::test]
async fn rows_are_present_after_reopening() {
    let (_directory, path) = place();
    for round in 0..3_u32 {
        let store = open(&url(&path)).await.expect("a store");
        let run = store.run(&Scope::org("a"), "r").await.expect("a run");
        assert_eq!(run.map_or(0, |run| run.step_count), u64::from(round));
        store.apply(vec![step(round)]).await.expect("written");
    }
    let slashes = open(&format!("sqlite://{}", path.display())).await.expect("a store");
    assert!(slashes.run(&Scope::org("a"), "r").await.expect("a run").is_some());
}

#[tokio::test]
async fn two_processes_that_write_one_run_keep_exact_totals() {
    let (_directory, path) = place();
    let stores =
        [open(&url(&path)).await.expect("a store"), open(&url(&path)).await.expect("a store")];
    for index in 0..6_u32 {
        // Each store writes a step, replaces a step of the other one, and writes it again.
        let store = &stores[usize::from(index % 2 == 1)];
        for index in [index, index.saturating_sub(1), index] {
            store.apply(vec![step(index)]).await.expect("written");
        }
    }
    for store in stores {
        let run = store.run(&Scope::org("a"), "r").await.expect("a run").expect("it is there");
        assert_eq!(run.step_count, 6);
        assert_eq!(run.version, 18);
        rb_testkit::store_contract::recount(store, &[]).await.expect("aggregates equal a recount");
    }
}

#[tokio::test]
async fn dropping_the_store_writes_queued_changes() {
    let (_directory, path) = place();
    let store = open(&url(&path)).await.expect("a store");
    let mut calls = Vec::new();
    for index in 0..200 {
        let store = Arc::clone(&store);
        calls.push(Box::pin(async move { store.apply(vec![step(index)]).await }));
    }
    // Each call is polled once, which queues it, and is then dropped.
    for call in &mut calls {
        let waiting = std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx)));
        assert!(waiting.await.is_pending());
        // Without yielding, the task would exhaust its cooperative budget and could not enqueue.
        tokio::task::yield_now().await;
    }
    drop(calls);
    drop(store);
    let store = open(&url(&path)).await.expect("a store");
    let run = store.run(&Scope::org("a"), "r").await.expect("a run").expect("is there");
    assert_eq!(run.step_count, 200);
}

#[tokio::test]
async fn two_stores_share_a_file() {
    let (_directory, path) = place();
    let (one, other) = (open(&url(&path)).await, open(&url(&path)).await);
    let (one, other) = (one.expect("a store"), other.expect("a second one"));
    one.apply(setting("red")).await.expect("written");
    assert_eq!(other.setting("colour").await.expect("read").as_deref(), Some("red"));
    other.apply(setting("blue")).await.expect("written");
    assert_eq!(one.setting("colour").await.expect("read").as_deref(), Some("blue"));
}

/// Closing any handle of a file releases the locks of the process, so stores share one, which is closed last.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_closed_store_releases_its_file() {
    let (_directory, path) = place();
    let path = path.parent().expect("a folder").canonicalize().expect("there").join("store.db");
    let held = || {
        let links = fs::read_dir("/proc/self/fd").expect("handles").flatten();
        links.filter(|link| fs::read_link(link.path()).is_ok_and(|to| to == path)).count()
    };
    let one = open(&url(&path)).await.expect("a store");
    let with_one = held();
    let two = open(&url(&path)).await.expect("a store");
    assert_eq!(held(), 2 * with_one - 1, "the second shares the handle of the first");
    drop(one);
    two.apply(setting("red")).await.expect("written");
    drop(two);
    assert_eq!(held(), 0);
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_not_changed() {
    let (_directory, path) = place();
    let text = "this is a letter, not a database. ".repeat(200);
    fs::write(&path, &text).expect("written");
    let error = refusal(&url(&path)).await.to_string();
    assert!(error.contains("not an SQLite database; use another"), "{error}");
    assert_eq!(fs::read_to_string(&path).expect("read"), text);
}

#[tokio::test]
async fn a_database_of_another_program_is_not_changed() {
    let (_directory, path) = place();
    let theirs = rusqlite::Connection::open(&path).expect("a database");
    theirs.execute_batch("CREATE TABLE music (title TEXT)").expect("a table");
    drop(theirs);
    let error = refusal(&url(&path)).await.to_string();
    assert!(error.contains("database of another program"), "{error}");
}

#[tokio::test]
async fn a_damaged_file_is_reported_as_an_error() {
    let (_directory, path) = place();
    let store = open(&url(&path)).await.expect("a store");
    let steps: Vec<Change> = (0..2_000).map(step).collect();
    store.apply(steps).await.expect("written");
    drop(store);
    let mut bytes = fs::read(&path).expect("read");
    let whole = bytes.len();
    bytes[whole / 3..].fill(0xA5);
    fs::write(&path, bytes).expect("written");
    // Depending on the damaged page, the error occurs on opening or on reading.
    let error = match open(&url(&path)).await {
        Err(error) => error,
        Ok(store) => {
            let run = RunKey { org: "a".to_owned(), run_id: "r".to_owned() };
            store.steps(&run, 0, u32::MAX).await.expect_err("the steps are damaged")
        }
    };
    assert!(error.to_string().contains("the file is damaged"), "{error}");
}

#[tokio::test]
async fn a_newer_schema_is_rejected() {
    let (_directory, path) = place();
    drop(open(&url(&path)).await.expect("a store"));
    let file = rusqlite::Connection::open(&path).expect("a database");
    file.execute("INSERT INTO migrations (version, name) VALUES (9000, 'later')", ()).expect("put");
    drop(file);
    let error = refusal(&url(&path)).await;
    assert!(matches!(error, StoreError::TooNew { found: 9000, .. }), "{error}");
}

#[tokio::test]
async fn a_locked_database_is_reported_as_unavailable() {
    let (_directory, path) = place();
    let store = open(&url(&path)).await.expect("a store");
    let other = rusqlite::Connection::open(&path).expect("a database");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let error = store.apply(setting("red")).await.expect_err("locked");
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    assert!(store.setting("colour").await.expect("reads succeed").is_none());
    other.execute_batch("COMMIT").expect("unlocked");
    store.apply(setting("red")).await.expect("written");
}

#[cfg(unix)]
#[tokio::test]
async fn other_users_cannot_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let (directory, _) = place();
    let path = directory.path().join("made/on the way/store.db");
    let store = open(&url(&path)).await.expect("a store");
    store.apply(setting("red")).await.expect("written");
    for (ending, expected) in [("", 0o600), ("-wal", 0o600), ("-shm", 0o600)] {
        let file = PathBuf::from(format!("{}{ending}", path.display()));
        assert_eq!(mode(&file), expected, "{}", file.display());
    }
    assert_eq!(mode(&directory.path().join("made")), 0o700);
    assert_eq!(mode(path.parent().expect("a directory")), 0o700);
    drop(store);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("opened to others");
    drop(open(&url(&path)).await.expect("a store"));
    assert_eq!(mode(&path), 0o600);
}

#[tokio::test]
async fn a_path_that_cannot_be_created_is_named_in_the_error() {
    let (directory, path) = place();
    fs::write(&path, "a file").expect("written");
    let inside = path.join("store.db");
    let error = refusal(&url(&inside)).await.to_string();
    assert!(error.contains("store.db"), "{error}");
    let error = refusal(&url(directory.path())).await.to_string();
    assert!(error.contains("cannot be opened"), "{error}");
}
