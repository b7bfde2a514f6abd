//! Steps are put and read.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, Result, Row, named_params};

use super::cell::{amount, count_in, count_out, json_in, json_out};
use super::runs::{self, Head};
use super::tally::Share;
use super::{execute, select, usage};
use crate::{RunKey, StepRow, Tokens};

/// The first and the last place that a run's steps can have.
pub(super) fn places(run: i64) -> (i64, i64) {
    (run << 32, (run << 32) | i64::from(u32::MAX))
}

/// Puts a step in its place, and the run's sums right.
pub(super) fn put(connection: &Connection, step: &StepRow) -> Result<u64> {
    let mut head = match runs::head(connection, &step.run)? {
        Some(head) => head,
        None => runs::begin(connection, &step.run, &step.project, step.at_ms)?,
    };
    let place = (head.id << 32) | i64::from(step.step_index);
    let share = Share::of(step);
    let before = stored(connection, place)?;
    insert(connection, place, step)?;
    count(connection, &mut head, step, before, &share)
}

/// What is stored in a place: when, and what it brought.
fn stored(connection: &Connection, place: i64) -> Result<Option<(i64, Share)>> {
    let sql = format!("SELECT at_ms, {} FROM steps WHERE place = ?1", Share::COLUMNS);
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_row([place], |row| Ok((row.get("at_ms")?, Share::read(row)?))).optional()
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
    head.tally.write(connection, head.id, step.at_ms)
}

/// The highest composite of a run, read from its steps: only where the step that had it was replaced.
fn peak(connection: &Connection, run: i64) -> Result<f64> {
    let sql =
        "SELECT max(0.0, coalesce(max(total_score), 0.0)) FROM steps WHERE place BETWEEN ?1 AND ?2";
    connection.prepare_cached(sql)?.query_row(places(run), |row| row.get(0))
}

fn insert(connection: &Connection, place: i64, step: &StepRow) -> Result<u64> {
    let Tokens { total, input, output, cache_read, cache_write } = step.tokens;
    let finite = |(name, score): (&String, &f64)| score.is_finite().then(|| (name.clone(), *score));
    let scores: BTreeMap<String, f64> = step.scores.iter().filter_map(finite).collect();
    execute(
        connection,
        "INSERT OR REPLACE INTO steps (place, at_ms, total_score, cost_usd, tokens_total, tokens_input,
            tokens_output, cache_read, cache_write, injected, model, scores, fired, is_error,
            input_is_structured, failure_type, action, monitors_fired, injection_sources, injections,
            intervention_texts, evidence, metadata, replay, project, user_input, thought, action_input,
            observation)
         VALUES (:place, :at_ms, :score, :cost, :total, :input, :output, :cache_read, :cache_write, :injected,
            :model, :scores, :fired, :is_error, :structured, :failure_type, :action, :monitors_fired,
            :sources, :injections, :texts, :evidence, :metadata, :replay, :project, :user_input, :thought,
            :action_input, :observation)",
        named_params! {
            ":place": place, ":at_ms": step.at_ms, ":score": amount(step.total_score),
            ":cost": amount(step.cost_usd), ":total": count_in(total), ":input": count_in(input),
            ":output": count_in(output), ":cache_read": count_in(cache_read),
            ":cache_write": count_in(cache_write), ":injected": step.is_injected(), ":model": step.model,
            ":scores": json_in(&scores)?, ":fired": json_in(&step.fired)?, ":is_error": step.is_error,
            ":structured": step.input_is_structured, ":failure_type": step.failure_type,
            ":action": step.action, ":monitors_fired": json_in(&step.monitors_fired)?,
            ":sources": json_in(&step.injection_sources)?, ":injections": json_in(&step.injections)?,
            ":texts": json_in(&step.intervention_texts)?, ":evidence": json_in(&step.evidence)?,
            ":metadata": json_in(&step.metadata)?, ":replay": step.replay, ":project": step.project,
            ":user_input": step.user_input, ":thought": step.thought,
            ":action_input": step.action_input, ":observation": step.observation,
        },
    )
}

pub(super) fn list(
    connection: &Connection,
    run: &RunKey,
    from_index: u32,
    count_max: u32,
) -> Result<Vec<StepRow>> {
    let Some(head) = runs::head(connection, run)? else { return Ok(Vec::new()) };
    let (first, last) = places(head.id);
    let sql = "SELECT * FROM steps WHERE place BETWEEN ?1 AND ?2 ORDER BY place LIMIT ?3";
    let from = first | i64::from(from_index);
    select(connection, sql, (from, last, count_max), |row| step(row, run))
}

fn step(row: &Row<'_>, run: &RunKey) -> Result<StepRow> {
    let place: i64 = row.get("place")?;
    Ok(StepRow {
        run: run.clone(),
        project: row.get("project")?,
        step_index: u32::try_from(place & i64::from(u32::MAX)).unwrap_or(u32::MAX),
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
