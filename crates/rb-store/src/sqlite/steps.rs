//! Steps.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use rusqlite::{Connection, Result};

use super::run_cache::RunCache;
use super::runs::RunHeader;
use super::{conversion, execute, find};
use crate::StepRow;
use crate::run_totals::StepContribution;
use crate::sql::{Row as _, STEP_EXTRAS, Value, join, list, names, next, step_values};

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
        "SELECT at_ms, {} FROM steps WHERE run = ? AND step_index = ?",
        list::<StepContribution<'static>>("")
    );
    let values = [Value::Int(run), Value::Int(step_index.into())];
    find(connection, &sql, &values, |columns| {
        Ok((next(columns)?, StepContribution::read(columns)?))
    })
}

/// Updates the number of steps on which each pattern is shown.
fn note_patterns(
    connection: &Connection,
    header: &RunHeader,
    step: &StepRow,
    before: &BTreeSet<String>,
    now: &BTreeSet<String>,
) -> Result<()> {
    let place = |pattern: &'_ str| {
        [
            Value::Text(step.run.org.as_str().into()),
            Value::text(pattern),
            Value::Int(header.started_ms),
            Value::Text(step.run.run_id.as_str().into()),
            Value::Int(header.id),
        ]
    };
    for pattern in now.difference(before) {
        let sql = "INSERT INTO pattern_runs (org, pattern, started_ms, run_id, run, steps)
            VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET steps = steps + 1";
        execute(connection, sql, &place(pattern))?;
    }
    for pattern in before.difference(now) {
        let here = "WHERE org = ? AND pattern = ? AND started_ms = ? AND run_id = ? AND run = ?";
        let less = format!("UPDATE pattern_runs SET steps = steps - 1 {here}");
        execute(connection, &less, &place(pattern))?;
        let gone = format!("DELETE FROM pattern_runs {here} AND steps <= 0");
        execute(connection, &gone, &place(pattern))?;
    }
    Ok(())
}

fn insert(connection: &Connection, run: i64, step: &StepRow) -> Result<u64> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        let columns = || STEP_EXTRAS.iter().map(|(name, _)| *name).chain(names::<StepRow>());
        let values = join(columns().map(|_| "?"));
        format!("INSERT OR REPLACE INTO steps ({}) VALUES ({values})", join(columns()))
    });
    execute(connection, &SQL, &step_values(run, step).map_err(conversion)?)
}
