//! One transaction for many callers: what their changes do to runs is worked out in memory and written together, the
//! rest is done one by one.

use super::fault::{Fault, Sql};
use super::ledger::Ledger;
use super::session::Session;
use super::{findings, keys, load, patterns, profiles, put, runs, usage, waiting};
use crate::Change;
use crate::numbers::{count_in, count_out};

/// How many rows each change of a call touched.
pub(super) type Touched = Vec<u64>;

/// Makes the changes of all calls, or none. A call whose guard did not hold is left out, and has nothing in its place.
pub(super) async fn transact(session: &Session, calls: &[&[Change]]) -> Sql<Vec<Option<Touched>>> {
    let done = attempt(session, calls).await;
    if done.is_err() {
        // A connection that is gone has rolled back by itself.
        let _ = session.batch("ROLLBACK").await;
    }
    done
}

async fn attempt(session: &Session, calls: &[&[Change]]) -> Sql<Vec<Option<Touched>>> {
    let changes: Vec<(usize, &Change)> = calls
        .iter()
        .enumerate()
        .flat_map(|(call, changes)| changes.iter().map(move |change| (call, change)))
        .collect();
    let mut done: Vec<Option<Touched>> = calls.iter().map(|_| Some(Vec::new())).collect();
    let parts = parts(&changes);
    for (at, part) in parts.iter().enumerate() {
        let opening = if at == 0 { "BEGIN" } else { "" };
        let closing = if at + 1 == parts.len() { "COMMIT" } else { "" };
        let mut ledger = load::read(session, opening, part).await?;
        for (call, change) in *part {
            let Some(Some(touched)) = done.get_mut(*call) else { continue };
            match fold(&mut ledger, change) {
                Folded::Yes => touched.push(1),
                Folded::No => touched.push(write(session, change).await?),
                Folded::Guarded { holds: true } => touched.push(0),
                // A guard stands first. If it does not, something of the call is done, and all is taken back.
                Folded::Guarded { holds: false } if !touched.is_empty() => {
                    return Err(Fault::Moved);
                }
                Folded::Guarded { holds: false } => done[*call] = None,
            }
        }
        Box::pin(put::write(session, ledger, closing)).await?;
    }
    Ok(done)
}

/// The changes in order, those apart that need what was put before to be written.
fn parts<'p, 'a>(changes: &'p [(usize, &'a Change)]) -> Vec<&'p [(usize, &'a Change)]> {
    changes.chunk_by(|(_, one), (_, next)| comes_between(one) == comes_between(next)).collect()
}

fn comes_between(change: &Change) -> bool {
    matches!(change, Change::DeleteRun(_) | Change::ExpireRuns { .. } | Change::SetUsage { .. })
}

enum Folded {
    Yes,
    /// It is no matter of runs and their steps.
    No,
    Guarded {
        holds: bool,
    },
}

/// Enters a change into the ledger, if it belongs there.
fn fold<'a>(ledger: &mut Ledger<'a>, change: &'a Change) -> Folded {
    match change {
        Change::Expect { run, version } => {
            let entry = ledger.runs.get(run);
            let holds = entry.is_some_and(|entry| count_out(entry.version) == *version);
            return Folded::Guarded { holds };
        }
        Change::StartRun(start) => {
            if let Some(entry) = ledger.runs.get_mut(&start.run) {
                entry.start(start);
            }
        }
        Change::PutStep(step) => {
            if let Some(entry) = ledger.runs.get_mut(&step.run) {
                entry.put(step);
            }
        }
        Change::AmendStep(step) => {
            if let Some(entry) = ledger.runs.get_mut(&step.run) {
                entry.amend(step);
            }
        }
        Change::FinishRun { run, at_ms, outcome } => {
            if let Some(entry) = ledger.runs.get_mut(run) {
                entry.finish(outcome, *at_ms);
            }
        }
        Change::PutConversation(row) => {
            ledger.conversations.insert(&row.run, row);
        }
        Change::SetVersion { run, version } => {
            if let Some(entry) = ledger.runs.get_mut(run) {
                entry.set_version(count_in(*version));
            }
        }
        Change::DeleteRun(_)
        | Change::ExpireRuns { .. }
        | Change::SetUsage { .. }
        | Change::PutPattern(_)
        | Change::DeletePattern { .. }
        | Change::UsePatterns { .. }
        | Change::PutFinding(_)
        | Change::DeleteFinding { .. }
        | Change::InvalidateFindings { .. }
        | Change::ClearFindings { .. }
        | Change::PutProfile(_)
        | Change::DeleteProfile { .. }
        | Change::PutKey(_)
        | Change::RevokeKey { .. }
        | Change::PutSetting { .. }
        | Change::PutWaiting(_)
        | Change::TakeWaiting { .. }
        | Change::ExpireWaiting { .. } => return Folded::No,
    }
    Folded::Yes
}

/// Makes one change that is not about the sums of runs, and says how many rows it touched.
async fn write(session: &Session, change: &Change) -> Sql<u64> {
    match change {
        Change::DeleteRun(run) => runs::delete(session, run).await,
        Change::ExpireRuns { before_ms, runs_max } => {
            runs::expire(session, *before_ms, *runs_max).await
        }
        Change::SetUsage { org, day } => usage::set(session, org, *day).await,
        Change::PutPattern(pattern) => patterns::put(session, pattern).await,
        Change::DeletePattern { org, tier, pattern_id } => {
            patterns::delete(session, org, tier, pattern_id).await
        }
        Change::UsePatterns { used, at_ms } => patterns::mark_used(session, used, *at_ms).await,
        Change::PutFinding(finding) => findings::put(session, finding).await,
        Change::DeleteFinding { org, codebase, finding_id } => {
            findings::delete(session, org, codebase, finding_id).await
        }
        Change::InvalidateFindings { org, codebase, file_paths } => {
            findings::invalidate(session, org, codebase, file_paths).await
        }
        Change::ClearFindings { org, codebase } => findings::clear(session, org, codebase).await,
        Change::PutProfile(profile) => profiles::put(session, profile).await,
        Change::DeleteProfile { org, project, profile_id } => {
            profiles::delete(session, org, project, profile_id).await
        }
        Change::PutKey(key) => keys::put(session, key).await,
        Change::RevokeKey { key_id, at_ms } => keys::revoke(session, key_id, *at_ms).await,
        Change::PutSetting { name, value } => keys::put_setting(session, name, value).await,
        Change::PutWaiting(row) => waiting::put(session, row).await,
        Change::TakeWaiting { run, words_id } => waiting::take(session, run, words_id).await,
        Change::ExpireWaiting { before_ms } => waiting::expire(session, *before_ms).await,
        // These are in the ledger.
        Change::Expect { .. }
        | Change::StartRun(_)
        | Change::PutStep(_)
        | Change::AmendStep(_)
        | Change::FinishRun { .. }
        | Change::SetVersion { .. }
        | Change::PutConversation(_) => Ok(0),
    }
}
