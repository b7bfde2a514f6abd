//! Undelivered operator messages.

use super::error::Sql;
use super::session::Session;
use super::text::{EncodedText, text};
use crate::{OperatorMessageRow, RunKey};

pub(super) async fn put(session: &Session, row: &OperatorMessageRow) -> Sql<u64> {
    let sql = "INSERT INTO operator_messages (org, run_id, message_id, text, at_ms) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (org, run_id, message_id) DO UPDATE SET text = excluded.text, at_ms = excluded.at_ms";
    session
        .execute(
            sql,
            &[
                &EncodedText::of(&row.run.org),
                &EncodedText::of(&row.run.run_id),
                &EncodedText::of(&row.message_id),
                &EncodedText::of(&row.text),
                &row.at_ms,
            ],
        )
        .await
}

/// Removes a message. Of several nodes, one affects a row; the others wait for its lock and then find none.
pub(super) async fn take(session: &Session, run: &RunKey, message_id: &str) -> Sql<u64> {
    let sql = "DELETE FROM operator_messages WHERE org = $1 AND run_id = $2 AND message_id = $3";
    let (org, run_id) = (EncodedText::of(&run.org), EncodedText::of(&run.run_id));
    session.execute(sql, &[&org, &run_id, &EncodedText::of(message_id)]).await
}

pub(super) async fn expire(session: &Session, before_ms: i64) -> Sql<u64> {
    session.execute("DELETE FROM operator_messages WHERE at_ms < $1", &[&before_ms]).await
}

pub(super) async fn list(session: &Session, run: &RunKey) -> Sql<Vec<OperatorMessageRow>> {
    let sql = "SELECT message_id, text, at_ms FROM operator_messages WHERE org = $1 AND run_id = $2
        ORDER BY at_ms, message_id";
    let rows =
        session.select(sql, &[&EncodedText::of(&run.org), &EncodedText::of(&run.run_id)]).await?;
    let words = |row: &tokio_postgres::Row| {
        Ok(OperatorMessageRow {
            run: run.clone(),
            message_id: text(row, "message_id")?,
            text: text(row, "text")?,
            at_ms: row.try_get("at_ms")?,
        })
    };
    rows.iter().map(words).collect()
}

pub(super) async fn runs(session: &Session, since_ms: i64) -> Sql<Vec<RunKey>> {
    let sql =
        "SELECT DISTINCT org, run_id FROM operator_messages WHERE at_ms >= $1 ORDER BY org, run_id";
    let rows = session.select(sql, &[&since_ms]).await?;
    let run = |row: &tokio_postgres::Row| {
        Ok(RunKey { org: text(row, "org")?, run_id: text(row, "run_id")? })
    };
    rows.iter().map(run).collect()
}
