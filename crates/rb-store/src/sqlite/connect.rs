//! Opens connections, with file permissions and SQLite settings.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::with_context;
use crate::{Result, StoreError};

/// Maximum time that a statement waits for a lock of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Capacity for all statements of this crate.
const STATEMENT_CACHE_CAPACITY: usize = 128;

const OPERATION: &str = "opening the database";

/// Location of the database.
#[derive(Debug, Clone)]
pub(super) enum Location {
    File(PathBuf),
    Memory,
}

/// Opens the connection for writing. Creates a missing file with access for its owner only.
pub(super) fn writer(place: &Location) -> Result<Connection> {
    let connection = match place {
        Location::File(path) => {
            make(path).map_err(|error| StoreError::Failed {
                operation: OPERATION,
                cause: format!("`{}`: {error}", path.display()),
            })?;
            open(path)?
        }
        Location::Memory => Connection::open_in_memory().map_err(with_context(OPERATION))?,
    };
    // FULL: a commit is synced before it is acknowledged. The WAL is checkpointed by a background thread
    // (`checkpointer`); a commit does it only at 16,000 pages (64 MB), because it delays every request of the commit.
    let settings = "PRAGMA journal_mode = WAL;
        PRAGMA synchronous = FULL;
        PRAGMA wal_autocheckpoint = 16000;
        PRAGMA journal_size_limit = 67108864;
        PRAGMA temp_store = MEMORY;
        PRAGMA cache_size = -16384;";
    connection.execute_batch(settings).map_err(with_context(OPERATION))?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_CAPACITY);
    Ok(connection)
}

/// Opens a read-only connection.
pub(super) fn reader(path: &Path) -> Result<Connection> {
    let connection = open(path)?;
    let settings = "PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -4096;";
    connection.execute_batch(settings).map_err(with_context(OPERATION))?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE_CAPACITY);
    Ok(connection)
}

/// Opens the connection of the checkpointer.
pub(super) fn checkpointer(path: &Path) -> Result<Connection> {
    let connection = open(path)?;
    let settings = "PRAGMA synchronous = FULL; PRAGMA cache_size = -512;";
    connection.execute_batch(settings).map_err(with_context(OPERATION))?;
    Ok(connection)
}

/// Returns a handle of the file that all stores of this process share. It must be closed after their connections:
/// closing any handle of a file releases all POSIX locks of the process on it, including SQLite's.
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
    // No URI, so a path may contain a question mark. No mutex, because a connection stays on its thread.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(with_context(OPERATION))?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(with_context(OPERATION))?;
    Ok(connection)
}

/// Creates the file and its missing parent directories. The file contains prompts and key hashes, so access is
/// limited to its owner even if it existed with other permissions; existing directories are not changed. SQLite
/// creates the WAL with the permissions of the file.
///
/// An existing file is not opened here, because closing it would release the locks of other stores in this process.
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
