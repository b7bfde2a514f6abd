//! Deletion of runs by key or age.

use tokio_postgres::Row;

use super::error::Sql;
use super::session::Session;
use super::values::text;
use crate::RunKey;
use crate::numeric::day;

pub(super) async fn delete(session: &Session, run: &RunKey) -> Sql<u64> {
    let sql = "SELECT id FROM runs WHERE run_id = $1 AND org = $2 FOR UPDATE";
    let rows = session.select(sql, &[&text(&run.run_id), &text(&run.org)]).await?;
    remove(session, &rows).await
}

/// Deletes the runs with the oldest activity, except those that are locked by a writer or another expiry.
pub(super) async fn expire(session: &Session, before_ms: i64, runs_max: u32) -> Sql<u64> {
    let sql = "SELECT id FROM runs WHERE seen_day <= $1 AND seen_ms < $2
        ORDER BY seen_day, seen_ms, id LIMIT $3 FOR UPDATE SKIP LOCKED";
    let rows = session.select(sql, &[&day(before_ms), &before_ms, &i64::from(runs_max)]).await?;
    remove(session, &rows).await
}

/// Deletes locked runs with all dependent rows.
async fn remove(session: &Session, rows: &[Row]) -> Sql<u64> {
    let ids: Vec<i64> = rows.iter().map(|row| Ok(row.try_get(0)?)).collect::<Sql<_>>()?;
    if ids.is_empty() {
        return Ok(0);
    }
    for sql in [
        "DELETE FROM steps WHERE run = ANY ($1)",
        "DELETE FROM fired_runs WHERE run = ANY ($1)",
        "DELETE FROM pattern_runs WHERE run = ANY ($1)",
        "DELETE FROM run_search WHERE run = ANY ($1)",
        "DELETE FROM conversations c USING runs r
            WHERE r.id = ANY ($1) AND c.org = r.org AND c.run_id = r.run_id",
        "DELETE FROM operator_messages w USING runs r
            WHERE r.id = ANY ($1) AND w.org = r.org AND w.run_id = r.run_id",
    ] {
        session.execute(sql, &[&ids]).await?;
    }
    session.execute("DELETE FROM runs WHERE id = ANY ($1)", &[&ids]).await
}
