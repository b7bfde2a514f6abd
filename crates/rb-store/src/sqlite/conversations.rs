//! What the gateway remembers of conversations.

use rusqlite::{Connection, OptionalExtension as _, Result};

use super::{execute, select};
use crate::{ConversationRow, RunKey};

pub(super) fn put(connection: &Connection, row: &ConversationRow) -> Result<u64> {
    let sql = "INSERT OR REPLACE INTO conversations (org, run_id, head, state, at_ms)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    execute(connection, sql, (&row.run.org, &row.run.run_id, &row.head, &row.state, row.at_ms))
}

pub(super) fn find(connection: &Connection, run: &RunKey) -> Result<Option<String>> {
    let sql = "SELECT state FROM conversations WHERE org = ?1 AND run_id = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row((&run.org, &run.run_id), |row| row.get(0)).optional()
}

/// The run of the newest conversation with the first of the heads that any has.
pub(super) fn with_head(
    connection: &Connection,
    org: &str,
    heads: &[String],
) -> Result<Option<String>> {
    let sql = "SELECT run_id FROM conversations WHERE org = ?1 AND head = ?2
               ORDER BY at_ms DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    for head in heads {
        let found = statement.query_row((org, head), |row| row.get(0)).optional()?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

pub(super) fn list(
    connection: &Connection,
    after: Option<&RunKey>,
    count_max: u32,
) -> Result<Vec<ConversationRow>> {
    let sql = "SELECT org, run_id, head, state, at_ms FROM conversations
        WHERE ?3 OR (org, run_id) > (?1, ?2) ORDER BY org, run_id LIMIT ?4";
    let (org, run_id) = after.map_or(("", ""), |run| (run.org.as_str(), run.run_id.as_str()));
    select(connection, sql, (org, run_id, after.is_none(), count_max), |row| {
        Ok(ConversationRow {
            run: RunKey { org: row.get(0)?, run_id: row.get(1)? },
            head: row.get(2)?,
            state: row.get(3)?,
            at_ms: row.get(4)?,
        })
    })
}
