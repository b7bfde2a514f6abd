//! The way from the hot path to the store: a bounded queue, written in order and in batches. What does not fit is
//! counted and lost; no request ever waits for it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use rb_store::{Change, RunKey, Store, StoreError};
use tokio::sync::{mpsc, oneshot};

/// Changes that may wait.
const WAITING_MAX: usize = 10_000;
/// Changes written at once.
const BATCH_MAX: usize = 512;
/// So long the first change waits for more: the answer to a short call, the next call, the calls of others. All of them
/// together cost little more than one.
const GATHERED_FOR: Duration = Duration::from_millis(20);
/// While the database is away, it is tried this often.
const AWAY_PAUSE: Duration = Duration::from_millis(500);

/// Takes changes from anywhere.
#[derive(Clone)]
pub(crate) struct Recorder {
    queue: mpsc::Sender<Item>,
    lost: Counter,
}

/// What waits in the queue.
enum Item {
    Change(Change),
    /// Somebody wants to know when everything before this is stored.
    Mark(oneshot::Sender<()>),
}

impl Recorder {
    /// Starts writing to a store; `lost` counts what did not fit.
    pub(crate) fn start(store: Arc<dyn Store>, lost: Counter) -> Self {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(write(store, waiting, lost.clone()));
        Self { queue, lost }
    }

    pub(crate) fn put(&self, change: Change) {
        if self.queue.try_send(Item::Change(change)).is_err() {
            self.lost.inc();
        }
    }

    /// Ready once everything that was put before is stored, or lost for good.
    pub(crate) async fn settled(&self) {
        let (mark, reached) = oneshot::channel();
        if self.queue.send(Item::Mark(mark)).await.is_ok() {
            let _ = reached.await; // nobody writes any more: then nothing is waited for
        }
    }
}

async fn write(store: Arc<dyn Store>, mut waiting: mpsc::Receiver<Item>, lost: Counter) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while waiting.recv_many(&mut batch, BATCH_MAX).await > 0 {
        gather(&mut waiting, &mut batch).await;
        let (mut changes, mut marks) = (Vec::with_capacity(batch.len()), Vec::new());
        for item in batch.drain(..) {
            match item {
                Item::Change(change) => changes.push(change),
                Item::Mark(mark) => marks.push(mark),
            }
        }
        if !changes.is_empty() {
            store_all(&*store, newest_of_each(changes), &lost).await;
        }
        for mark in marks {
            let _ = mark.send(()); // whoever asked may have gone
        }
    }
}

/// Waits for more, unless somebody waits for what is there.
async fn gather(waiting: &mut mpsc::Receiver<Item>, batch: &mut Vec<Item>) {
    if batch.len() < BATCH_MAX && !batch.iter().any(|item| matches!(item, Item::Mark(_))) {
        tokio::time::sleep(GATHERED_FOR).await;
        while batch.len() < BATCH_MAX
            && let Ok(item) = waiting.try_recv()
        {
            batch.push(item);
        }
    }
}

/// What is put under one name.
#[derive(PartialEq, Eq, Hash)]
enum Row<'a> {
    Step(&'a RunKey, u32),
    Conversation(&'a RunKey),
    Setting(&'a str),
}

impl<'a> Row<'a> {
    /// The row that a change puts; none for what is put once.
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

/// A step is put when it is sent and again when it is answered, and what is remembered of its conversation as often.
/// Of what waits, only the newest is written.
fn newest_of_each(mut changes: Vec<Change>) -> Vec<Change> {
    let mut seen = HashSet::with_capacity(changes.len());
    let is_newest = |change| Row::of(change).is_none_or(|row| seen.insert(row));
    let newest: Vec<bool> = changes.iter().rev().map(is_newest).collect();
    let mut newest = newest.into_iter().rev();
    changes.retain(|_| newest.next().unwrap_or(true));
    changes
}

async fn store_all(store: &dyn Store, changes: Vec<Change>, lost: &Counter) {
    loop {
        match store.apply(changes.clone()).await {
            Ok(_) => return,
            Err(StoreError::Unavailable(cause)) => {
                tracing::warn!(cause, "what the gateway saw waits for the database");
                tokio::time::sleep(AWAY_PAUSE).await;
            }
            Err(error) => {
                tracing::error!(%error, "what the gateway saw could not be stored");
                lost.inc_by(changes.len() as u64);
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
        Change::PutStep(Arc::new(StepRow {
            run: run(run_id),
            step_index,
            at_ms,
            ..StepRow::default()
        }))
    }

    fn conversation(run_id: &str, at_ms: i64) -> Change {
        let row = ConversationRow { run: run(run_id), at_ms, ..ConversationRow::default() };
        Change::PutConversation(Box::new(row))
    }

    #[test]
    fn of_what_waits_only_the_newest_of_each_row_is_written() {
        let start = Change::StartRun(Box::new(RunStart { run: run("a"), ..RunStart::default() }));
        let waiting = vec![
            start.clone(),
            step("a", 0, 1),
            conversation("a", 1),
            step("b", 0, 1),
            step("a", 0, 2),
            step("a", 1, 3),
            conversation("a", 3),
            start.clone(),
        ];
        let written = newest_of_each(waiting);
        let expected = [
            start.clone(),
            step("b", 0, 1),
            step("a", 0, 2),
            step("a", 1, 3),
            conversation("a", 3),
            start,
        ];
        assert_eq!(written, expected);
    }
}
