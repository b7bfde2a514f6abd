//! Writes what a transaction changed, in one flight.

use std::collections::BTreeMap;

use tokio::try_join;

use super::fault::Sql;
use super::ledger::{Entry, Ledger};
use super::session::Session;
use super::usage;
use super::{conversations, rows};
use crate::RunKey;
use crate::tally::{self, Used};

/// Writes a ledger; `closing` is sent last. Nothing waits for an answer before everything is on its way.
pub(super) async fn write(session: &Session, mut ledger: Ledger<'_>, closing: &str) -> Sql<()> {
    leave_untouched(session, &mut ledger).await?;
    find_peaks(session, &mut ledger).await?;
    let used = used(session, &ledger).await?;
    let runs: Vec<(&RunKey, &Entry<'_>)> =
        ledger.runs.iter().map(|(run, entry)| (*run, entry)).collect();
    let statements = rows::Statements::prepare(session).await?;
    // Preparing waits for an answer; within the flight, what closes it would get ahead.
    for sql in [conversations::PUT, usage::ADD] {
        session.prepare(sql).await?;
    }
    try_join!(
        biased; // sent in this order
        statements.steps(session, &runs),
        statements.sums(session, &runs),
        statements.said(session, &runs),
        statements.words(session, &runs),
        statements.ends(session, &runs),
        statements.fired(session, &runs),
        statements.fired_no_more(session, &runs),
        statements.shown(session, &runs),
        statements.shown_no_more(session, &runs),
        conversations::put(session, &ledger.conversations),
        usage::add(session, &used),
        session.batch(closing),
    )?;
    Ok(())
}

/// A run whose changes were all refused stays as it was; if it was not there, it goes again.
async fn leave_untouched(session: &Session, ledger: &mut Ledger<'_>) -> Sql<()> {
    let made_for_nothing: Vec<i64> = ledger
        .runs
        .values()
        .filter(|entry| entry.is_new() && !entry.is_touched())
        .map(|entry| entry.id)
        .collect();
    ledger.runs.retain(|_, entry| entry.is_touched());
    if !made_for_nothing.is_empty() {
        session.execute("DELETE FROM runs WHERE id = ANY ($1)", &[&made_for_nothing]).await?;
    }
    Ok(())
}

/// The highest composite of the runs that lost it, from the steps that stay: only where the step that had it was
/// replaced.
async fn find_peaks(session: &Session, ledger: &mut Ledger<'_>) -> Sql<()> {
    for entry in ledger.runs.values_mut().filter(|entry| entry.is_peak_lost) {
        let replaced: Vec<i64> = entry.steps.keys().map(|index| i64::from(*index)).collect();
        let sql = "SELECT max(total_score) FROM steps WHERE run = $1 AND step_index <> ALL ($2)";
        let rows = session.select(sql, &[&entry.id, &replaced]).await?;
        let stored = rows.first().map(|row| row.try_get(0)).transpose()?.flatten();
        entry.find_peak(stored);
    }
    Ok(())
}

/// What was used by organisation and day. A run that became part of an experiment gives back what it had used.
async fn used<'a>(session: &Session, ledger: &Ledger<'a>) -> Sql<BTreeMap<(&'a str, i64), Used>> {
    let mut sums: BTreeMap<(&'a str, i64), Used> = BTreeMap::new();
    let mut giving_back: BTreeMap<i64, &'a str> = BTreeMap::new();
    for (run, entry) in &ledger.runs {
        for (day, used) in &entry.used {
            tally::add(sums.entry((run.org.as_str(), *day)).or_default(), *used);
        }
        if entry.gives_back() {
            giving_back.insert(entry.id, run.org.as_str());
        }
    }
    if !giving_back.is_empty() {
        let runs: Vec<i64> = giving_back.keys().copied().collect();
        for (run, day, used) in usage::stored(session, &runs).await? {
            if let Some(org) = giving_back.get(&run) {
                tally::add(sums.entry((org, day)).or_default(), used.map(|used| -used));
            }
        }
    }
    Ok(sums)
}
