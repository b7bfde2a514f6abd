//! Steps are put and read.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};

use super::cell::{Cells, json_in, json_out};
use super::heads::Heads;
use super::runs::{self, Head};
use super::{execute, select, tally};
use crate::numbers::{amount, count_in, count_out};
use crate::tally::Share;
use crate::{RunKey, Scores, StepRow, Tokens};

/// Puts a step in its place, and the run's sums right; the run counts as changed so often by it.
pub(super) fn put(
    connection: &Connection,
    heads: &mut Heads,
    step: &StepRow,
    changes: u32,
) -> Result<u64> {
    let head = heads.of(connection, step)?;
    let share = Share::of(step);
    let is_next = step.step_index >= head.next_index;
    let before = if is_next { None } else { stored(connection, head.id, step.step_index)? };
    insert(connection, head.id, step)?;
    let nothing = BTreeSet::new();
    let shown_before = before.as_ref().map_or(&nothing, |(_, before)| &before.patterns);
    note_patterns(connection, head, step, shown_before, &share.patterns)?;
    heads.count(step, before.as_ref(), &share, changes);
    Ok(1)
}

/// What is stored under an index: when, and what it brought.
fn stored(
    connection: &Connection,
    run: i64,
    step_index: u32,
) -> Result<Option<(i64, Share<'static>)>> {
    let sql =
        format!("SELECT at_ms, {} FROM steps WHERE run = ?1 AND step_index = ?2", Share::COLUMNS);
    let mut statement = connection.prepare_cached(&sql)?;
    let step = |row: &Row<'_>| {
        let mut cells = Cells::of(row);
        Ok((cells.next()?, tally::share(&mut cells)?))
    };
    statement.query_row((run, step_index), step).optional()
}

/// Counts the patterns that this step shows, and no longer those that it showed before.
fn note_patterns(
    connection: &Connection,
    head: &Head,
    step: &StepRow,
    before: &BTreeSet<String>,
    now: &BTreeSet<String>,
) -> Result<()> {
    let place = |pattern| (&step.run.org, pattern, head.started_ms, &step.run.run_id);
    for pattern in now.difference(before) {
        let (org, pattern, started_ms, run_id) = place(pattern);
        let sql = "INSERT INTO pattern_runs (org, pattern, started_ms, run_id, run, steps)
            VALUES (?1, ?2, ?3, ?4, ?5, 1) ON CONFLICT DO UPDATE SET steps = steps + 1";
        execute(connection, sql, (org, pattern, started_ms, run_id, head.id))?;
    }
    for pattern in before.difference(now) {
        let here = "WHERE org = ?1 AND pattern = ?2 AND started_ms = ?3 AND run_id = ?4";
        let less = format!("UPDATE pattern_runs SET steps = steps - 1 {here}");
        execute(connection, &less, place(pattern))?;
        let gone = format!("DELETE FROM pattern_runs {here} AND steps <= 0");
        execute(connection, &gone, place(pattern))?;
    }
    Ok(())
}

/// By position, not by name: this statement runs more often than all others together.
fn insert(connection: &Connection, run: i64, step: &StepRow) -> Result<u64> {
    let Tokens { total, input, output, cache_read, cache_write } = step.tokens;
    let scores = finite(&step.scores);
    execute(
        connection,
        "INSERT OR REPLACE INTO steps (run, step_index, at_ms, total_score, cost_usd, tokens_total, tokens_input,
            tokens_output, cache_read, cache_write, injected, model, scores, fired, is_error,
            input_is_structured, failure_type, action, monitors_fired, injection_sources, injections,
            intervention_texts, evidence, metadata, replay, project, user_input, thought, action_input,
            observation)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            run,
            step.step_index,
            step.at_ms,
            amount(step.total_score),
            amount(step.cost_usd),
            count_in(total),
            count_in(input),
            count_in(output),
            count_in(cache_read),
            count_in(cache_write),
            step.is_injected(),
            step.model,
            json_in(&*scores)?,
            json_in(&step.fired)?,
            step.is_error,
            step.input_is_structured,
            step.failure_type,
            step.action,
            json_in(&step.monitors_fired)?,
            json_in(&step.injection_sources)?,
            json_in(&step.injections)?,
            json_in(&step.intervention_texts)?,
            json_in(&step.evidence)?,
            json_in(&step.metadata)?,
            step.replay,
            step.project,
            step.user_input,
            step.thought,
            step.action_input,
            step.observation,
        ],
    )
}

/// The scores that are numbers: all of them, unless somebody sent others.
fn finite(scores: &Scores) -> Cow<'_, Scores> {
    if scores.values().all(|score| score.is_finite()) {
        return Cow::Borrowed(scores);
    }
    let finite = scores.iter().filter(|(_, score)| score.is_finite());
    Cow::Owned(finite.map(|(name, score)| (name.clone(), *score)).collect())
}

pub(super) fn list(
    connection: &Connection,
    run: &RunKey,
    from_index: u32,
    count_max: u32,
) -> Result<Vec<StepRow>> {
    let Some(id) = runs::id(connection, run)? else { return Ok(Vec::new()) };
    let sql =
        "SELECT * FROM steps WHERE run = ?1 AND step_index >= ?2 ORDER BY step_index LIMIT ?3";
    select(connection, sql, (id, from_index, count_max), |row| step(row, run))
}

fn step(row: &Row<'_>, run: &RunKey) -> Result<StepRow> {
    Ok(StepRow {
        run: run.clone(),
        project: row.get("project")?,
        step_index: row.get("step_index")?,
        at_ms: row.get("at_ms")?,
        user_input: row.get("user_input")?,
        thought: row.get("thought")?,
        action: row.get("action")?,
        action_input: row.get("action_input")?,
        input_is_structured: row.get("input_is_structured")?,
        observation: row.get("observation")?,
        is_error: row.get("is_error")?,
        model: row.get("model")?,
        tokens: tokens(row)?,
        cost_usd: row.get("cost_usd")?,
        scores: json_out(row, "scores")?,
        total_score: row.get("total_score")?,
        fired: json_out(row, "fired")?,
        evidence: json_out(row, "evidence")?,
        injections: json_out(row, "injections")?,
        injection_sources: json_out(row, "injection_sources")?,
        intervention_texts: json_out(row, "intervention_texts")?,
        monitors_fired: json_out(row, "monitors_fired")?,
        failure_type: row.get("failure_type")?,
        metadata: json_out(row, "metadata")?,
        replay: row.get("replay")?,
    })
}

/// Tokens, of a step or of a run: the columns have the same names.
pub(super) fn tokens(row: &Row<'_>) -> Result<Tokens> {
    Ok(Tokens {
        total: count_out(row.get("tokens_total")?),
        input: count_out(row.get("tokens_input")?),
        output: count_out(row.get("tokens_output")?),
        cache_read: count_out(row.get("cache_read")?),
        cache_write: count_out(row.get("cache_write")?),
    })
}
