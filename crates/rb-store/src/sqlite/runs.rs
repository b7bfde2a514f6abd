//! Runs begin, say more, end and go.

use rusqlite::{Connection, Error, OptionalExtension as _, Result, named_params};
use serde_json::{Map, Value};

use super::cell::{Cells, json_in, json_out};
use super::fault::Moved;
use super::heads::Heads;
use super::{execute, select, tally, usage};
use crate::numbers::{count_in, count_out};
use crate::said::{ARM, EXPERIMENT, class_number, merged, search_text, word};
use crate::tally::Tally;
use crate::{OutcomeClass, RunKey, RunStart};

/// What writing a step has to know of its run.
pub(super) struct Head {
    pub(super) id: i64,
    /// How often the run was changed.
    pub(super) version: u64,
    pub(super) started_ms: i64,
    pub(super) is_experiment: bool,
    /// No step is stored under this index or a higher one.
    pub(super) next_index: u32,
    pub(super) tally: Tally,
}

pub(super) fn head(connection: &Connection, run: &RunKey) -> Result<Option<Head>> {
    let sql = format!(
        "SELECT id, version, started_ms, experiment_id <> '',
            coalesce((SELECT max(step_index) FROM steps WHERE run = runs.id) + 1, 0), {}
         FROM runs WHERE run_id = ?1 AND org = ?2",
        Tally::COLUMNS
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let head = statement.query_row((&run.run_id, &run.org), |row| {
        let mut cells = Cells::of(row);
        Ok(Head {
            id: cells.next()?,
            version: count_out(cells.next()?),
            started_ms: cells.next()?,
            is_experiment: cells.next()?,
            next_index: u32::try_from(cells.next::<i64>()?).unwrap_or(u32::MAX),
            tally: tally::tally(&mut cells)?,
        })
    });
    head.optional()
}

/// By which its steps are found.
pub(super) fn id(connection: &Connection, run: &RunKey) -> Result<Option<i64>> {
    let sql = "SELECT id FROM runs WHERE run_id = ?1 AND org = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row((&run.run_id, &run.org), |row| row.get(0)).optional()
}

/// Whether a run was changed exactly so often.
pub(super) fn expect(
    connection: &Connection,
    heads: &mut Heads,
    run: &RunKey,
    version: u64,
) -> Result<u64> {
    if heads.version(connection, run)? == version {
        Ok(0)
    } else {
        Err(Error::ToSqlConversionFailure(Box::new(Moved)))
    }
}

/// For copies: a run counts as changed so often.
pub(super) fn set_version(connection: &Connection, run: &RunKey, version: u64) -> Result<u64> {
    let sql = "UPDATE runs SET version = ?3 WHERE run_id = ?1 AND org = ?2";
    execute(connection, sql, (&run.run_id, &run.org, count_in(version)))
}

/// A run begins with whatever was first heard of it.
pub(super) fn begin(
    connection: &Connection,
    run: &RunKey,
    project: &str,
    at_ms: i64,
) -> Result<Head> {
    let start =
        RunStart { run: run.clone(), project: project.to_owned(), at_ms, ..RunStart::default() };
    let id = insert(connection, &start)?;
    Ok(Head {
        id,
        version: 0,
        started_ms: at_ms,
        is_experiment: false,
        next_index: 0,
        tally: Tally::default(),
    })
}

pub(super) fn start(connection: &Connection, start: &RunStart) -> Result<u64> {
    match said(connection, &start.run)? {
        None => {
            let id = insert(connection, start)?;
            execute(connection, "UPDATE runs SET version = 1 WHERE id = ?1", [id])
        }
        Some(said) => merge(connection, said, start),
    }
}

/// What a run has said before.
struct Said {
    id: i64,
    metadata: Map<String, Value>,
    agent_name: String,
    task: String,
}

fn said(connection: &Connection, run: &RunKey) -> Result<Option<Said>> {
    let sql = "SELECT id, metadata, agent_name, task FROM runs WHERE run_id = ?1 AND org = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let said = statement.query_row((&run.run_id, &run.org), |row| {
        Ok(Said {
            id: row.get("id")?,
            metadata: json_out(row, "metadata")?,
            agent_name: row.get("agent_name")?,
            task: row.get("task")?,
        })
    });
    said.optional()
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
            ":experiment_id": word(&start.metadata, EXPERIMENT), ":arm": word(&start.metadata, ARM),
            ":agent_name": start.agent_name, ":model": start.model, ":framework": start.framework,
            ":codebase": start.codebase, ":task_profile": start.task_profile,
            ":parent": start.parent, ":key_name": start.key_name,
            ":metadata": json_in(&start.metadata)?, ":task": start.task,
        },
    )?;
    let id = connection.last_insert_rowid();
    write_words(connection, id, &start.run.run_id, &start.task, &start.agent_name)?;
    Ok(id)
}

fn merge(connection: &Connection, said: Said, start: &RunStart) -> Result<u64> {
    let was_experiment = !word(&said.metadata, EXPERIMENT).is_empty();
    let metadata = merged(said.metadata, &start.metadata);
    let experiment_id = word(&metadata, EXPERIMENT);
    if !was_experiment && !experiment_id.is_empty() {
        usage::take_run(connection, &start.run.org, said.id)?;
    }
    let or = |new: &str, old: String| if new.is_empty() { old } else { new.to_owned() };
    let (task, agent_name) = (or(&start.task, said.task), or(&start.agent_name, said.agent_name));
    write_words(connection, said.id, &start.run.run_id, &task, &agent_name)?;
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
            ":id": said.id, ":at_ms": start.at_ms, ":experiment_id": experiment_id,
            ":arm": word(&metadata, ARM), ":project": start.project, ":agent_name": agent_name,
            ":task": task, ":model": start.model, ":framework": start.framework,
            ":codebase": start.codebase, ":task_profile": start.task_profile,
            ":parent": start.parent, ":key_name": start.key_name,
            ":metadata": json_in(&metadata)?,
        },
    )
}

/// Keeps what the search looks in.
fn write_words(
    connection: &Connection,
    run: i64,
    run_id: &str,
    task: &str,
    agent_name: &str,
) -> Result<()> {
    let text = search_text(run_id, agent_name, task);
    let sql = "INSERT OR REPLACE INTO run_words (run, text) VALUES (?1, ?2)";
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
    match head(connection, run)? {
        Some(head) => remove(connection, run, &head).map(|()| 1),
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

fn remove(connection: &Connection, run: &RunKey, head: &Head) -> Result<()> {
    execute(connection, "DELETE FROM steps WHERE run = ?1", [head.id])?;
    for monitor in head.tally.fired() {
        forget_fired(connection, run, head.started_ms, &monitor)?;
    }
    execute(connection, "DELETE FROM run_words WHERE run = ?1", [head.id])?;
    execute(connection, "DELETE FROM runs WHERE id = ?1", [head.id]).map(drop)
}

/// A monitor has fired on no step of a run any more.
pub(super) fn forget_fired(
    connection: &Connection,
    run: &RunKey,
    started_ms: i64,
    monitor: &str,
) -> Result<()> {
    let sql = "DELETE FROM fired_runs WHERE org = ?1 AND monitor = ?2 AND started_ms = ?3 AND run_id = ?4";
    execute(connection, sql, (&run.org, monitor, started_ms, &run.run_id)).map(drop)
}
