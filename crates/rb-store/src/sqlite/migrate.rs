//! Brings a database to the schema this program knows, or says why it does not.

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};

use super::fault::while_doing;
use crate::{Result, StoreError};

/// One step of the schema; its version is its place in the list, counted from one.
pub(super) struct Migration {
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
}

/// Every migration, oldest first. What was released is never changed.
pub(super) const ALL: &[Migration] =
    &[Migration { name: "first", sql: include_str!("../../migrations/sqlite/0001_first.sql") }];

const DOING: &str = "bringing the database up to date";

/// Applies what is missing, all of it or nothing. Two processes that open a new file at once do it one after the other.
pub(super) fn migrate(connection: &mut Connection, migrations: &[Migration]) -> Result<()> {
    let known = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    if version(connection)? == Some(known) {
        return Ok(());
    }
    let transaction =
        Transaction::new(connection, TransactionBehavior::Immediate).map_err(while_doing(DOING))?;
    let found = match version(&transaction)? {
        Some(found) if found > known => return Err(StoreError::TooNew { found, known }),
        Some(found) => found,
        None => begin(&transaction)?,
    };
    for (version, migration) in (1..=known).zip(migrations).filter(|(at, _)| *at > found) {
        let applied = transaction.execute_batch(migration.sql).and_then(|()| {
            transaction.execute(
                "INSERT INTO migrations (version, name) VALUES (?1, ?2)",
                (version, migration.name),
            )
        });
        applied.map_err(|error| StoreError::Failed {
            doing: DOING,
            cause: format!("migration {version} ({}): {error}", migration.name),
        })?;
    }
    transaction.commit().map_err(while_doing(DOING))
}

/// The version of the schema, or none in a file that has none of ours.
fn version(connection: &Connection) -> Result<Option<u32>> {
    let is_ours = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations'";
    let is_ours =
        connection.query_row(is_ours, (), |_| Ok(())).optional().map_err(while_doing(DOING))?;
    if is_ours.is_none() {
        return Ok(None);
    }
    let newest = "SELECT coalesce(max(version), 0) FROM migrations";
    connection.query_row(newest, (), |row| row.get(0)).map(Some).map_err(while_doing(DOING))
}

/// Prepares an empty file; a file that holds somebody else's tables is left alone.
fn begin(connection: &Connection) -> Result<u32> {
    let tables = "SELECT count(*) FROM sqlite_master";
    let tables: u32 =
        connection.query_row(tables, (), |row| row.get(0)).map_err(while_doing(DOING))?;
    if tables > 0 {
        return Err(StoreError::Failed {
            doing: DOING,
            cause: "the file is the database of another program: name another file".to_owned(),
        });
    }
    let table = "CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL)";
    connection.execute(table, ()).map_err(while_doing(DOING))?;
    Ok(0)
}
