//! The thread that puts the journal into the database.
//!
//! SQLite does that in the commit that makes the journal long enough, and everybody in that commit waits for it: tens of
//! milliseconds, several times a minute under load. A second connection does it while the writer goes on. But a journal
//! begins anew only when the writer finds it done with wholly, which it hardly ever is while many write: so when it is
//! long, and all that was in it is on the disk, the writer is asked to do the little that came since.

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

/// The journal is looked at this often.
const EVERY: Duration = Duration::from_millis(100);
/// A shorter one may wait: 1,000 pages.
const BYTES_MIN: u64 = 4 << 20;
/// A journal of so many pages should begin anew.
const PAGES_LONG: u32 = 4_000;
/// What may be left to the writer: a commit or two.
const PAGES_LEFT_MAX: u32 = 500;

/// The thread; it ends when this is dropped.
pub(super) struct Checkpointer {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(super) fn start(path: &Path, database: Arc<File>, writer: Queue<Request>) -> Result<Self> {
        let connection = connect::checkpointer(path)?;
        let journal = Journal { connection, database };
        let mut path = path.as_os_str().to_owned();
        path.push("-wal");
        let path = PathBuf::from(path);
        let (end, ended) = mpsc::channel::<()>();
        let work = move || {
            let mut done = None;
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let Ok(about) = fs::metadata(&path) else { continue };
                // It stays as long as it was, so a store at rest is known by the time of the last write.
                let written = about.modified().ok();
                if about.len() >= BYTES_MIN && (written.is_none() || written != done) {
                    done = written;
                    if journal.is_long_and_all_but_done_with() {
                        let rest = |connection: &Connection| {
                            put_in(connection);
                        };
                        // With a full queue it is asked next time.
                        drop(writer.try_send(Request::Do(Box::new(rest))));
                    }
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

/// The journal, seen from outside the writer.
struct Journal {
    connection: Connection,
    database: Arc<File>,
}

impl Journal {
    /// Puts in what there is; where that is much, also sees to it that it is on the disk, which SQLite leaves to whoever
    /// ends the journal.
    fn is_long_and_all_but_done_with(&self) -> bool {
        let is_long = put_in(&self.connection).is_some_and(|put| put.pages >= PAGES_LONG);
        is_long
            && self.database.sync_data().is_ok()
            && put_in(&self.connection).is_some_and(|put| put.left() <= PAGES_LEFT_MAX)
    }
}

/// How far a journal is in the database.
struct Put {
    pages: u32,
    done: u32,
}

impl Put {
    fn left(&self) -> u32 {
        self.pages.saturating_sub(self.done)
    }
}

/// Puts in what can be put in without waiting for anybody. What fails is done by the writer later.
fn put_in(connection: &Connection) -> Option<Put> {
    let sql = "PRAGMA wal_checkpoint(PASSIVE)";
    let put = |row: &Row<'_>| Ok(Put { pages: row.get(1)?, done: row.get(2)? });
    connection.query_row(sql, (), put).ok()
}
