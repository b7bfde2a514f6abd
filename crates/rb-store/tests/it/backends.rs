//! Every backend keeps to the contract.

use std::sync::Arc;

use rb_store::{Backlog, Store, contract, open};

use crate::cluster::Cluster;

/// Holds every check against a store of its own and names all that are broken.
async fn check(fresh: impl AsyncFn() -> Arc<dyn Store>) {
    let mut broken = Vec::new();
    for check in contract::ALL {
        if let Err(why) = check.hold(fresh().await).await {
            broken.push(format!("{}: {why}", check.name.replace('_', " ")));
        }
    }
    assert!(
        broken.is_empty(),
        "{} of {}:\n{}",
        broken.len(),
        contract::ALL.len(),
        broken.join("\n")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_in_a_file_keeps_to_the_contract() {
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
async fn sqlite_in_memory_keeps_to_the_contract() {
    check(async || open("sqlite::memory:").await.expect("a store")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_with_a_queue_before_it_keeps_to_the_contract() {
    let directory = tempfile::tempdir().expect("a directory");
    let queue = directory.path().join("backlog.db");
    check(async || {
        let store = open("sqlite::memory:").await.expect("a store");
        Backlog::before(store, &queue, u64::MAX).await.expect("a queue")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_keeps_to_the_contract() {
    let Some(cluster) = Cluster::shared() else { return };
    check(async || open(&cluster.database()).await.expect("a store")).await;
}
