//! Gateway state of conversations.

use rusqlite::{Connection, OptionalExtension as _, Result};

use super::{execute, select};
use crate::{ConversationKey, ConversationRow, RunKey};

pub(super) fn put(connection: &Connection, row: &ConversationRow) -> Result<u64> {
    // An upsert leaves the indexes of unchanged columns alone.
    let sql = "INSERT INTO conversations (org, run_id, head, answer, mark, state, at_ms)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
               ON CONFLICT (org, run_id) DO UPDATE SET head = ?3, answer = ?4, mark = ?5,
                   state = ?6, at_ms = ?7";
    let RunKey { org, run_id } = &row.run;
    let values = (org, run_id, &row.head, &row.answer, &row.mark, &row.state, row.at_ms);
    execute(connection, sql, values)
}

pub(super) fn find(connection: &Connection, run: &RunKey) -> Result<Option<String>> {
    let sql = "SELECT state FROM conversations WHERE org = ?1 AND run_id = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row((&run.org, &run.run_id), |row| row.get(0)).optional()
}

/// Returns the run of the newest conversation that matches the first matching key.
pub(super) fn find_by_key(
    connection: &Connection,
    org: &str,
    by: ConversationKey,
    any_of: &[String],
) -> Result<Option<String>> {
    let column = by.column();
    // The partial index requires the condition on an empty value.
    let sql = format!(
        "SELECT run_id FROM conversations WHERE org = ?1 AND {column} = ?2 AND {column} <> ''
         ORDER BY at_ms DESC LIMIT 1"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    for known in any_of {
        let found = statement.query_row((org, known), |row| row.get(0)).optional()?;
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
    let sql = "SELECT org, run_id, head, answer, mark, state, at_ms FROM conversations
        WHERE ?3 OR (org, run_id) > (?1, ?2) ORDER BY org, run_id LIMIT ?4";
    let (org, run_id) = after.map_or(("", ""), |run| (run.org.as_str(), run.run_id.as_str()));
    select(connection, sql, (org, run_id, after.is_none(), count_max), |row| {
        Ok(ConversationRow {
            run: RunKey { org: row.get(0)?, run_id: row.get(1)? },
            head: row.get(2)?,
            answer: row.get(3)?,
            mark: row.get(4)?,
            state: row.get(5)?,
            at_ms: row.get(6)?,
        })
    })
}
