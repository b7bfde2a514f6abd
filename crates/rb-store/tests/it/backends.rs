//! Runs the contract suite on every backend.

use std::sync::Arc;

use rb_store::{Backlog, Store, open};
use rb_testkit::store_contract;

use crate::cluster::Cluster;

/// Runs every check on a new store and reports all that fail.
async fn check(fresh: impl AsyncFn() -> Arc<dyn Store>) {
    let mut broken = Vec::new();
    for check in store_contract::ALL {
        if let Err(why) = check.hold(fresh().await).await {
            broken.push(format!("{}: {why}", check.name.replace('_', " ")));
        }
    }
    assert!(
        broken.is_empty(),
        "{} of {}:\n{}",
        broken.len(),
        store_contract::ALL.len(),
        broken.join("\n")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_in_a_file_passes_the_contract_suite() {
    let directory = tempfile::tempdir().expect("a directory");
    let count = std::sync::atomic::AtomicUsize::new(0);
    check(async || {
        let at = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let url = format!("sqlite:{}/{at}.db", directory.path().display());
        open(&url).await.expect("a store")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_in_memory_passes_the_contract_suite() {
    check(async || open("sqlite::memory:").await.expect("a store")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_with_a_backlog_passes_the_contract_suite() {
    let directory = tempfile::tempdir().expect("a directory");
    let queue = directory.path().join("backlog.db");
    check(async || {
        let store = open("sqlite::memory:").await.expect("a store");
        Backlog::wrap(store, &queue, u64::MAX).await.expect("a queue")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_passes_the_contract_suite() {
    let Some(cluster) = Cluster::shared() else { return };
    check(async || open(&cluster.database()).await.expect("a store")).await;
}
