//! Background thread that checkpoints the WAL.
//!
//! By default SQLite checkpoints inside the commit that fills the WAL, which delays every request of that commit by
//! tens of milliseconds several times a minute under load. This thread checkpoints on a second connection while the
//! writer continues. The WAL is only reset when the writer finds it completely checkpointed, which is rare under
//! load: when the WAL is large and synced, the writer is asked to checkpoint the few remaining pages.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, Row};
use tokio::sync::mpsc::Sender as Queue;

use super::connect;
use super::writer::Request;
use crate::{Result, StoreError};

/// Interval between two looks at the size of the WAL.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Size below which the WAL is not checkpointed: 1,000 pages.
const MIN_WAL_BYTES: u64 = 4 << 20;
/// Size from which the WAL should be reset.
const RESET_PAGES: u32 = 4_000;
/// Maximum number of pages left to the writer, which is a commit or two.
const MAX_REMAINING_PAGES: u32 = 500;

/// Handle of the thread, which ends when this is dropped.
pub(super) struct Checkpointer {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(super) fn start(path: &Path, database: Arc<File>, writer: Queue<Request>) -> Result<Self> {
        let connection = connect::checkpointer(path)?;
        let wal = Wal { connection, database };
        let mut path = path.as_os_str().to_owned();
        path.push("-wal");
        let path = PathBuf::from(path);
        let (end, ended) = mpsc::channel::<()>();
        let work = move || {
            let mut done = None;
            while ended.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let Ok(about) = fs::metadata(&path) else { continue };
                // The file keeps its length after a reset, so an idle store is recognised by the modification time.
                let written = about.modified().ok();
                if about.len() >= MIN_WAL_BYTES && (written.is_none() || written != done) {
                    done = written;
                    if wal.checkpoint_is_nearly_complete() {
                        let rest = |connection: &Connection| {
                            checkpoint(connection);
                        };
                        // If the queue is full, the writer is asked next time.
                        drop(writer.try_send(Request::Do(Box::new(rest))));
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("store-checkpointer".to_owned()).spawn(work);
        let thread = thread.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panicked thread has nothing left to do.
            drop(thread.join());
        }
    }
}

/// The WAL, seen from outside the writer.
struct Wal {
    connection: Connection,
    database: Arc<File>,
}

impl Wal {
    /// Checkpoints. If the WAL is large, also syncs the database file, which SQLite leaves to the connection that
    /// resets the WAL. Returns true if the WAL is large and nearly completely checkpointed.
    fn checkpoint_is_nearly_complete(&self) -> bool {
        let is_long =
            checkpoint(&self.connection).is_some_and(|progress| progress.pages >= RESET_PAGES);
        is_long
            && self.database.sync_data().is_ok()
            && checkpoint(&self.connection)
                .is_some_and(|progress| progress.remaining() <= MAX_REMAINING_PAGES)
    }
}

/// Progress of a checkpoint.
struct Progress {
    pages: u32,
    done: u32,
}

impl Progress {
    fn remaining(&self) -> u32 {
        self.pages.saturating_sub(self.done)
    }
}

/// Checkpoints as far as possible without blocking. Errors are ignored, since the writer checkpoints later.
fn checkpoint(connection: &Connection) -> Option<Progress> {
    let sql = "PRAGMA wal_checkpoint(PASSIVE)";
    let progress = |row: &Row<'_>| Ok(Progress { pages: row.get(1)?, done: row.get(2)? });
    connection.query_row(sql, (), progress).ok()
}
