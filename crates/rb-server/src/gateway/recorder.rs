//! The way from the hot path to the store: a bounded queue, written in order and in batches. What does not fit is
//! counted and lost; no request ever waits for it.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use rb_store::{Change, Store, StoreError};
use tokio::sync::mpsc;

/// Changes that may wait.
const WAITING_MAX: usize = 10_000;
/// Changes written at once.
const BATCH_MAX: usize = 256;
/// While the database is away, it is tried this often.
const AWAY_PAUSE: Duration = Duration::from_millis(500);

/// Takes changes from anywhere.
#[derive(Clone)]
pub(super) struct Recorder {
    queue: mpsc::Sender<Change>,
    lost: Counter,
}

impl Recorder {
    /// Starts writing to a store; `lost` counts what did not fit.
    pub(super) fn start(store: Arc<dyn Store>, lost: Counter) -> Self {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(write(store, waiting, lost.clone()));
        Self { queue, lost }
    }

    pub(super) fn put(&self, change: Change) {
        if self.queue.try_send(change).is_err() {
            self.lost.inc();
        }
    }
}

async fn write(store: Arc<dyn Store>, mut waiting: mpsc::Receiver<Change>, lost: Counter) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while waiting.recv_many(&mut batch, BATCH_MAX).await > 0 {
        let changes = std::mem::take(&mut batch);
        loop {
            match store.apply(changes.clone()).await {
                Ok(_) => break,
                Err(StoreError::Unavailable(cause)) => {
                    tracing::warn!(cause, "what the gateway saw waits for the database");
                    tokio::time::sleep(AWAY_PAUSE).await;
                }
                Err(error) => {
                    tracing::error!(%error, "what the gateway saw could not be stored");
                    lost.inc_by(changes.len() as u64);
                    break;
                }
            }
        }
    }
}
