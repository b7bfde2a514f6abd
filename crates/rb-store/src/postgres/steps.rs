//! Steps.

use tokio_postgres::Row;

use super::error::Sql;
use super::session::Session;
use super::text::{EncodedText, json, text, text_maybe};
use crate::numeric::count_from_db;
use crate::{RunKey, StepRow, Tokens};

pub(super) async fn list(
    session: &Session,
    run: &RunKey,
    from_index: u32,
    count_max: u32,
) -> Sql<Vec<StepRow>> {
    let sql = "SELECT s.* FROM steps s
        WHERE s.run = (SELECT id FROM runs WHERE run_id = $1 AND org = $2) AND s.step_index >= $3
        ORDER BY s.step_index LIMIT $4";
    let (run_id, org) = (EncodedText::of(&run.run_id), EncodedText::of(&run.org));
    let (from_index, count_max) = (i64::from(from_index), i64::from(count_max));
    let rows = session.select(sql, &[&run_id, &org, &from_index, &count_max]).await?;
    rows.iter().map(|row| step(row, run)).collect()
}

fn step(row: &Row, run: &RunKey) -> Sql<StepRow> {
    let step_index: i64 = row.try_get("step_index")?;
    Ok(StepRow {
        run: run.clone(),
        project: text(row, "project")?,
        step_index: u32::try_from(step_index).unwrap_or(u32::MAX),
        at_ms: row.try_get("at_ms")?,
        user_input: text(row, "user_input")?,
        thought: text(row, "thought")?,
        action: text_maybe(row, "action")?,
        action_input: text_maybe(row, "action_input")?,
        input_is_structured: row.try_get("input_is_structured")?,
        observation: text_maybe(row, "observation")?,
        is_error: row.try_get("is_error")?,
        model: text(row, "model")?,
        tokens: tokens(row)?,
        cost_usd: row.try_get("cost_usd")?,
        scores: json(row, "scores")?,
        total_score: row.try_get("total_score")?,
        fired: json(row, "fired")?,
        evidence: json(row, "evidence")?,
        injections: json(row, "injections")?,
        injection_sources: json(row, "injection_sources")?,
        intervention_texts: json(row, "intervention_texts")?,
        monitors_fired: json(row, "monitors_fired")?,
        failure_type: text_maybe(row, "failure_type")?,
        state: text(row, "state")?,
        metadata: json(row, "metadata")?,
        replay: text_maybe(row, "replay")?,
    })
}

/// Reads token counts of a step or a run, whose columns have the same names.
pub(super) fn tokens(row: &Row) -> Sql<Tokens> {
    Ok(Tokens {
        total: count_from_db(row.try_get("tokens_total")?),
        input: count_from_db(row.try_get("tokens_input")?),
        output: count_from_db(row.try_get("tokens_output")?),
        cache_read: count_from_db(row.try_get("cache_read")?),
        cache_write: count_from_db(row.try_get("cache_write")?),
    })
}
