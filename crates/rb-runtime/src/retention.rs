//! Deletes expired runs in small batches, so that other writes are not delayed.

use std::sync::Arc;
use std::time::Duration;

use rb_store::{Change, Store};

use crate::clock::now_ms;

const EXPIRE_INTERVAL: Duration = Duration::from_mins(10);
/// Runs deleted in one transaction.
const EXPIRE_BATCH: u32 = 20;
/// Pause between two batches.
const BATCH_PAUSE: Duration = Duration::from_millis(200);

/// Deletes runs that were idle for `retention`, until the task is aborted.
pub async fn run_expiry(store: Arc<dyn Store>, retention: Duration) {
    let retention_ms = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
    loop {
        let before_ms = now_ms().saturating_sub(retention_ms);
        match expire(&*store, before_ms).await {
            Ok(0) => {}
            Ok(runs) => tracing::info!(runs, "expired runs deleted"),
            Err(error) => {
                tracing::warn!(%error, "expired runs not deleted; next try in 10 minutes");
            }
        }
        tokio::time::sleep(EXPIRE_INTERVAL).await;
    }
}

/// Deletes all runs idle since before `before_ms` and returns their number.
async fn expire(store: &dyn Store, before_ms: i64) -> rb_store::Result<u64> {
    let mut deleted = 0;
    loop {
        let batch = Change::ExpireRuns { before_ms, runs_max: EXPIRE_BATCH };
        let runs: u64 = store.apply(vec![batch]).await?.iter().sum();
        deleted += runs;
        if runs < u64::from(EXPIRE_BATCH) {
            return Ok(deleted);
        }
        tokio::time::sleep(BATCH_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use rb_store::{RunKey, RunStart, Scope};

    use super::*;

    #[tokio::test]
    async fn old_runs_are_deleted_and_new_ones_stay() {
        let store = rb_store::open("sqlite::memory:").await.unwrap();
        let starts = (0..50).map(|at| {
            let run = RunKey { org: "o".to_owned(), run_id: format!("r{at}") };
            Change::StartRun(Box::new(RunStart { run, at_ms: at, ..RunStart::default() }))
        });
        store.apply(starts.collect()).await.unwrap();
        assert_eq!(expire(&*store, 45).await.unwrap(), 45);
        for (run_id, is_there) in [("r0", false), ("r44", false), ("r45", true), ("r49", true)] {
            let run = store.run(&Scope::org("o"), run_id).await.unwrap();
            assert_eq!(run.is_some(), is_there, "{run_id}");
        }
        assert_eq!(expire(&*store, 45).await.unwrap(), 0);
    }
}
