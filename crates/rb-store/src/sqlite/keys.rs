//! API keys, of which only the hash is stored, and settings.

use rusqlite::{Connection, OptionalExtension as _, Result, Row, named_params};

use super::{execute, select};
use crate::KeyRow;

pub(super) fn put(connection: &Connection, key: &KeyRow) -> Result<u64> {
    // The conflict target is the id: a second key with the same hash must fail and not replace the first.
    execute(
        connection,
        "INSERT INTO keys (key_id, name, shown, hash, org, project, created_ms, revoked_ms)
         VALUES (:key_id, :name, :shown, :hash, :org, :project, :created_ms, :revoked_ms)
         ON CONFLICT (key_id) DO UPDATE SET name = excluded.name, shown = excluded.shown,
            hash = excluded.hash, org = excluded.org, project = excluded.project,
            created_ms = excluded.created_ms, revoked_ms = excluded.revoked_ms",
        named_params! {
            ":key_id": key.key_id, ":name": key.name, ":shown": key.shown, ":hash": key.hash,
            ":org": key.org, ":project": key.project, ":created_ms": key.created_ms,
            ":revoked_ms": key.revoked_ms,
        },
    )
}

pub(super) fn revoke(connection: &Connection, key_id: &str, at_ms: i64) -> Result<u64> {
    let sql = "UPDATE keys SET revoked_ms = ?2 WHERE key_id = ?1 AND revoked_ms IS NULL";
    execute(connection, sql, (key_id, at_ms))
}

pub(super) fn list(connection: &Connection) -> Result<Vec<KeyRow>> {
    select(connection, "SELECT * FROM keys ORDER BY created_ms, key_id", (), key)
}

pub(super) fn find(connection: &Connection, hash: &str) -> Result<Option<KeyRow>> {
    let mut statement = connection.prepare_cached("SELECT * FROM keys WHERE hash = ?1")?;
    statement.query_row([hash], key).optional()
}

fn key(row: &Row<'_>) -> Result<KeyRow> {
    Ok(KeyRow {
        key_id: row.get("key_id")?,
        name: row.get("name")?,
        shown: row.get("shown")?,
        hash: row.get("hash")?,
        org: row.get("org")?,
        project: row.get("project")?,
        created_ms: row.get("created_ms")?,
        revoked_ms: row.get("revoked_ms")?,
    })
}

pub(super) fn put_setting(connection: &Connection, name: &str, value: &str) -> Result<u64> {
    let sql = "INSERT OR REPLACE INTO settings (name, value) VALUES (?1, ?2)";
    execute(connection, sql, (name, value))
}

pub(super) fn setting(connection: &Connection, name: &str) -> Result<Option<String>> {
    let mut statement = connection.prepare_cached("SELECT value FROM settings WHERE name = ?1")?;
    statement.query_row([name], |row| row.get(0)).optional()
}

pub(super) fn settings(connection: &Connection) -> Result<Vec<(String, String)>> {
    let sql = "SELECT name, value FROM settings ORDER BY name";
    select(connection, sql, (), |row| Ok((row.get(0)?, row.get(1)?)))
}
