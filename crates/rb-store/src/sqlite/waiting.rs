//! What people want to say to runs, until somebody takes it along.

use rusqlite::{Connection, Result};

use super::{execute, select};
use crate::{RunKey, WaitingRow};

pub(super) fn put(connection: &Connection, row: &WaitingRow) -> Result<u64> {
    let sql = "INSERT OR REPLACE INTO waiting (org, run_id, words_id, text, at_ms)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let WaitingRow { run, words_id, text, at_ms } = row;
    execute(connection, sql, (&run.org, &run.run_id, words_id, text, at_ms))
}

pub(super) fn take(connection: &Connection, run: &RunKey, words_id: &str) -> Result<u64> {
    let sql = "DELETE FROM waiting WHERE org = ?1 AND run_id = ?2 AND words_id = ?3";
    execute(connection, sql, (&run.org, &run.run_id, words_id))
}

pub(super) fn expire(connection: &Connection, before_ms: i64) -> Result<u64> {
    execute(connection, "DELETE FROM waiting WHERE at_ms < ?1", (before_ms,))
}

pub(super) fn list(connection: &Connection, run: &RunKey) -> Result<Vec<WaitingRow>> {
    let sql = "SELECT words_id, text, at_ms FROM waiting WHERE org = ?1 AND run_id = ?2
               ORDER BY at_ms, words_id";
    select(connection, sql, (&run.org, &run.run_id), |row| {
        Ok(WaitingRow {
            run: run.clone(),
            words_id: row.get(0)?,
            text: row.get(1)?,
            at_ms: row.get(2)?,
        })
    })
}

pub(super) fn runs(connection: &Connection, since_ms: i64) -> Result<Vec<RunKey>> {
    let sql = "SELECT DISTINCT org, run_id FROM waiting WHERE at_ms >= ?1 ORDER BY org, run_id";
    select(connection, sql, (since_ms,), |row| Ok(RunKey { org: row.get(0)?, run_id: row.get(1)? }))
}
