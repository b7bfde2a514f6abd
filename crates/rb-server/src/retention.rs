//! Old runs go: a few at a time, so that nobody waits for it.

use std::sync::Arc;
use std::time::Duration;

use rb_store::{Change, Store};

use crate::clock::now_ms;

/// How often it is looked for runs that are due.
const LOOKED_EVERY: Duration = Duration::from_mins(10);
/// Runs that go in one bite.
const BITE_RUNS: u32 = 20;
/// Between two bites others have their turn.
const BITE_PAUSE: Duration = Duration::from_millis(200);

/// Deletes runs that nothing was heard of for `kept`, now and then, for as long as the server runs.
pub(crate) async fn keep_for(store: Arc<dyn Store>, kept: Duration) {
    let kept_ms = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
    loop {
        let before_ms = now_ms().saturating_sub(kept_ms);
        match expire(&*store, before_ms).await {
            Ok(0) => {}
            Ok(runs) => tracing::info!(runs, "old runs were deleted"),
            Err(error) => tracing::warn!(%error, "old runs could not be deleted; later again"),
        }
        tokio::time::sleep(LOOKED_EVERY).await;
    }
}

/// Deletes all that are due, and says how many there were.
async fn expire(store: &dyn Store, before_ms: i64) -> rb_store::Result<u64> {
    let mut deleted = 0;
    loop {
        let bite = Change::ExpireRuns { before_ms, runs_max: BITE_RUNS };
        let runs: u64 = store.apply(vec![bite]).await?.iter().sum();
        deleted += runs;
        if runs < u64::from(BITE_RUNS) {
            return Ok(deleted);
        }
        tokio::time::sleep(BITE_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use rb_store::{RunKey, RunStart, Scope};

    use super::*;

    #[tokio::test]
    async fn old_runs_go_and_new_ones_stay() {
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
