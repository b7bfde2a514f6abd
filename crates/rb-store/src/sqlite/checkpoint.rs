//! The thread that puts the journal into the database.
//!
//! SQLite does that in the commit that makes the journal long enough, and everybody in that commit waits for it: tens of
//! milliseconds, several times a minute under load. A second connection may do it while the writer goes on. The writer
//! still does what is left when the journal is long, since only a journal that is done with wholly begins anew.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::connect;
use crate::{Result, StoreError};

/// The journal is looked at this often.
const EVERY: Duration = Duration::from_millis(100);
/// A shorter one may wait: 1,000 pages, a quarter of what the writer lets it grow to.
const BYTES_MIN: u64 = 4 << 20;

/// The thread; it ends when this is dropped.
pub(super) struct Checkpointer {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(super) fn start(path: &Path) -> Result<Self> {
        let connection = connect::checkpointer(path)?;
        let mut journal = path.as_os_str().to_owned();
        journal.push("-wal");
        let journal = PathBuf::from(journal);
        let (end, ended) = mpsc::channel::<()>();
        let work = move || {
            let mut done = None;
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let Ok(about) = std::fs::metadata(&journal) else { continue };
                // It stays as long as it was, so a store at rest is known by the time of the last write.
                let written = about.modified().ok();
                if about.len() >= BYTES_MIN && (written.is_none() || written != done) {
                    put_in(&connection);
                    done = written;
                }
            }
        };
        let thread = std::thread::Builder::new().name("store-journal".to_owned()).spawn(work);
        let thread = thread.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to do.
            drop(thread.join());
        }
    }
}

/// Puts in what can be put in without waiting for anybody. What fails is done by the writer later.
fn put_in(connection: &Connection) {
    let sql = "PRAGMA wal_checkpoint(PASSIVE)";
    let _ = connection.query_row(sql, (), |_| Ok(()));
}
