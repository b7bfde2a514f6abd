//! Undelivered operator messages.

use rusqlite::{Connection, Result};

use super::{execute, select};
use crate::{OperatorMessageRow, RunKey};

pub(super) fn put(connection: &Connection, row: &OperatorMessageRow) -> Result<u64> {
    let sql = "INSERT OR REPLACE INTO operator_messages (org, run_id, message_id, text, at_ms)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let OperatorMessageRow { run, message_id, text, at_ms } = row;
    execute(connection, sql, (&run.org, &run.run_id, message_id, text, at_ms))
}

pub(super) fn take(connection: &Connection, run: &RunKey, message_id: &str) -> Result<u64> {
    let sql = "DELETE FROM operator_messages WHERE org = ?1 AND run_id = ?2 AND message_id = ?3";
    execute(connection, sql, (&run.org, &run.run_id, message_id))
}

pub(super) fn expire(connection: &Connection, before_ms: i64) -> Result<u64> {
    execute(connection, "DELETE FROM operator_messages WHERE at_ms < ?1", (before_ms,))
}

pub(super) fn list(connection: &Connection, run: &RunKey) -> Result<Vec<OperatorMessageRow>> {
    let sql = "SELECT message_id, text, at_ms FROM operator_messages WHERE org = ?1 AND run_id = ?2
               ORDER BY at_ms, message_id";
    select(connection, sql, (&run.org, &run.run_id), |row| {
        Ok(OperatorMessageRow {
            run: run.clone(),
            message_id: row.get(0)?,
            text: row.get(1)?,
            at_ms: row.get(2)?,
        })
    })
}

pub(super) fn runs(connection: &Connection, since_ms: i64) -> Result<Vec<RunKey>> {
    let sql =
        "SELECT DISTINCT org, run_id FROM operator_messages WHERE at_ms >= ?1 ORDER BY org, run_id";
    select(connection, sql, (since_ms,), |row| Ok(RunKey { org: row.get(0)?, run_id: row.get(1)? }))
}
