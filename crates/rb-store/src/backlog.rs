//! On-disk write queue for a database that may be unavailable.
//!
//! While the database is unreachable, changes of runs are stored in a SQLite file on this node, and a background task
//! drains the file when the database is back. Until the file is empty all further changes are queued too, which
//! preserves their order. A queued change is as durable as a stored one, so the call succeeds. Changes that cannot be
//! queued, such as a new key, fail.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{RwLock, mpsc};

use crate::copy::drain_into;
use crate::sqlite::Sqlite;
use crate::{Change, NodeEvents, Result, Store, StoreError};

/// Interval between two attempts to drain the queue.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of queued calls that are drained while new calls wait.
const MAX_FINAL_DRAIN: u64 = 50;
/// Maximum number of passes over a queue that keeps growing.
const MAX_DRAIN_PASSES: u32 = 10;

/// State of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BacklogState {
    /// True if the queue is not empty.
    pub is_pending: bool,
    /// Size of the files on disk.
    pub bytes: u64,
}

/// Wraps a store with a write queue.
pub struct Backlog {
    store: Arc<dyn Store>,
    path: PathBuf,
    max_bytes: u64,
    /// Current queue file. Locked for reading while changes are added to it.
    file: RwLock<Option<Arc<dyn Store>>>,
    is_active: AtomicBool,
    /// Number of calls queued since the last rotation.
    queued_calls: AtomicU64,
}

impl Backlog {
    /// Wraps a store with a queue in the file `path` of at most `max_bytes`. Changes left in the file by an earlier
    /// process are drained first.
    pub async fn wrap(
        store: Arc<dyn Store>,
        path: &Path,
        max_bytes: u64,
    ) -> Result<Arc<dyn Store>> {
        let waiting: Option<Arc<dyn Store>> =
            if path.exists() { Some(Arc::new(Sqlite::open(path).await?)) } else { None };
        let this = Arc::new(Self {
            store,
            path: path.to_owned(),
            max_bytes,
            is_active: AtomicBool::new(false),
            // The number of calls in an existing file is unknown.
            queued_calls: AtomicU64::new(if waiting.is_some() { MAX_FINAL_DRAIN + 1 } else { 0 }),
            file: RwLock::new(waiting),
        });
        this.is_active.store(this.bytes() > 0, Ordering::SeqCst);
        tokio::spawn(drain_loop(Arc::downgrade(&this)));
        Ok(this)
    }

    fn is_active(&self) -> bool {
        self.is_active.load(Ordering::SeqCst)
    }

    /// Adds changes to the file. Version guards are dropped, since the current version is unknown.
    async fn enqueue(&self, changes: &[Change]) -> Result<Vec<u64>> {
        let is_guard = |change: &&Change| matches!(change, Change::ExpectVersion { .. });
        let kept: Vec<Change> = changes.iter().filter(|one| !is_guard(one)).cloned().collect();
        if self.bytes() > self.max_bytes {
            let full = "write queue full; increase `backlog_bytes_max` or restore the database";
            return Err(StoreError::Unavailable(full.to_owned()));
        }
        loop {
            let file = self.file.read().await;
            if let Some(file) = &*file {
                file.apply(kept).await?;
                self.queued_calls.fetch_add(1, Ordering::SeqCst);
                return Ok(vec![1; changes.len()]);
            }
            drop(file);
            let mut file = self.file.write().await;
            if file.is_none() {
                *file = Some(Arc::new(Sqlite::open(&self.path).await?));
                self.is_active.store(true, Ordering::SeqCst);
                tracing::warn!("database unavailable; changes of runs are queued on disk");
            }
        }
    }

    /// Drains the queue and removes its file. Changes that arrive meanwhile go to a new file, until the remaining
    /// number is small enough for callers to wait for the last pass.
    async fn drain(&self) -> Result<()> {
        let mut steps = 0;
        for pass in 1.. {
            steps += self.drain_rotated().await?;
            let mut file = self.file.write().await;
            if pass < MAX_DRAIN_PASSES
                && self.queued_calls.swap(0, Ordering::SeqCst) > MAX_FINAL_DRAIN
            {
                self.rotate(&mut file)?;
                continue;
            }
            if file.is_some() {
                self.rotate(&mut file)?;
                steps += self.drain_rotated().await?;
            }
            self.is_active.store(false, Ordering::SeqCst);
            tracing::info!(steps, "database available again; the queue is drained");
            break;
        }
        Ok(())
    }

    /// Closes the file and renames it to the one that is drained next.
    fn rotate(&self, file: &mut Option<Arc<dyn Store>>) -> Result<()> {
        *file = None;
        for (name, older) in files(&self.path).into_iter().zip(files(&self.rotated_path())) {
            match std::fs::rename(&name, &older) {
                // A database that was closed cleanly has no WAL files.
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    let cause = format!("`{}`: {error}", name.display());
                    return Err(StoreError::Failed {
                        operation: "rotating the write queue",
                        cause,
                    });
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    async fn drain_rotated(&self) -> Result<u64> {
        let older = self.rotated_path();
        if !older.exists() {
            return Ok(0);
        }
        let file: Arc<dyn Store> = Arc::new(Sqlite::open(&older).await?);
        let steps = drain_into(&file, &self.store).await?;
        drop(file);
        for file in files(&older) {
            // A file that stays is drained again, which is idempotent.
            let _ = std::fs::remove_file(file);
        }
        Ok(steps)
    }

    fn rotated_path(&self) -> PathBuf {
        self.path.with_extension("older.db")
    }

    fn bytes(&self) -> u64 {
        let length = |file: &PathBuf| std::fs::metadata(file).map_or(0, |about| about.len());
        files(&self.path).iter().chain(&files(&self.rotated_path())).map(length).sum()
    }
}

/// Returns the paths of a database and its WAL files.
fn files(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        name.into()
    })
}

/// Drains the queue whenever the database is available, until the store is dropped.
async fn drain_loop(backlog: Weak<Backlog>) {
    loop {
        let Some(this) = backlog.upgrade() else { return };
        if this.is_active()
            && this.store.ping().await.is_ok()
            && let Err(error) = this.drain().await
        {
            tracing::debug!(%error, "failed to drain the write queue");
        }
        drop(this);
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Returns true for changes of runs, which may be written later.
fn is_queueable(change: &Change) -> bool {
    matches!(
        change,
        Change::ExpectVersion { .. }
            | Change::StartRun(_)
            | Change::PutStep(_)
            | Change::AmendStep(_)
            | Change::FinishRun { .. }
            | Change::PutConversation(_)
            | Change::PutSetting { .. }
    )
}

#[async_trait::async_trait]
impl Store for Backlog {
    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
        if !changes.iter().all(is_queueable) {
            return self.store.apply(changes).await;
        }
        if !self.is_active() {
            match self.store.apply(changes.clone()).await {
                Err(StoreError::Unavailable(_)) => {}
                done => return done,
            }
        }
        self.enqueue(&changes).await
    }

    async fn ping(&self) -> Result<()> {
        self.store.ping().await
    }

    fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    fn backlog(&self) -> Option<BacklogState> {
        Some(BacklogState { is_pending: self.is_active(), bytes: self.bytes() })
    }
}

#[async_trait::async_trait]
impl NodeEvents for Backlog {
    async fn publish(&self, node: &str, at_ms: i64, messages: Vec<String>) -> Result<()> {
        self.store.publish(node, at_ms, messages).await
    }

    fn subscribe(&self, node: &str) -> Option<mpsc::Receiver<String>> {
        self.store.subscribe(node)
    }
}

/// Implements the areas of reads. While the database is unavailable, single runs are read from the queue, as far as this
/// node has written them.
macro_rules! delegate_reads {
    (@area Runs $name:ident($self:ident, $($argument:ident),*)) => {{
        let found = $self.store.$name($($argument),*).await;
        match (&found, &*$self.file.read().await) {
            (Err(StoreError::Unavailable(_)), Some(file)) => file.$name($($argument),*).await,
            _ => found,
        }
    }};
    (@area $area:ident $name:ident($self:ident, $($argument:ident),*)) => {
        $self.store.$name($($argument),*).await
    };
    ($($area:ident { $($name:ident($($argument:ident: $kind:ty),*) -> $output:ty;)* })*) => {$(
        #[async_trait::async_trait]
        impl crate::$area for Backlog {
            $(async fn $name(&self, $($argument: $kind),*) -> Result<$output> {
                delegate_reads!(@area $area $name(self, $($argument),*))
            })*
        }
    )*};
}

crate::for_each_store_read!(delegate_reads);
