//! Bounded queue of changes between the gateway's requests and the store.
//!
//! Changes are written in order and in batches. A change that does not fit is dropped and counted; no request waits for
//! the store.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use rb_store::{Change, RunKey, Store, StoreError};
use tokio::sync::{mpsc, oneshot};

/// Maximum changes in the queue.
const QUEUE_CAPACITY: usize = 10_000;
/// Maximum changes in a batch.
const MAX_BATCH: usize = 512;
/// Time for which the first change of a batch waits for more. A short call is then written together with its response
/// and with the calls of other runs.
const BATCH_WINDOW: Duration = Duration::from_millis(20);
/// Interval between two attempts while the database is unavailable.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Sending side of the queue.
#[derive(Clone)]
pub struct WriteQueue {
    items: mpsc::Sender<Item>,
    dropped: Counter,
}

enum Item {
    Change(Change),
    /// Notifies the sender once everything before it is written.
    Flush(oneshot::Sender<()>),
}

impl WriteQueue {
    /// Starts the task that writes to the store; `dropped` counts the changes that were lost.
    pub fn start(store: Arc<dyn Store>, dropped: Counter) -> Self {
        let (items, queued) = mpsc::channel(QUEUE_CAPACITY);
        tokio::spawn(write_loop(store, queued, dropped.clone()));
        Self { items, dropped }
    }

    /// Queues a change.
    pub fn put(&self, change: Change) {
        if self.items.try_send(Item::Change(change)).is_err() {
            self.dropped.inc();
        }
    }

    /// Waits until every change queued so far is written or lost.
    pub async fn flush(&self) {
        let (flushed, done) = oneshot::channel();
        if self.items.send(Item::Flush(flushed)).await.is_ok() {
            let _ = done.await; // fails if the task has ended, and then nothing is pending
        }
    }
}

async fn write_loop(store: Arc<dyn Store>, mut queued: mpsc::Receiver<Item>, dropped: Counter) {
    let mut batch = Vec::with_capacity(MAX_BATCH);
    while queued.recv_many(&mut batch, MAX_BATCH).await > 0 {
        fill(&mut queued, &mut batch).await;
        let (mut changes, mut waiters) = (Vec::with_capacity(batch.len()), Vec::new());
        for item in batch.drain(..) {
            match item {
                Item::Change(change) => changes.push(change),
                Item::Flush(waiter) => waiters.push(waiter),
            }
        }
        if !changes.is_empty() {
            write(&*store, deduplicate(changes), &dropped).await;
        }
        for waiter in waiters {
            let _ = waiter.send(()); // the caller may have timed out
        }
    }
}

/// Waits for more changes, unless a flush is requested.
async fn fill(queued: &mut mpsc::Receiver<Item>, batch: &mut Vec<Item>) {
    if batch.len() < MAX_BATCH && !batch.iter().any(|item| matches!(item, Item::Flush(_))) {
        tokio::time::sleep(BATCH_WINDOW).await;
        while batch.len() < MAX_BATCH
            && let Ok(item) = queued.try_recv()
        {
            batch.push(item);
        }
    }
}

/// Key of a row that is replaced as a whole.
#[derive(PartialEq, Eq, Hash)]
enum RowKey<'a> {
    Step(&'a RunKey, u32),
    Conversation(&'a RunKey),
    Setting(&'a str),
}

impl<'a> RowKey<'a> {
    /// Key of the row that a change replaces; `None` for other changes.
    fn of(change: &'a Change) -> Option<Self> {
        if let Change::PutStep(step) | Change::AmendStep(step) = change {
            Some(Self::Step(&step.run, step.step_index))
        } else if let Change::PutConversation(row) = change {
            Some(Self::Conversation(&row.run))
        } else if let Change::PutSetting { name, .. } = change {
            Some(Self::Setting(name))
        } else {
            None
        }
    }
}

/// Drops changes whose row is replaced by a later change of the batch.
fn deduplicate(mut changes: Vec<Change>) -> Vec<Change> {
    let mut seen = HashSet::with_capacity(changes.len());
    let is_last = |change| RowKey::of(change).is_none_or(|key| seen.insert(key));
    let last: Vec<bool> = changes.iter().rev().map(is_last).collect();
    let mut last = last.into_iter().rev();
    changes.retain(|_| last.next().unwrap_or(true));
    changes
}

async fn write(store: &dyn Store, changes: Vec<Change>, dropped: &Counter) {
    loop {
        match store.apply(changes.clone()).await {
            Ok(_) => return,
            Err(StoreError::Unavailable(cause)) => {
                tracing::warn!(cause, "queued changes wait for the database");
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            Err(error) => {
                tracing::error!(%error, "queued changes not stored");
                dropped.inc_by(changes.len() as u64);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rb_store::{ConversationRow, RunStart, StepRow};

    use super::*;

    fn run(run_id: &str) -> RunKey {
        RunKey { org: "o".to_owned(), run_id: run_id.to_owned() }
    }

    fn step(run_id: &str, step_index: u32, at_ms: i64) -> Change {
        let step = StepRow { run: run(run_id), step_index, at_ms, ..StepRow::default() };
        Change::PutStep(Arc::new(step))
    }

    fn conversation(run_id: &str, at_ms: i64) -> Change {
        let row = ConversationRow { run: run(run_id), at_ms, ..ConversationRow::default() };
        Change::PutConversation(Box::new(row))
    }

    #[test]
    fn a_batch_keeps_the_last_change_of_each_row() {
        let start = Change::StartRun(Box::new(RunStart { run: run("a"), ..RunStart::default() }));
        let queued = vec![
            start.clone(),
            step("a", 0, 1),
            conversation("a", 1),
            step("b", 0, 1),
            step("a", 0, 2),
            step("a", 1, 3),
            conversation("a", 3),
            start.clone(),
        ];
        let expected = [
            start.clone(),
            step("b", 0, 1),
            step("a", 0, 2),
            step("a", 1, 3),
            conversation("a", 3),
            start,
        ];
        assert_eq!(deduplicate(queued), expected);
    }
}
