//! Steps are put and read.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};

use super::cell::{Cells, json_in, json_out};
use super::runs::{self, Head};
use super::{execute, select, tally, usage};
use crate::numbers::{amount, count_in, count_out};
use crate::tally::Share;
use crate::{RunKey, StepRow, Tokens};

/// Puts a step in its place, and the run's sums right.
pub(super) fn put(connection: &Connection, step: &StepRow) -> Result<u64> {
    let mut head = match runs::head(connection, &step.run)? {
        Some(head) => head,
        None => runs::begin(connection, &step.run, &step.project, step.at_ms)?,
    };
    let share = Share::of(step);
    let before = stored(connection, head.id, step.step_index)?;
    insert(connection, head.id, step)?;
    count(connection, &mut head, step, before, &share)
}

/// What is stored under an index: when, and what it brought.
fn stored(connection: &Connection, run: i64, step_index: u32) -> Result<Option<(i64, Share)>> {
    let sql =
        format!("SELECT at_ms, {} FROM steps WHERE run = ?1 AND step_index = ?2", Share::COLUMNS);
    let mut statement = connection.prepare_cached(&sql)?;
    let step = |row: &Row<'_>| {
        let mut cells = Cells::of(row);
        Ok((cells.next()?, tally::share(&mut cells)?))
    };
    statement.query_row((run, step_index), step).optional()
}

fn count(
    connection: &Connection,
    head: &mut Head,
    step: &StepRow,
    before: Option<(i64, Share)>,
    share: &Share,
) -> Result<u64> {
    let org = &step.run.org;
    let fired_before = head.tally.fired();
    let nothing = BTreeSet::new();
    let shown_before = before.as_ref().map_or(&nothing, |(_, before)| &before.patterns);
    note_patterns(connection, head, step, shown_before, &share.patterns)?;
    if let Some((at_ms, before)) = before {
        if head.tally.take(&before) {
            head.tally.set_peak(peak(connection, head.id)?);
        }
        if !head.is_experiment {
            usage::take(connection, org, at_ms, &before)?;
        }
    }
    head.tally.add(share);
    if !head.is_experiment {
        usage::add(connection, org, step.at_ms, share)?;
    }
    let fired = head.tally.fired();
    for monitor in fired.difference(&fired_before) {
        let sql = "INSERT INTO fired_runs (org, monitor, started_ms, run_id, run)
            VALUES (?1, ?2, ?3, ?4, ?5)";
        execute(connection, sql, (org, monitor, head.started_ms, &step.run.run_id, head.id))?;
    }
    for monitor in fired_before.difference(&fired) {
        runs::forget_fired(connection, &step.run, head.started_ms, monitor)?;
    }
    tally::write(&head.tally, connection, head.id, step.at_ms)
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

/// The highest composite of a run, read from its steps: only where the step that had it was replaced.
fn peak(connection: &Connection, run: i64) -> Result<f64> {
    let sql = "SELECT max(0.0, coalesce(max(total_score), 0.0)) FROM steps WHERE run = ?1";
    connection.prepare_cached(sql)?.query_row([run], |row| row.get(0))
}

/// By position, not by name: this statement runs more often than all others together.
fn insert(connection: &Connection, run: i64, step: &StepRow) -> Result<u64> {
    let Tokens { total, input, output, cache_read, cache_write } = step.tokens;
    let finite = |(name, score): (&String, &f64)| score.is_finite().then(|| (name.clone(), *score));
    let scores: BTreeMap<String, f64> = step.scores.iter().filter_map(finite).collect();
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
            json_in(&scores)?,
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

pub(super) fn list(
    connection: &Connection,
    run: &RunKey,
    from_index: u32,
    count_max: u32,
) -> Result<Vec<StepRow>> {
    let Some(head) = runs::head(connection, run)? else { return Ok(Vec::new()) };
    let sql =
        "SELECT * FROM steps WHERE run = ?1 AND step_index >= ?2 ORDER BY step_index LIMIT ?3";
    select(connection, sql, (head.id, from_index, count_max), |row| step(row, run))
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
