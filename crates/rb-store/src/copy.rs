//! Copies a store into another one, run by run.
//!
//! Runs that are equal on both sides, including their version, are skipped. An interrupted copy therefore resumes
//! where it stopped, and a second copy of a store in use transfers only the changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::{
    Change, PatternChange, Result, RunAfter, RunFilter, RunKey, RunRow, RunStart, Scope, Store,
    StoreError,
};

/// Number of runs per page.
const PAGE_RUNS: u32 = 200;
/// Number of steps per page.
const PAGE_STEPS: u32 = 200;
/// Number of patterns per page.
const PAGE_PATTERNS: u32 = 500;
/// Maximum number of runs that are copied concurrently.
const MAX_CONCURRENT_RUNS: usize = 8;

/// Number of rows of each kind in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowCounts {
    pub runs: u64,
    pub steps: u64,
    pub conversations: u64,
    pub patterns: u64,
    pub findings: u64,
    pub profiles: u64,
    pub keys: u64,
    pub settings: u64,
    /// Days with usage, over all organisations.
    pub usage_days: u64,
}

impl RowCounts {
    /// Returns each count with its label.
    pub fn named(&self) -> [(&'static str, u64); 9] {
        [
            ("runs", self.runs),
            ("steps", self.steps),
            ("conversations", self.conversations),
            ("patterns", self.patterns),
            ("findings", self.findings),
            ("profiles", self.profiles),
            ("keys", self.keys),
            ("settings", self.settings),
            ("days of usage", self.usage_days),
        ]
    }
}

/// Copies all rows that are missing or different in `to` and deletes its runs that `from` does not have. Calls
/// `on_progress` with the number of runs that were compared and copied.
pub async fn copy(
    from: &Arc<dyn Store>,
    to: &Arc<dyn Store>,
    mut on_progress: impl FnMut(u64, u64),
) -> Result<()> {
    let (mut seen, mut copied) = (0, 0);
    let mut pages = Pages::new(Arc::clone(from));
    while let Some(page) = pages.next().await? {
        seen += page.len() as u64;
        copied += copy_page(from, to, page).await?;
        on_progress(seen, copied);
    }
    remove_deleted(from, to).await?;
    copy_conversations(&**from, &**to).await?;
    copy_patterns(&**from, &**to).await?;
    copy_operator_messages(&**from, &**to).await?;
    copy_rest(&**from, &**to).await
}

/// Counts the rows of a store.
pub async fn count_rows(store: &Arc<dyn Store>) -> Result<RowCounts> {
    let mut row_counts = RowCounts::default();
    let mut pages = Pages::new(Arc::clone(store));
    while let Some(page) = pages.next().await? {
        row_counts.runs += page.len() as u64;
        row_counts.steps += page.iter().map(|run| run.step_count).sum::<u64>();
    }
    let mut after = None;
    while let Some(last) = {
        let rows = store.conversations(after.as_ref(), PAGE_RUNS).await?;
        row_counts.conversations += rows.len() as u64;
        rows.into_iter().next_back()
    } {
        after = Some(last.run);
    }
    let unlimited = Scope::default();
    let mut version = 0;
    while let Some((last, _)) = {
        let changes = store.pattern_changes(version, PAGE_PATTERNS).await?;
        let is_there =
            |(_, change): &&(u64, PatternChange)| matches!(change, PatternChange::Put(_));
        row_counts.patterns += changes.iter().filter(is_there).count() as u64;
        changes.into_iter().next_back()
    } {
        version = last;
    }
    row_counts.profiles = store.profiles(&unlimited).await?.len() as u64;
    row_counts.keys = store.keys().await?.len() as u64;
    row_counts.settings = store.settings().await?.len() as u64;
    for org in store.orgs().await? {
        row_counts.usage_days += store.usage(&org, 0).await?.len() as u64;
        for codebase in store.codebases(&Scope::org(&org)).await? {
            row_counts.findings += store.findings(&org, &codebase).await?.len() as u64;
        }
    }
    Ok(row_counts)
}

/// Iterator over all runs of a store by page, newest first.
struct Pages {
    store: Arc<dyn Store>,
    filter: RunFilter,
}

impl Pages {
    fn new(store: Arc<dyn Store>) -> Self {
        Self { store, filter: RunFilter { count_max: PAGE_RUNS, ..RunFilter::default() } }
    }

    async fn next(&mut self) -> Result<Option<Vec<RunRow>>> {
        let page = self.store.runs(&Scope::default(), &self.filter).await?;
        let Some(last) = page.last() else { return Ok(None) };
        self.filter.after = Some(RunAfter { started_ms: last.started_ms, run: last.run.clone() });
        Ok(Some(page))
    }
}

/// Copies the runs of a page that differ and returns their number.
async fn copy_page(from: &Arc<dyn Store>, to: &Arc<dyn Store>, page: Vec<RunRow>) -> Result<u64> {
    let mut copying = JoinSet::new();
    let mut copied = 0;
    for run in page {
        if copying.len() >= MAX_CONCURRENT_RUNS
            && let Some(done) = copying.join_next().await
        {
            copied += finished(done)?;
        }
        let (from, to) = (Arc::clone(from), Arc::clone(to));
        copying.spawn(async move { copy_run(&*from, &*to, run).await });
    }
    while let Some(done) = copying.join_next().await {
        copied += finished(done)?;
    }
    Ok(copied)
}

fn finished(done: std::result::Result<Result<bool>, tokio::task::JoinError>) -> Result<u64> {
    let is_copied = done.map_err(|error| StoreError::Unavailable(error.to_string()))??;
    Ok(u64::from(is_copied))
}

/// Copies a run unless both sides are equal. The version is written last, so an incomplete copy never equals its
/// source.
async fn copy_run(from: &dyn Store, to: &dyn Store, row: RunRow) -> Result<bool> {
    let there = to.run(&Scope::org(&row.run.org), &row.run.run_id).await?;
    if there.is_some_and(|there| there == row) {
        return Ok(false);
    }
    let run = row.run.clone();
    to.apply(vec![Change::StartRun(Box::new(start_of(&row)))]).await?;
    copy_steps(from, to, &run).await?;
    let activity = RunStart { run: run.clone(), at_ms: row.seen_ms, ..RunStart::default() };
    let mut last = vec![Change::StartRun(Box::new(activity))];
    if let (Some(at_ms), Some(outcome)) = (row.finished_ms, row.outcome) {
        last.push(Change::FinishRun { run: run.clone(), at_ms, outcome });
    }
    last.push(Change::SetVersion { run, version: row.version });
    to.apply(last).await?;
    Ok(true)
}

/// Copies all steps of a run and returns their number.
async fn copy_steps(from: &dyn Store, to: &dyn Store, run: &RunKey) -> Result<u64> {
    let (mut from_index, mut count) = (0, 0);
    loop {
        let steps = from.steps(run, from_index, PAGE_STEPS).await?;
        let Some(last) = steps.last() else { return Ok(count) };
        let (end, is_last) = (last.step_index, steps.len() < PAGE_STEPS as usize);
        count += steps.len() as u64;
        to.apply(steps.into_iter().map(|step| Change::PutStep(Arc::new(step))).collect()).await?;
        match end.checked_add(1) {
            Some(next) if !is_last => from_index = next,
            Some(_) | None => return Ok(count),
        }
    }
}

/// Merges queued runs into a store without deleting anything there and returns the number of steps. Idempotent.
pub(crate) async fn drain_into(from: &Arc<dyn Store>, to: &Arc<dyn Store>) -> Result<u64> {
    let mut steps = 0;
    let mut pages = Pages::new(Arc::clone(from));
    while let Some(page) = pages.next().await? {
        for row in page {
            to.apply(vec![Change::StartRun(Box::new(start_of(&row)))]).await?;
            steps += copy_steps(&**from, &**to, &row.run).await?;
            if let (Some(at_ms), Some(outcome)) = (row.finished_ms, row.outcome) {
                to.apply(vec![Change::FinishRun { run: row.run, at_ms, outcome }]).await?;
            }
        }
    }
    copy_conversations(&**from, &**to).await?;
    for (name, value) in from.settings().await? {
        to.apply(vec![Change::PutSetting { name, value }]).await?;
    }
    Ok(steps)
}

fn start_of(row: &RunRow) -> RunStart {
    let row = row.clone();
    RunStart {
        run: row.run,
        project: row.project,
        at_ms: row.started_ms,
        agent_name: row.agent_name,
        task: row.task,
        model: row.model,
        framework: row.framework,
        codebase: row.codebase,
        task_profile: row.task_profile,
        parent: row.parent,
        key_name: row.key_name,
        metadata: row.metadata,
    }
}

/// Deletes the runs of the target that the source no longer has.
async fn remove_deleted(from: &Arc<dyn Store>, to: &Arc<dyn Store>) -> Result<()> {
    let mut pages = Pages::new(Arc::clone(to));
    let mut gone: BTreeSet<RunKey> = BTreeSet::new();
    while let Some(page) = pages.next().await? {
        for run in page {
            if from.run(&Scope::org(&run.run.org), &run.run.run_id).await?.is_none() {
                gone.insert(run.run);
            }
        }
    }
    for run in gone {
        to.apply(vec![Change::DeleteRun(run)]).await?;
    }
    Ok(())
}

async fn copy_conversations(from: &dyn Store, to: &dyn Store) -> Result<()> {
    let mut after = None;
    loop {
        let rows = from.conversations(after.as_ref(), PAGE_RUNS).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Some(last.run.clone());
        let changes = rows.into_iter().map(|row| Change::PutConversation(Box::new(row))).collect();
        to.apply(changes).await?;
    }
}

/// Copies patterns and deletions of patterns.
async fn copy_patterns(from: &dyn Store, to: &dyn Store) -> Result<()> {
    let mut version = 0;
    loop {
        let changes = from.pattern_changes(version, PAGE_PATTERNS).await?;
        let Some((last, _)) = changes.last() else { return Ok(()) };
        version = *last;
        let copied = changes.into_iter().map(|(_, change)| match change {
            PatternChange::Put(row) => Change::PutPattern(row),
            PatternChange::Gone { org, tier, pattern_id } => {
                Change::DeletePattern { org, tier, pattern_id }
            }
        });
        to.apply(copied.collect()).await?;
    }
}

/// Replaces the undelivered operator messages of the target.
async fn copy_operator_messages(from: &dyn Store, to: &dyn Store) -> Result<()> {
    let mut changes = vec![Change::ExpireOperatorMessages { before_ms: i64::MAX }];
    for run in from.runs_with_messages(i64::MIN).await? {
        let words = from.operator_messages(&run).await?.into_iter();
        changes.extend(words.map(|row| Change::PutOperatorMessage(Box::new(row))));
    }
    to.apply(changes).await.map(drop)
}

/// Copies the small tables. Usage comes last because copying steps has counted them as usage.
async fn copy_rest(from: &dyn Store, to: &dyn Store) -> Result<()> {
    let unlimited = Scope::default();
    let mut changes: Vec<Change> = Vec::new();
    changes.extend(from.keys().await?.into_iter().map(|row| Change::PutKey(Box::new(row))));
    let profiles = from.profiles(&unlimited).await?;
    changes.extend(profiles.into_iter().map(|row| Change::PutProfile(Box::new(row))));
    for (name, value) in from.settings().await? {
        changes.push(Change::PutSetting { name, value });
    }
    for org in from.orgs().await? {
        for codebase in from.codebases(&Scope::org(&org)).await? {
            let findings = from.findings(&org, &codebase).await?;
            changes.extend(findings.into_iter().map(|row| Change::PutFinding(Box::new(row))));
        }
        for day in from.usage(&org, 0).await? {
            changes.push(Change::SetUsage { org: org.clone(), day });
        }
    }
    for some in changes.chunks(PAGE_STEPS as usize) {
        to.apply(some.to_vec()).await?;
    }
    Ok(())
}
