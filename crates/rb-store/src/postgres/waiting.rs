//! What people want to say to runs, until somebody takes it along.

use super::fault::Sql;
use super::session::Session;
use super::text::{TextIn, text};
use crate::{RunKey, WaitingRow};

pub(super) async fn put(session: &Session, row: &WaitingRow) -> Sql<u64> {
    let sql = "INSERT INTO waiting (org, run_id, words_id, text, at_ms) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (org, run_id, words_id) DO UPDATE SET text = excluded.text, at_ms = excluded.at_ms";
    session
        .execute(
            sql,
            &[
                &TextIn::of(&row.run.org),
                &TextIn::of(&row.run.run_id),
                &TextIn::of(&row.words_id),
                &TextIn::of(&row.text),
                &row.at_ms,
            ],
        )
        .await
}

/// Of several nodes that try, one touches a row: the others wait for it, and then there is none.
pub(super) async fn take(session: &Session, run: &RunKey, words_id: &str) -> Sql<u64> {
    let sql = "DELETE FROM waiting WHERE org = $1 AND run_id = $2 AND words_id = $3";
    let (org, run_id) = (TextIn::of(&run.org), TextIn::of(&run.run_id));
    session.execute(sql, &[&org, &run_id, &TextIn::of(words_id)]).await
}

pub(super) async fn expire(session: &Session, before_ms: i64) -> Sql<u64> {
    session.execute("DELETE FROM waiting WHERE at_ms < $1", &[&before_ms]).await
}

pub(super) async fn list(session: &Session, run: &RunKey) -> Sql<Vec<WaitingRow>> {
    let sql = "SELECT words_id, text, at_ms FROM waiting WHERE org = $1 AND run_id = $2
        ORDER BY at_ms, words_id";
    let rows = session.select(sql, &[&TextIn::of(&run.org), &TextIn::of(&run.run_id)]).await?;
    let words = |row: &tokio_postgres::Row| {
        Ok(WaitingRow {
            run: run.clone(),
            words_id: text(row, "words_id")?,
            text: text(row, "text")?,
            at_ms: row.try_get("at_ms")?,
        })
    };
    rows.iter().map(words).collect()
}

pub(super) async fn runs(session: &Session, since_ms: i64) -> Sql<Vec<RunKey>> {
    let sql = "SELECT DISTINCT org, run_id FROM waiting WHERE at_ms >= $1 ORDER BY org, run_id";
    let rows = session.select(sql, &[&since_ms]).await?;
    let run = |row: &tokio_postgres::Row| {
        Ok(RunKey { org: text(row, "org")?, run_id: text(row, "run_id")? })
    };
    rows.iter().map(run).collect()
}
