//! From one store to another: everything, run by run, as often as it takes.
//!
//! A run that is the same on both sides, its version included, is passed over. So a copy that was interrupted goes on
//! where it was, and the second copy of a store in use brings only what has changed since the first.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::{
    Change, PatternChange, Result, RunAfter, RunFilter, RunKey, RunRow, RunStart, Scope, Store,
    StoreError,
};

/// Runs that are compared at once.
const PAGE_RUNS: u32 = 200;
/// Steps that are read and written at once.
const PAGE_STEPS: u32 = 200;
/// Patterns that are read and written at once.
const PAGE_PATTERNS: u32 = 500;
/// Runs that are copied side by side.
const SIDE_BY_SIDE: usize = 8;

/// How much a store holds, or a copy has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amounts {
    pub runs: u64,
    pub steps: u64,
    pub conversations: u64,
    pub patterns: u64,
    pub findings: u64,
    pub profiles: u64,
    pub keys: u64,
    pub settings: u64,
    /// Days on which an organisation used something.
    pub usage_days: u64,
}

impl Amounts {
    /// Each with its name.
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

/// Copies everything that is not there yet. `told` hears how many runs were looked at and how many were copied.
/// Runs that are in the target and not in the source go: they were deleted meanwhile.
pub async fn copy(
    from: &Arc<dyn Store>,
    to: &Arc<dyn Store>,
    mut told: impl FnMut(u64, u64),
) -> Result<()> {
    let (mut seen, mut copied) = (0, 0);
    let mut pages = Pages::new(Arc::clone(from));
    while let Some(page) = pages.next().await? {
        seen += page.len() as u64;
        copied += copy_page(from, to, page).await?;
        told(seen, copied);
    }
    remove_deleted(from, to).await?;
    copy_conversations(&**from, &**to).await?;
    copy_patterns(&**from, &**to).await?;
    copy_waiting(&**from, &**to).await?;
    copy_rest(&**from, &**to).await
}

/// What a store holds.
pub async fn amounts(store: &Arc<dyn Store>) -> Result<Amounts> {
    let mut amounts = Amounts::default();
    let mut pages = Pages::new(Arc::clone(store));
    while let Some(page) = pages.next().await? {
        amounts.runs += page.len() as u64;
        amounts.steps += page.iter().map(|run| run.step_count).sum::<u64>();
    }
    let mut after = None;
    while let Some(last) = {
        let rows = store.conversations(after.as_ref(), PAGE_RUNS).await?;
        amounts.conversations += rows.len() as u64;
        rows.into_iter().next_back()
    } {
        after = Some(last.run);
    }
    let everybody = Scope::default();
    let mut version = 0;
    while let Some((last, _)) = {
        let changes = store.pattern_changes(version, PAGE_PATTERNS).await?;
        let is_there =
            |(_, change): &&(u64, PatternChange)| matches!(change, PatternChange::Put(_));
        amounts.patterns += changes.iter().filter(is_there).count() as u64;
        changes.into_iter().next_back()
    } {
        version = last;
    }
    amounts.profiles = store.profiles(&everybody).await?.len() as u64;
    amounts.keys = store.keys().await?.len() as u64;
    amounts.settings = store.settings().await?.len() as u64;
    for org in store.orgs().await? {
        amounts.usage_days += store.usage(&org, 0).await?.len() as u64;
        for codebase in store.codebases(&Scope::org(&org)).await? {
            amounts.findings += store.findings(&org, &codebase).await?.len() as u64;
        }
    }
    Ok(amounts)
}

/// All runs of a store, newest first, a page at a time.
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

/// Copies the runs of a page that are not the same, and says how many.
async fn copy_page(from: &Arc<dyn Store>, to: &Arc<dyn Store>, page: Vec<RunRow>) -> Result<u64> {
    let mut copying = JoinSet::new();
    let mut copied = 0;
    for run in page {
        if copying.len() >= SIDE_BY_SIDE
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

/// Copies a run, unless it is there as it is. What it is said to be is written last, so that a run half copied is not
/// taken for a whole one.
async fn copy_run(from: &dyn Store, to: &dyn Store, row: RunRow) -> Result<bool> {
    let there = to.run(&Scope::org(&row.run.org), &row.run.run_id).await?;
    if there.is_some_and(|there| there == row) {
        return Ok(false);
    }
    let run = row.run.clone();
    to.apply(vec![Change::StartRun(Box::new(start_of(&row)))]).await?;
    copy_steps(from, to, &run).await?;
    let heard = RunStart { run: run.clone(), at_ms: row.seen_ms, ..RunStart::default() };
    let mut last = vec![Change::StartRun(Box::new(heard))];
    if let (Some(at_ms), Some(outcome)) = (row.finished_ms, row.outcome) {
        last.push(Change::FinishRun { run: run.clone(), at_ms, outcome });
    }
    last.push(Change::SetVersion { run, version: row.version });
    to.apply(last).await?;
    Ok(true)
}

/// Copies all steps of a run, and says how many.
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

/// Brings what was told about runs into a store that may know more of them: nothing there is taken away. Says how many
/// steps it brought. Done twice it changes nothing more.
pub(crate) async fn bring(from: &Arc<dyn Store>, to: &Arc<dyn Store>) -> Result<u64> {
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

/// Runs that the source had at an earlier copy and has no more.
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

/// Patterns that were deleted go on the other side too.
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

/// Words that nobody has taken along yet. In the target, those that were taken meanwhile go.
async fn copy_waiting(from: &dyn Store, to: &dyn Store) -> Result<()> {
    let mut changes = vec![Change::ExpireWaiting { before_ms: i64::MAX }];
    for run in from.runs_waited_for(i64::MIN).await? {
        let words = from.waiting(&run).await?.into_iter();
        changes.extend(words.map(|row| Change::PutWaiting(Box::new(row))));
    }
    to.apply(changes).await.map(drop)
}

/// What is small: it is copied as a whole. Usage comes last, since the steps were counted on their way.
async fn copy_rest(from: &dyn Store, to: &dyn Store) -> Result<()> {
    let everybody = Scope::default();
    let mut changes: Vec<Change> = Vec::new();
    changes.extend(from.keys().await?.into_iter().map(|row| Change::PutKey(Box::new(row))));
    let profiles = from.profiles(&everybody).await?;
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
