//! Steps.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension as _, Result, Row, params};

use super::columns::{Columns, from_json, to_json};
use super::run_cache::RunCache;
use super::runs::{self, RunHeader};
use super::{execute, run_totals, select};
use crate::numeric::{amount, count_from_db, count_to_db};
use crate::run_totals::StepContribution;
use crate::{RunKey, Scores, StepRow, Tokens};

/// Stores a step, updates the totals of its run and adds `changes` to the run's version.
pub(super) fn put(
    connection: &Connection,
    cache: &mut RunCache,
    step: &StepRow,
    changes: u32,
) -> Result<u64> {
    let header = cache.of(connection, step)?;
    let contribution = StepContribution::of(step);
    let is_next = step.step_index >= header.next_index;
    let before = if is_next { None } else { stored(connection, header.id, step.step_index)? };
    insert(connection, header.id, step)?;
    let nothing = BTreeSet::new();
    let shown_before = before.as_ref().map_or(&nothing, |(_, before)| &before.patterns);
    note_patterns(connection, header, step, shown_before, &contribution.patterns)?;
    cache.count(step, before.as_ref(), &contribution, changes);
    Ok(1)
}

/// Returns the time and contribution of a stored step.
fn stored(
    connection: &Connection,
    run: i64,
    step_index: u32,
) -> Result<Option<(i64, StepContribution<'static>)>> {
    let sql = format!(
        "SELECT at_ms, {} FROM steps WHERE run = ?1 AND step_index = ?2",
        StepContribution::COLUMNS
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let step = |row: &Row<'_>| {
        let mut columns = Columns::of(row);
        Ok((columns.next()?, run_totals::contribution(&mut columns)?))
    };
    statement.query_row((run, step_index), step).optional()
}

/// Updates the number of steps on which each pattern is shown.
fn note_patterns(
    connection: &Connection,
    header: &RunHeader,
    step: &StepRow,
    before: &BTreeSet<String>,
    now: &BTreeSet<String>,
) -> Result<()> {
    let place = |pattern| (&step.run.org, pattern, header.started_ms, &step.run.run_id);
    for pattern in now.difference(before) {
        let (org, pattern, started_ms, run_id) = place(pattern);
        let sql = "INSERT INTO pattern_runs (org, pattern, started_ms, run_id, run, steps)
            VALUES (?1, ?2, ?3, ?4, ?5, 1) ON CONFLICT DO UPDATE SET steps = steps + 1";
        execute(connection, sql, (org, pattern, started_ms, run_id, header.id))?;
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

/// Binds by position instead of by name, because this is by far the most frequent statement.
fn insert(connection: &Connection, run: i64, step: &StepRow) -> Result<u64> {
    let Tokens { total, input, output, cache_read, cache_write } = step.tokens;
    let scores = finite(&step.scores);
    execute(
        connection,
        "INSERT OR REPLACE INTO steps (run, step_index, at_ms, total_score, cost_usd, tokens_total, tokens_input,
            tokens_output, cache_read, cache_write, injected, model, scores, fired, is_error,
            input_is_structured, failure_type, action, monitors_fired, injection_sources, injections,
            intervention_texts, evidence, metadata, replay, project, user_input, thought, action_input,
            observation, state)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            run,
            step.step_index,
            step.at_ms,
            amount(step.total_score),
            amount(step.cost_usd),
            count_to_db(total),
            count_to_db(input),
            count_to_db(output),
            count_to_db(cache_read),
            count_to_db(cache_write),
            step.is_injected(),
            step.model,
            to_json(&*scores)?,
            to_json(&step.fired)?,
            step.is_error,
            step.input_is_structured,
            step.failure_type,
            step.action,
            to_json(&step.monitors_fired)?,
            to_json(&step.injection_sources)?,
            to_json(&step.injections)?,
            to_json(&step.intervention_texts)?,
            to_json(&step.evidence)?,
            to_json(&step.metadata)?,
            step.replay,
            step.project,
            step.user_input,
            step.thought,
            step.action_input,
            step.observation,
            step.state,
        ],
    )
}

/// Returns the finite scores.
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
        scores: from_json(row, "scores")?,
        total_score: row.get("total_score")?,
        fired: from_json(row, "fired")?,
        evidence: from_json(row, "evidence")?,
        injections: from_json(row, "injections")?,
        injection_sources: from_json(row, "injection_sources")?,
        intervention_texts: from_json(row, "intervention_texts")?,
        monitors_fired: from_json(row, "monitors_fired")?,
        failure_type: row.get("failure_type")?,
        state: row.get("state")?,
        metadata: from_json(row, "metadata")?,
        replay: row.get("replay")?,
    })
}

/// Reads token counts of a step or a run, whose columns have the same names.
pub(super) fn tokens(row: &Row<'_>) -> Result<Tokens> {
    Ok(Tokens {
        total: count_from_db(row.get("tokens_total")?),
        input: count_from_db(row.get("tokens_input")?),
        output: count_from_db(row.get("tokens_output")?),
        cache_read: count_from_db(row.get("cache_read")?),
        cache_write: count_from_db(row.get("cache_write")?),
    })
}
