//! Creation, update, end and deletion of runs.

use rusqlite::{Connection, Error, Result};

use super::error::VersionConflict;
use super::run_cache::RunCache;
use super::{conversion, execute, find, for_each, usage};
use crate::numeric::count_to_db;
use crate::run_metadata::{RunDescription, class_number};
use crate::run_totals::RunTotals;
use crate::sql::{Row as _, Table as _, Value, join, list, names, next};
use crate::{OutcomeClass, RunKey, RunStart};

/// Columns of a run that are needed for writing a step.
pub(super) struct RunHeader {
    pub(super) id: i64,
    /// Number of changes so far.
    pub(super) version: u64,
    pub(super) started_ms: i64,
    pub(super) is_experiment: bool,
    /// Index after the last stored step.
    pub(super) next_index: u32,
    pub(super) totals: RunTotals,
}

/// Returns the values of `run_id = ? AND org = ?`.
fn key(run: &RunKey) -> [Value<'_>; 2] {
    [&run.run_id, &run.org].map(|text| Value::Text(text.as_str().into()))
}

pub(super) fn header(connection: &Connection, run: &RunKey) -> Result<Option<RunHeader>> {
    let sql = format!(
        "SELECT id, version, started_ms, experiment_id <> '',
            coalesce((SELECT max(step_index) FROM steps WHERE run = runs.id) + 1, 0), {}
         FROM runs WHERE run_id = ? AND org = ?",
        list::<RunTotals>("")
    );
    find(connection, &sql, &key(run), |columns| {
        Ok(RunHeader {
            id: next(columns)?,
            version: next(columns)?,
            started_ms: next(columns)?,
            is_experiment: next(columns)?,
            next_index: next(columns)?,
            totals: RunTotals::read(columns)?,
        })
    })
}

/// Checks the version of a run.
pub(super) fn expect(
    connection: &Connection,
    cache: &mut RunCache,
    run: &RunKey,
    version: u64,
) -> Result<u64> {
    if cache.version(connection, run)? == version {
        Ok(0)
    } else {
        Err(Error::ToSqlConversionFailure(Box::new(VersionConflict)))
    }
}

/// Sets the version of a run, for copies.
pub(super) fn set_version(connection: &Connection, run: &RunKey, version: u64) -> Result<u64> {
    let sql = "UPDATE runs SET version = ? WHERE run_id = ? AND org = ?";
    let [run_id, org] = key(run);
    execute(connection, sql, &[Value::Int(count_to_db(version)), run_id, org])
}

/// Creates a run without a description.
pub(super) fn begin(
    connection: &Connection,
    run: &RunKey,
    project: &str,
    at_ms: i64,
) -> Result<RunHeader> {
    let description = RunDescription { project: project.to_owned(), ..RunDescription::default() };
    let id = insert(connection, run, &description, at_ms)?;
    Ok(RunHeader {
        id,
        version: 0,
        started_ms: at_ms,
        is_experiment: false,
        next_index: 0,
        totals: RunTotals::default(),
    })
}

pub(super) fn start(connection: &Connection, start: &RunStart) -> Result<u64> {
    let run = &start.run;
    let sql =
        format!("SELECT id, {} FROM runs WHERE run_id = ? AND org = ?", list::<RunDescription>(""));
    let stored = find(connection, &sql, &key(run), |columns| {
        Ok((next(columns)?, RunDescription::read(columns)?))
    })?;
    let Some((id, mut description)) = stored else {
        let mut description = RunDescription::default();
        description.merge(start);
        let id = insert(connection, run, &description, start.at_ms)?;
        return execute(connection, "UPDATE runs SET version = 1 WHERE id = ?", &[Value::Int(id)]);
    };
    let was_experiment = !description.experiment_id().is_empty();
    description.merge(start);
    if !was_experiment && !description.experiment_id().is_empty() {
        usage::take_run(connection, &run.org, id)?;
    }
    write_search_text(connection, id, description.search_text(&run.run_id))?;
    let sets = join(names::<RunDescription>().map(|name| format!("{name} = ?")));
    let sql = format!(
        "UPDATE runs SET {sets}, experiment_id = ?, arm = ?, version = version + 1,
            seen_ms = max(seen_ms, ?) WHERE id = ?"
    );
    let mut values = values(&description)?;
    values.extend([Value::Int(start.at_ms), Value::Int(id)]);
    execute(connection, &sql, &values)
}

/// Returns the values of a description, its experiment and its arm.
fn values(description: &RunDescription) -> Result<Vec<Value<'_>>> {
    let mut values = Vec::new();
    description.write(&mut values).map_err(conversion)?;
    values.extend([description.experiment_id(), description.arm()].map(|t| Value::Text(t.into())));
    Ok(values)
}

fn insert(
    connection: &Connection,
    run: &RunKey,
    description: &RunDescription,
    at_ms: i64,
) -> Result<i64> {
    let places = join(names::<RunDescription>().map(|_| "?"));
    let sql = format!(
        "INSERT INTO runs ({}, experiment_id, arm, run_id, org, started_ms, seen_ms, outcome_class)
         VALUES ({places}, ?, ?, ?, ?, ?, ?, ?)",
        list::<RunDescription>("")
    );
    let mut values = values(description)?;
    values.extend(key(run));
    values.extend([at_ms, at_ms, class_number(OutcomeClass::Unfinished)].map(Value::Int));
    execute(connection, &sql, &values)?;
    let id = connection.last_insert_rowid();
    write_search_text(connection, id, description.search_text(&run.run_id))?;
    Ok(id)
}

/// Updates the text for the search.
fn write_search_text(connection: &Connection, run: i64, text: String) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO run_search (run, text) VALUES (?, ?)";
    execute(connection, sql, &[Value::Int(run), Value::Text(text.into())]).map(drop)
}

pub(super) fn finish(
    connection: &Connection,
    run: &RunKey,
    at_ms: i64,
    outcome: &str,
) -> Result<u64> {
    let sql = "UPDATE runs SET version = version + 1, outcome = ?, outcome_class = ?,
            finished_ms = coalesce(finished_ms, ?), seen_ms = max(seen_ms, ?)
        WHERE run_id = ? AND org = ?";
    let class = class_number(OutcomeClass::of(Some(outcome)));
    let mut values = vec![Value::Text(outcome.into())];
    values.extend([class, at_ms, at_ms].map(Value::Int));
    values.extend(key(run));
    let end = || execute(connection, sql, &values);
    match end()? {
        0 => {
            begin(connection, run, "", at_ms)?;
            end()
        }
        known => Ok(known),
    }
}

pub(super) fn delete(connection: &Connection, run: &RunKey) -> Result<u64> {
    match header(connection, run)? {
        Some(header) => remove(connection, run, &header).map(|()| 1),
        None => Ok(0),
    }
}

pub(super) fn expire(connection: &Connection, before_ms: i64, runs_max: u32) -> Result<u64> {
    let sql = "SELECT org, run_id FROM runs WHERE seen_ms < ? ORDER BY seen_ms, id LIMIT ?";
    let mut silent: Vec<RunKey> = Vec::new();
    for_each(connection, sql, &[before_ms, runs_max.into()].map(Value::Int), |columns| {
        silent.push(next(columns)?);
        Ok(())
    })?;
    silent.iter().map(|run| delete(connection, run)).sum()
}

fn remove(connection: &Connection, run: &RunKey, header: &RunHeader) -> Result<()> {
    for monitor in header.totals.fired() {
        remove_fired(connection, run, header.started_ms, &monitor)?;
    }
    for sql in [
        "DELETE FROM steps WHERE run = ?",
        "DELETE FROM run_search WHERE run = ?",
        "DELETE FROM runs WHERE id = ?",
    ] {
        execute(connection, sql, &[Value::Int(header.id)])?;
    }
    Ok(())
}

/// Removes the run from the list of runs in which the monitor fired.
pub(super) fn remove_fired(
    connection: &Connection,
    run: &RunKey,
    started_ms: i64,
    monitor: &str,
) -> Result<()> {
    let sql =
        "DELETE FROM fired_runs WHERE run_id = ? AND org = ? AND monitor = ? AND started_ms = ?";
    let [run_id, org] = key(run);
    let values = [run_id, org, Value::Text(monitor.into()), Value::Int(started_ms)];
    execute(connection, sql, &values).map(drop)
}
