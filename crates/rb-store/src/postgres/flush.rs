//! Writes a unit of work with pipelined statements.

use std::collections::BTreeMap;

use tokio::try_join;

use super::error::Sql;
use super::session::Session;
use super::unit_of_work::{Entry, UnitOfWork};
use super::usage;
use super::{conversations, rows};
use crate::RunKey;
use crate::run_totals::{self, UsageDelta};

/// Writes a unit of work, then sends `closing`. All statements are sent before the first response is awaited.
pub(super) async fn write(session: &Session, mut unit: UnitOfWork<'_>, closing: &str) -> Sql<()> {
    drop_untouched(session, &mut unit).await?;
    find_peaks(session, &mut unit).await?;
    let used = used(session, &unit).await?;
    let runs: Vec<(&RunKey, &Entry<'_>)> =
        unit.runs.iter().map(|(run, entry)| (*run, entry)).collect();
    let statements = rows::Statements::prepare(session).await?;
    // Preparing awaits a response, so it must happen before pipelining; otherwise `closing` would be sent too early.
    for sql in [conversations::PUT, usage::ADD] {
        session.prepare(sql).await?;
    }
    try_join!(
        biased; // sent in this order
        statements.steps(session, &runs),
        statements.sums(session, &runs),
        statements.descriptions(session, &runs),
        statements.search_texts(session, &runs),
        statements.ends(session, &runs),
        statements.fired(session, &runs),
        statements.no_longer_fired(session, &runs),
        statements.shown(session, &runs),
        statements.no_longer_shown(session, &runs),
        conversations::put(session, &unit.conversations),
        usage::add(session, &used),
        session.batch(closing),
    )?;
    Ok(())
}

/// Skips runs without applied changes and deletes those that `load` has created.
async fn drop_untouched(session: &Session, unit: &mut UnitOfWork<'_>) -> Sql<()> {
    let unused: Vec<i64> = unit
        .runs
        .values()
        .filter(|entry| entry.is_new() && !entry.is_touched())
        .map(|entry| entry.id)
        .collect();
    unit.runs.retain(|_, entry| entry.is_touched());
    if !unused.is_empty() {
        session.execute("DELETE FROM runs WHERE id = ANY ($1)", &[&unused]).await?;
    }
    Ok(())
}

/// Recomputes the peak score of runs whose highest step was replaced.
async fn find_peaks(session: &Session, unit: &mut UnitOfWork<'_>) -> Sql<()> {
    for entry in unit.runs.values_mut().filter(|entry| entry.is_peak_lost) {
        let replaced: Vec<i64> = entry.steps.keys().map(|index| i64::from(*index)).collect();
        let sql = "SELECT max(total_score) FROM steps WHERE run = $1 AND step_index <> ALL ($2)";
        let rows = session.select(sql, &[&entry.id, &replaced]).await?;
        let stored = rows.first().map(|row| row.try_get(0)).transpose()?.flatten();
        entry.find_peak(stored);
    }
    Ok(())
}

/// Sums the usage by organisation and day. A run that became part of an experiment subtracts its earlier usage.
async fn used<'a>(
    session: &Session,
    unit: &UnitOfWork<'a>,
) -> Sql<BTreeMap<(&'a str, i64), UsageDelta>> {
    let mut sums: BTreeMap<(&'a str, i64), UsageDelta> = BTreeMap::new();
    let mut to_subtract: BTreeMap<i64, &'a str> = BTreeMap::new();
    for (run, entry) in &unit.runs {
        for (day, used) in &entry.used {
            run_totals::add(sums.entry((run.org.as_str(), *day)).or_default(), *used);
        }
        if entry.must_subtract_usage() {
            to_subtract.insert(entry.id, run.org.as_str());
        }
    }
    if !to_subtract.is_empty() {
        let runs: Vec<i64> = to_subtract.keys().copied().collect();
        for (run, day, used) in usage::stored(session, &runs).await? {
            if let Some(org) = to_subtract.get(&run) {
                run_totals::add(sums.entry((org, day)).or_default(), used.map(|used| -used));
            }
        }
    }
    Ok(sums)
}
