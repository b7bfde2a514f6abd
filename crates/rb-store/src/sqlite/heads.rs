//! The runs that the writer writes to, as it last left them.
//!
//! What a step has to know of its run is read once and then kept, and what its steps add up to is written once a commit
//! and not once a step. Whoever else looks at the row of a run or changes it lets it [settle](Heads::settle) first. The
//! rows are kept beyond the commit, until another process is seen to have written.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, Result};

use super::runs::{self, Head};
use super::{execute, usage};
use crate::numbers::day;
use crate::tally::{self, Share, Used};
use crate::{RunKey, StepRow};

/// Runs that are kept from one commit to the next.
const KEPT_MAX: usize = 512;

/// Runs by name, and what was used and is not written.
#[derive(Default)]
pub(super) struct Heads {
    known: BTreeMap<RunKey, Known>,
    used: BTreeMap<(String, i64), Used>,
    /// By which SQLite tells that another connection has written.
    data_version: i64,
}

/// A run as it stands, and how much of that is not written.
struct Known {
    head: Head,
    /// The monitors of which the run is listed as one on which they fired.
    listed: BTreeSet<String>,
    is_written: bool,
    /// How often the run was changed since it was written.
    changes: u32,
    at_ms: i64,
    /// The highest step was replaced: the next is to be looked for.
    is_peak_lost: bool,
}

impl Known {
    fn new(head: Head) -> Self {
        let listed = head.tally.fired();
        Self { head, listed, is_written: true, changes: 0, at_ms: 0, is_peak_lost: false }
    }
}

impl Heads {
    /// A transaction has begun: nobody else writes now, but somebody may have before.
    pub(super) fn begin(&mut self, connection: &Connection) -> Result<()> {
        let sql = "PRAGMA data_version";
        let now = connection.prepare_cached(sql)?.query_row((), |row| row.get(0))?;
        if now != self.data_version || self.known.len() > KEPT_MAX {
            self.forget();
        }
        self.data_version = now;
        Ok(())
    }

    /// Nothing is known any more, and what was not written is not written.
    pub(super) fn forget(&mut self) {
        self.known.clear();
        self.used.clear();
    }

    /// How often a run was changed.
    pub(super) fn version(&mut self, connection: &Connection, run: &RunKey) -> Result<u64> {
        if let Some(known) = self.known.get(run) {
            return Ok(known.head.version);
        }
        let Some(head) = runs::head(connection, run)? else { return Ok(0) };
        let version = head.version;
        self.known.insert(run.clone(), Known::new(head));
        Ok(version)
    }

    /// The run of a step; it begins with the step where it is not known.
    pub(super) fn of(&mut self, connection: &Connection, step: &StepRow) -> Result<&mut Head> {
        if !self.known.contains_key(&step.run) {
            let head = match runs::head(connection, &step.run)? {
                Some(head) => head,
                None => runs::begin(connection, &step.run, &step.project, step.at_ms)?,
            };
            self.known.insert(step.run.clone(), Known::new(head));
        }
        Ok(&mut self.known.get_mut(&step.run).ok_or(rusqlite::Error::QueryReturnedNoRows)?.head)
    }

    /// A step was put in the place of what was stored there.
    pub(super) fn count(
        &mut self,
        step: &StepRow,
        before: Option<&(i64, Share<'_>)>,
        share: &Share<'_>,
        changes: u32,
    ) {
        let Some(known) = self.known.get_mut(&step.run) else { return };
        known.is_written = false;
        // A run that is known was changed at least once.
        let changes = if known.head.version == 0 { 1 } else { changes };
        known.changes += changes;
        known.head.version += u64::from(changes);
        known.at_ms = known.at_ms.max(step.at_ms);
        if let Some((_, before)) = before {
            known.is_peak_lost |= known.head.tally.take(before);
        }
        known.head.tally.add(share);
        known.head.next_index = known.head.next_index.max(step.step_index.saturating_add(1));
        if known.head.is_experiment {
            return;
        }
        let mut add = |at_ms: i64, used: Used| {
            tally::add(self.used.entry((step.run.org.clone(), day(at_ms))).or_default(), used);
        };
        if let Some((at_ms, before)) = before {
            add(*at_ms, before.used().map(|used| -used));
        }
        add(step.at_ms, share.used());
    }

    /// Writes what is not written of a run, and knows it no more.
    pub(super) fn settle(&mut self, connection: &Connection, run: &RunKey) -> Result<()> {
        match self.known.remove(run) {
            Some(mut known) => write(connection, run, &mut known),
            None => Ok(()),
        }
    }

    /// Writes all that is not written, and knows nothing more.
    pub(super) fn settle_all(&mut self, connection: &Connection) -> Result<()> {
        self.write(connection)?;
        self.forget();
        Ok(())
    }

    /// Writes all that is not written.
    pub(super) fn write(&mut self, connection: &Connection) -> Result<()> {
        for (run, known) in &mut self.known {
            write(connection, run, known)?;
        }
        for ((org, day), used) in std::mem::take(&mut self.used) {
            usage::add(connection, &org, day, used)?;
        }
        Ok(())
    }
}

fn write(connection: &Connection, run: &RunKey, known: &mut Known) -> Result<()> {
    if std::mem::replace(&mut known.is_written, true) {
        return Ok(());
    }
    let changes = std::mem::take(&mut known.changes);
    let head = &mut known.head;
    if std::mem::take(&mut known.is_peak_lost) {
        head.tally.set_peak(peak(connection, head.id)?);
    }
    let fired = head.tally.fired();
    for monitor in fired.difference(&known.listed) {
        let sql = "INSERT INTO fired_runs (org, monitor, started_ms, run_id, run)
            VALUES (?1, ?2, ?3, ?4, ?5)";
        execute(connection, sql, (&run.org, monitor, head.started_ms, &run.run_id, head.id))?;
    }
    for monitor in known.listed.difference(&fired) {
        runs::forget_fired(connection, run, head.started_ms, monitor)?;
    }
    known.listed = fired;
    super::tally::write(connection, head.id, &head.tally, changes, known.at_ms)
}

/// The highest composite of a run, read from its steps.
fn peak(connection: &Connection, run: i64) -> Result<f64> {
    let sql = "SELECT max(0.0, coalesce(max(total_score), 0.0)) FROM steps WHERE run = ?1";
    connection.prepare_cached(sql)?.query_row([run], |row| row.get(0))
}
