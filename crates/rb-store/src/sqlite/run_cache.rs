//! Write-back cache of the runs that the writer thread updates.
//!
//! The header of a run is read once, and its totals are written once per commit instead of once per step. Other code
//! that reads or changes the row of a run must [flush](RunCache::flush_run) it first. Entries outlive the commit and
//! are invalidated when another process has written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use rusqlite::{Connection, Result};

use super::runs::{self, RunHeader};
use super::{conversion, execute, usage};
use crate::numeric::day;
use crate::run_totals::{self, RunTotals, StepContribution, UsageDelta};
use crate::sql::{Table as _, Value, join, names};
use crate::{RunKey, StepRow};

/// Maximum number of cached runs between two commits.
const RUN_CAPACITY: usize = 512;

/// Cached runs and the usage that is not written yet.
#[derive(Default)]
pub(super) struct RunCache {
    known: BTreeMap<RunKey, CachedRun>,
    used: BTreeMap<(String, i64), UsageDelta>,
    /// SQLite's counter of commits by other connections.
    data_version: i64,
}

/// Cached run with its unwritten changes.
struct CachedRun {
    header: RunHeader,
    /// Monitors for which the run has a row in `fired_runs`.
    listed: BTreeSet<String>,
    is_written: bool,
    /// Number of changes since the last write.
    changes: u32,
    at_ms: i64,
    /// The step with the peak score was replaced, so the peak must be recomputed.
    is_peak_lost: bool,
}

impl CachedRun {
    fn new(header: RunHeader) -> Self {
        let listed = header.totals.fired();
        Self { header, listed, is_written: true, changes: 0, at_ms: 0, is_peak_lost: false }
    }
}

impl RunCache {
    /// Validates the cache at the start of a transaction, when no other connection can write.
    pub(super) fn begin(&mut self, connection: &Connection) -> Result<()> {
        let sql = "PRAGMA data_version";
        let now = connection.prepare_cached(sql)?.query_row((), |row| row.get(0))?;
        if now != self.data_version || self.known.len() > RUN_CAPACITY {
            self.clear();
        }
        self.data_version = now;
        Ok(())
    }

    /// Discards all entries and all unwritten changes.
    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.used.clear();
    }

    /// Returns the version of a run.
    pub(super) fn version(&mut self, connection: &Connection, run: &RunKey) -> Result<u64> {
        if let Some(known) = self.known.get(run) {
            return Ok(known.header.version);
        }
        let Some(header) = runs::header(connection, run)? else { return Ok(0) };
        let version = header.version;
        self.known.insert(run.clone(), CachedRun::new(header));
        Ok(version)
    }

    /// Returns the header of a step's run; creates the run if it is unknown.
    pub(super) fn of(&mut self, connection: &Connection, step: &StepRow) -> Result<&mut RunHeader> {
        if !self.known.contains_key(&step.run) {
            let header = match runs::header(connection, &step.run)? {
                Some(header) => header,
                None => runs::begin(connection, &step.run, &step.project, step.at_ms)?,
            };
            self.known.insert(step.run.clone(), CachedRun::new(header));
        }
        Ok(&mut self.known.get_mut(&step.run).ok_or(rusqlite::Error::QueryReturnedNoRows)?.header)
    }

    /// Updates the totals for a step that replaces `before`.
    pub(super) fn count(
        &mut self,
        step: &StepRow,
        before: Option<&(i64, StepContribution<'_>)>,
        contribution: &StepContribution<'_>,
        changes: u32,
    ) {
        let Some(known) = self.known.get_mut(&step.run) else { return };
        known.is_written = false;
        // The version of an existing run is at least 1.
        let changes = if known.header.version == 0 { 1 } else { changes };
        known.changes += changes;
        known.header.version += u64::from(changes);
        known.at_ms = known.at_ms.max(step.at_ms);
        if let Some((_, before)) = before {
            known.is_peak_lost |= known.header.totals.subtract(before);
        }
        known.header.totals.add(contribution);
        known.header.next_index = known.header.next_index.max(step.step_index.saturating_add(1));
        if known.header.is_experiment {
            return;
        }
        let mut add = |at_ms: i64, used: UsageDelta| {
            run_totals::add(self.used.entry((step.run.org.clone(), day(at_ms))).or_default(), used);
        };
        if let Some((at_ms, before)) = before {
            add(*at_ms, before.used().map(|used| -used));
        }
        add(step.at_ms, contribution.used());
    }

    /// Writes the changes of a run and removes it from the cache.
    pub(super) fn flush_run(&mut self, connection: &Connection, run: &RunKey) -> Result<()> {
        match self.known.remove(run) {
            Some(mut known) => write(connection, run, &mut known),
            None => Ok(()),
        }
    }

    /// Writes all changes and clears the cache.
    pub(super) fn flush_all(&mut self, connection: &Connection) -> Result<()> {
        self.flush(connection)?;
        self.clear();
        Ok(())
    }

    /// Writes all changes.
    pub(super) fn flush(&mut self, connection: &Connection) -> Result<()> {
        for (run, known) in &mut self.known {
            write(connection, run, known)?;
        }
        for ((org, day), used) in std::mem::take(&mut self.used) {
            usage::add(connection, &org, day, used)?;
        }
        Ok(())
    }
}

fn write(connection: &Connection, run: &RunKey, known: &mut CachedRun) -> Result<()> {
    if std::mem::replace(&mut known.is_written, true) {
        return Ok(());
    }
    let changes = std::mem::take(&mut known.changes);
    let header = &mut known.header;
    if std::mem::take(&mut known.is_peak_lost) {
        header.totals.set_peak(peak(connection, header.id)?);
    }
    let fired = header.totals.fired();
    for monitor in fired.difference(&known.listed) {
        let sql = "INSERT INTO fired_runs (org, monitor, started_ms, run_id, run)
            VALUES (?, ?, ?, ?, ?)";
        let [org, monitor, run_id] =
            [&run.org, monitor, &run.run_id].map(|text| Value::Text(text.as_str().into()));
        let (started_ms, id) = (Value::Int(header.started_ms), Value::Int(header.id));
        execute(connection, sql, &[org, monitor, started_ms, run_id, id])?;
    }
    for monitor in known.listed.difference(&fired) {
        runs::remove_fired(connection, run, header.started_ms, monitor)?;
    }
    known.listed = fired;
    write_totals(connection, header, changes, known.at_ms)
}

/// Writes the totals into the run's row and adds `changes` to its version.
fn write_totals(
    connection: &Connection,
    header: &RunHeader,
    changes: u32,
    at_ms: i64,
) -> Result<()> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        let sets = join(names::<RunTotals>().map(|name| format!("{name} = ?")));
        format!(
            "UPDATE runs SET version = version + ?, seen_ms = max(seen_ms, ?), {sets} WHERE id = ?"
        )
    });
    let mut values = vec![Value::Int(changes.into()), Value::Int(at_ms)];
    header.totals.write(&mut values).map_err(conversion)?;
    values.push(Value::Int(header.id));
    execute(connection, &SQL, &values).map(drop)
}

/// Reads the peak score of a run from its steps.
fn peak(connection: &Connection, run: i64) -> Result<f64> {
    let sql = "SELECT max(0.0, coalesce(max(total_score), 0.0)) FROM steps WHERE run = ?1";
    connection.prepare_cached(sql)?.query_row([run], |row| row.get(0))
}
