//! Creation, update, end and deletion of runs.

use rusqlite::{Connection, Error, OptionalExtension as _, Result, named_params};
use serde_json::{Map, Value};

use super::columns::{Columns, from_json, to_json};
use super::error::VersionConflict;
use super::run_cache::RunCache;
use super::{execute, run_totals, select, usage};
use crate::numeric::{count_from_db, count_to_db};
use crate::run_metadata::{
    ARM_KEY, EXPERIMENT_KEY, class_number, merge_metadata, search_text, text_value,
};
use crate::run_totals::RunTotals;
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

pub(super) fn header(connection: &Connection, run: &RunKey) -> Result<Option<RunHeader>> {
    let sql = format!(
        "SELECT id, version, started_ms, experiment_id <> '',
            coalesce((SELECT max(step_index) FROM steps WHERE run = runs.id) + 1, 0), {}
         FROM runs WHERE run_id = ?1 AND org = ?2",
        RunTotals::COLUMNS
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let header = statement.query_row((&run.run_id, &run.org), |row| {
        let mut columns = Columns::of(row);
        Ok(RunHeader {
            id: columns.next()?,
            version: count_from_db(columns.next()?),
            started_ms: columns.next()?,
            is_experiment: columns.next()?,
            next_index: u32::try_from(columns.next::<i64>()?).unwrap_or(u32::MAX),
            totals: run_totals::totals(&mut columns)?,
        })
    });
    header.optional()
}

/// Returns the row id of a run.
pub(super) fn id(connection: &Connection, run: &RunKey) -> Result<Option<i64>> {
    let sql = "SELECT id FROM runs WHERE run_id = ?1 AND org = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row((&run.run_id, &run.org), |row| row.get(0)).optional()
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
    let sql = "UPDATE runs SET version = ?3 WHERE run_id = ?1 AND org = ?2";
    execute(connection, sql, (&run.run_id, &run.org, count_to_db(version)))
}

/// Creates a run without a description.
pub(super) fn begin(
    connection: &Connection,
    run: &RunKey,
    project: &str,
    at_ms: i64,
) -> Result<RunHeader> {
    let start =
        RunStart { run: run.clone(), project: project.to_owned(), at_ms, ..RunStart::default() };
    let id = insert(connection, &start)?;
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
    match stored_description(connection, &start.run)? {
        None => {
            let id = insert(connection, start)?;
            execute(connection, "UPDATE runs SET version = 1 WHERE id = ?1", [id])
        }
        Some(stored) => merge(connection, stored, start),
    }
}

/// Stored description of a run.
struct RunDescription {
    id: i64,
    metadata: Map<String, Value>,
    agent_name: String,
    task: String,
}

fn stored_description(connection: &Connection, run: &RunKey) -> Result<Option<RunDescription>> {
    let sql = "SELECT id, metadata, agent_name, task FROM runs WHERE run_id = ?1 AND org = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let stored = statement.query_row((&run.run_id, &run.org), |row| {
        Ok(RunDescription {
            id: row.get("id")?,
            metadata: from_json(row, "metadata")?,
            agent_name: row.get("agent_name")?,
            task: row.get("task")?,
        })
    });
    stored.optional()
}

fn insert(connection: &Connection, start: &RunStart) -> Result<i64> {
    execute(
        connection,
        "INSERT INTO runs (org, run_id, project, started_ms, seen_ms, outcome_class, experiment_id, arm,
            agent_name, model, framework, codebase, task_profile, parent, key_name, metadata, task)
         VALUES (:org, :run_id, :project, :at_ms, :at_ms, :unfinished, :experiment_id, :arm,
            :agent_name, :model, :framework, :codebase, :task_profile, :parent, :key_name, :metadata, :task)",
        named_params! {
            ":org": start.run.org, ":run_id": start.run.run_id, ":project": start.project,
            ":at_ms": start.at_ms, ":unfinished": class_number(OutcomeClass::Unfinished),
            ":experiment_id": text_value(&start.metadata, EXPERIMENT_KEY), ":arm": text_value(&start.metadata, ARM_KEY),
            ":agent_name": start.agent_name, ":model": start.model, ":framework": start.framework,
            ":codebase": start.codebase, ":task_profile": start.task_profile,
            ":parent": start.parent, ":key_name": start.key_name,
            ":metadata": to_json(&start.metadata)?, ":task": start.task,
        },
    )?;
    let id = connection.last_insert_rowid();
    write_search_text(connection, id, &start.run.run_id, &start.task, &start.agent_name)?;
    Ok(id)
}

fn merge(connection: &Connection, stored: RunDescription, start: &RunStart) -> Result<u64> {
    let was_experiment = !text_value(&stored.metadata, EXPERIMENT_KEY).is_empty();
    let metadata = merge_metadata(stored.metadata, &start.metadata);
    let experiment_id = text_value(&metadata, EXPERIMENT_KEY);
    if !was_experiment && !experiment_id.is_empty() {
        usage::take_run(connection, &start.run.org, stored.id)?;
    }
    let or = |new: &str, old: String| if new.is_empty() { old } else { new.to_owned() };
    let (task, agent_name) =
        (or(&start.task, stored.task), or(&start.agent_name, stored.agent_name));
    write_search_text(connection, stored.id, &start.run.run_id, &task, &agent_name)?;
    execute(
        connection,
        "UPDATE runs SET version = version + 1, seen_ms = max(seen_ms, :at_ms), experiment_id = :experiment_id, arm = :arm,
            project = coalesce(nullif(:project, ''), project), agent_name = :agent_name, task = :task,
            model = coalesce(nullif(:model, ''), model),
            framework = coalesce(nullif(:framework, ''), framework),
            codebase = coalesce(nullif(:codebase, ''), codebase),
            task_profile = coalesce(nullif(:task_profile, ''), task_profile),
            parent = coalesce(nullif(:parent, ''), parent),
            key_name = coalesce(nullif(key_name, ''), :key_name), metadata = :metadata
         WHERE id = :id",
        named_params! {
            ":id": stored.id, ":at_ms": start.at_ms, ":experiment_id": experiment_id,
            ":arm": text_value(&metadata, ARM_KEY), ":project": start.project, ":agent_name": agent_name,
            ":task": task, ":model": start.model, ":framework": start.framework,
            ":codebase": start.codebase, ":task_profile": start.task_profile,
            ":parent": start.parent, ":key_name": start.key_name,
            ":metadata": to_json(&metadata)?,
        },
    )
}

/// Updates the text for the search.
fn write_search_text(
    connection: &Connection,
    run: i64,
    run_id: &str,
    task: &str,
    agent_name: &str,
) -> Result<()> {
    let text = search_text(run_id, agent_name, task);
    let sql = "INSERT OR REPLACE INTO run_search (run, text) VALUES (?1, ?2)";
    execute(connection, sql, (run, text)).map(drop)
}

pub(super) fn finish(
    connection: &Connection,
    run: &RunKey,
    at_ms: i64,
    outcome: &str,
) -> Result<u64> {
    let class = class_number(OutcomeClass::of(Some(outcome)));
    let sql =
        "UPDATE runs SET version = version + 1, outcome = ?3, outcome_class = ?4, finished_ms = coalesce(finished_ms, ?5),
        seen_ms = max(seen_ms, ?5) WHERE run_id = ?1 AND org = ?2";
    let end = || execute(connection, sql, (&run.run_id, &run.org, outcome, class, at_ms));
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
    let sql = "SELECT org, run_id FROM runs WHERE seen_ms < ?1 ORDER BY seen_ms, id LIMIT ?2";
    let silent = select(connection, sql, (before_ms, runs_max), |row| {
        Ok(RunKey { org: row.get(0)?, run_id: row.get(1)? })
    })?;
    silent.iter().map(|run| delete(connection, run)).sum()
}

fn remove(connection: &Connection, run: &RunKey, header: &RunHeader) -> Result<()> {
    execute(connection, "DELETE FROM steps WHERE run = ?1", [header.id])?;
    for monitor in header.totals.fired() {
        remove_fired(connection, run, header.started_ms, &monitor)?;
    }
    execute(connection, "DELETE FROM run_search WHERE run = ?1", [header.id])?;
    execute(connection, "DELETE FROM runs WHERE id = ?1", [header.id]).map(drop)
}

/// Removes the run from the list of runs in which the monitor fired.
pub(super) fn remove_fired(
    connection: &Connection,
    run: &RunKey,
    started_ms: i64,
    monitor: &str,
) -> Result<()> {
    let sql = "DELETE FROM fired_runs WHERE org = ?1 AND monitor = ?2 AND started_ms = ?3 AND run_id = ?4";
    execute(connection, sql, (&run.org, monitor, started_ms, &run.run_id)).map(drop)
}
