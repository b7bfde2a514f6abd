//! The way from the hot path to the store: a bounded queue, written in order and in batches. What does not fit is
//! counted and lost; no request ever waits for it.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use rb_store::{Change, Store, StoreError};
use tokio::sync::{mpsc, oneshot};

/// Changes that may wait.
const WAITING_MAX: usize = 10_000;
/// Changes written at once.
const BATCH_MAX: usize = 256;
/// While the database is away, it is tried this often.
const AWAY_PAUSE: Duration = Duration::from_millis(500);

/// Takes changes from anywhere.
#[derive(Clone)]
pub(super) struct Recorder {
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
    pub(super) fn start(store: Arc<dyn Store>, lost: Counter) -> Self {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(write(store, waiting, lost.clone()));
        Self { queue, lost }
    }

    pub(super) fn put(&self, change: Change) {
        if self.queue.try_send(Item::Change(change)).is_err() {
            self.lost.inc();
        }
    }

    /// Ready once everything that was put before is stored, or lost for good.
    pub(super) async fn settled(&self) {
        let (mark, reached) = oneshot::channel();
        if self.queue.send(Item::Mark(mark)).await.is_ok() {
            let _ = reached.await; // nobody writes any more: then nothing is waited for
        }
    }
}

async fn write(store: Arc<dyn Store>, mut waiting: mpsc::Receiver<Item>, lost: Counter) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while waiting.recv_many(&mut batch, BATCH_MAX).await > 0 {
        let (mut changes, mut marks) = (Vec::with_capacity(batch.len()), Vec::new());
        for item in batch.drain(..) {
            match item {
                Item::Change(change) => changes.push(change),
                Item::Mark(mark) => marks.push(mark),
            }
        }
        if !changes.is_empty() {
            store_all(&*store, changes, &lost).await;
        }
        for mark in marks {
            let _ = mark.send(()); // whoever asked may have gone
        }
    }
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
