//! Transaction over the changes of many callers. Changes of runs are computed in memory and written together; all
//! others are executed one by one.

use super::error::{DbError, Sql};
use super::session::Session;
use super::unit_of_work::UnitOfWork;
use super::{flush, load, runs, usage};
use crate::Change;
use crate::numeric::{count_from_db, count_to_db};
use crate::sql::{Dialect, plain_writes};

/// Number of rows that each change of a call affected.
pub(super) type RowsChanged = Vec<u64>;

/// Applies the changes of all calls, or none. A call with a version conflict is skipped and has no result.
pub(super) async fn transact(
    session: &Session,
    calls: &[&[Change]],
) -> Sql<Vec<Option<RowsChanged>>> {
    let done = attempt(session, calls).await;
    if done.is_err() {
        // A broken connection has rolled back already.
        let _ = session.batch("ROLLBACK").await;
    }
    done
}

async fn attempt(session: &Session, calls: &[&[Change]]) -> Sql<Vec<Option<RowsChanged>>> {
    let changes: Vec<(usize, &Change)> = calls
        .iter()
        .enumerate()
        .flat_map(|(call, changes)| changes.iter().map(move |change| (call, change)))
        .collect();
    let mut done: Vec<Option<RowsChanged>> = calls.iter().map(|_| Some(Vec::new())).collect();
    let parts = parts(&changes);
    for (at, part) in parts.iter().enumerate() {
        let opening = if at == 0 { "BEGIN" } else { "" };
        let closing = if at + 1 == parts.len() { "COMMIT" } else { "" };
        let mut unit = load::read(session, opening, part).await?;
        for (call, change) in *part {
            let Some(Some(touched)) = done.get_mut(*call) else { continue };
            match apply(&mut unit, change) {
                Applied::Yes => touched.push(1),
                Applied::No => touched.push(write(session, change).await?),
                Applied::Guarded { holds: true } => touched.push(0),
                // Changes before the guard were applied, so the whole transaction must be rolled back.
                Applied::Guarded { holds: false } if !touched.is_empty() => {
                    return Err(DbError::VersionConflict);
                }
                Applied::Guarded { holds: false } => done[*call] = None,
            }
        }
        Box::pin(flush::write(session, unit, closing)).await?;
    }
    Ok(done)
}

/// Splits the changes into parts; a new part starts where earlier changes must have been written.
fn parts<'p, 'a>(changes: &'p [(usize, &'a Change)]) -> Vec<&'p [(usize, &'a Change)]> {
    changes.chunk_by(|(_, one), (_, next)| comes_between(one) == comes_between(next)).collect()
}

fn comes_between(change: &Change) -> bool {
    matches!(change, Change::DeleteRun(_) | Change::ExpireRuns { .. } | Change::SetUsage { .. })
}

enum Applied {
    Yes,
    /// The change does not affect runs or steps.
    No,
    Guarded {
        holds: bool,
    },
}

/// Applies a change to the unit of work, if it affects runs, steps or conversations.
#[expect(clippy::wildcard_enum_match_arm, reason = "`plain_writes` names all others")]
fn apply<'a>(unit: &mut UnitOfWork<'a>, change: &'a Change) -> Applied {
    match change {
        Change::ExpectVersion { run, version } => {
            let entry = unit.runs.get(run);
            let holds = entry.is_some_and(|entry| count_from_db(entry.version) == *version);
            return Applied::Guarded { holds };
        }
        Change::StartRun(start) => {
            if let Some(entry) = unit.runs.get_mut(&start.run) {
                entry.start(start);
            }
        }
        Change::PutStep(step) => {
            if let Some(entry) = unit.runs.get_mut(&step.run) {
                entry.put(step);
            }
        }
        Change::AmendStep(step) => {
            if let Some(entry) = unit.runs.get_mut(&step.run) {
                entry.amend(step);
            }
        }
        Change::FinishRun { run, at_ms, outcome } => {
            if let Some(entry) = unit.runs.get_mut(run) {
                entry.finish(outcome, *at_ms);
            }
        }
        Change::PutConversation(row) => {
            unit.conversations.insert(&row.run, row);
        }
        Change::SetVersion { run, version } => {
            if let Some(entry) = unit.runs.get_mut(run) {
                entry.set_version(count_to_db(*version));
            }
        }
        _ => return Applied::No,
    }
    Applied::Yes
}

/// Executes a change outside of the unit of work and returns the number of affected rows.
#[expect(clippy::wildcard_enum_match_arm, reason = "`plain_writes` names all others")]
async fn write(session: &Session, change: &Change) -> Sql<u64> {
    match change {
        Change::DeleteRun(run) => runs::delete(session, run).await,
        Change::ExpireRuns { before_ms, runs_max } => {
            runs::expire(session, *before_ms, *runs_max).await
        }
        Change::SetUsage { org, day } => usage::set(session, org, *day).await,
        other => {
            let mut touched = 0;
            for statement in plain_writes(other, Dialect::Postgres)? {
                touched += session.run(&statement.sql, &statement.values).await?;
            }
            Ok(touched)
        }
    }
}
