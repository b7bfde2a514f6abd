//! Opens connections: where the file lies, who may read it, and how SQLite is set up.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::fault::while_doing;
use crate::{Result, StoreError};

/// How long a statement waits for another process before it gives up.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Every statement of ours stays prepared.
const STATEMENTS_MAX: usize = 128;

const DOING: &str = "opening the database";

/// Where the data is.
#[derive(Debug, Clone)]
pub(super) enum Place {
    File(PathBuf),
    Memory,
}

/// The connection that writes. A file that is not there is made, for the owner alone.
pub(super) fn writer(place: &Place) -> Result<Connection> {
    let connection = match place {
        Place::File(path) => {
            make(path).map_err(|error| StoreError::Failed {
                doing: DOING,
                cause: format!("`{}`: {error}", path.display()),
            })?;
            open(path)?
        }
        Place::Memory => Connection::open_in_memory().map_err(while_doing(DOING))?,
    };
    // FULL: a commit is on the disk before it is answered. The journal is put into the database by a thread of its own
    // (`checkpoint`); only one of 16,000 pages (64 MB) is left to a commit, since that makes everybody in it wait.
    let settings = "PRAGMA journal_mode = WAL;
        PRAGMA synchronous = FULL;
        PRAGMA wal_autocheckpoint = 16000;
        PRAGMA journal_size_limit = 67108864;
        PRAGMA temp_store = MEMORY;
        PRAGMA cache_size = -16384;";
    connection.execute_batch(settings).map_err(while_doing(DOING))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

/// A connection that only reads.
pub(super) fn reader(path: &Path) -> Result<Connection> {
    let connection = open(path)?;
    let settings = "PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -4096;";
    connection.execute_batch(settings).map_err(while_doing(DOING))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(connection)
}

/// A connection that puts the journal into the database.
pub(super) fn checkpointer(path: &Path) -> Result<Connection> {
    let connection = open(path)?;
    let settings = "PRAGMA synchronous = FULL; PRAGMA cache_size = -512;";
    connection.execute_batch(settings).map_err(while_doing(DOING))?;
    Ok(connection)
}

/// A handle of the file itself, the same for all stores of this process that have it open. It must be closed only after
/// their connections: with any handle of a file, a process gives up all the locks it has on it, and so SQLite's.
pub(super) fn handle(path: &Path) -> Result<Arc<File>> {
    static OPEN: Mutex<BTreeMap<PathBuf, Weak<File>>> = Mutex::new(BTreeMap::new());
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|_, file| file.strong_count() > 0);
    let opened = path.canonicalize().and_then(|path| {
        if let Some(file) = open.get(&path).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let file = Arc::new(File::open(&path)?);
        open.insert(path, Arc::downgrade(&file));
        Ok(file)
    });
    opened.map_err(|error| StoreError::Unavailable(error.to_string()))
}

fn open(path: &Path) -> Result<Connection> {
    // No URI: a path with a question mark in it is a path. No mutex: a connection stays on its thread.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(while_doing(DOING))?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(while_doing(DOING))?;
    Ok(connection)
}

/// Makes the file and the directories above it where they are missing. Prompts and hashes of keys are inside, so the
/// file is closed to others even if it was open before; a directory that was there is somebody else's business.
/// SQLite gives the journal beside it the same permissions.
///
/// A file that exists is never opened here: closing it would let go of the locks that another store of this process
/// may hold on it.
fn make(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        private_directory().recursive(true).create(directory)?;
    }
    match private_file().write(true).create_new(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => close_to_others(path),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn private_directory() -> DirBuilder {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

#[cfg(unix)]
fn private_file() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

#[cfg(unix)]
fn close_to_others(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = fs::metadata(path)?;
    let mut permissions = metadata.permissions();
    if metadata.is_file() && permissions.mode() & 0o077 != 0 {
        permissions.set_mode(permissions.mode() & 0o700);
        fs::set_permissions(path, permissions)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn private_directory() -> DirBuilder {
    DirBuilder::new()
}

#[cfg(not(unix))]
fn private_file() -> OpenOptions {
    OpenOptions::new()
}

#[cfg(not(unix))]
fn close_to_others(_: &Path) -> io::Result<()> {
    Ok(())
}
