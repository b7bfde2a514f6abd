//! Batched writes of imported runs: many runs per transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use rb_store::{Change, RunKey, Store, StoreError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ImportOutcome, ImportedRun, plan};

/// Changes per transaction.
const BATCH_CHANGES: usize = 2_000;

/// Writes imported runs. Runs after the last `flush` are not written.
pub struct ImportWriter {
    store: Arc<dyn Store>,
    changes: Vec<Change>,
    /// Runs of `changes`.
    pending: BTreeSet<RunKey>,
    pub summary: ImportSummary,
}

impl ImportWriter {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            changes: Vec::new(),
            pending: BTreeSet::new(),
            summary: ImportSummary::default(),
        }
    }

    /// Adds a run; `None` counts a run without steps.
    pub async fn add(&mut self, run: Option<ImportedRun>) -> Result<(), StoreError> {
        let Some(run) = run else {
            self.summary.empty_runs += 1;
            return Ok(());
        };
        // `plan` compares with the store.
        if self.pending.iter().any(|pending| run.may_share_id(pending)) {
            self.flush().await?;
        }
        let (steps, has_fired) = (run.step_count(), run.fired().next().is_some());
        let planned = plan(&*self.store, run).await?;
        self.summary.add(planned.outcome, steps, has_fired);
        self.changes.extend(planned.changes);
        self.pending.insert(planned.run);
        if self.changes.len() >= BATCH_CHANGES {
            self.flush().await?;
        }
        Ok(())
    }

    /// Writes all added runs.
    pub async fn flush(&mut self) -> Result<(), StoreError> {
        let changes = std::mem::take(&mut self.changes);
        self.pending.clear();
        if !changes.is_empty() {
            self.store.apply(changes).await?;
        }
        Ok(())
    }
}

/// Counts of imported runs by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ImportSummary {
    pub runs: u64,
    pub steps: u64,
    /// Runs with a fired monitor.
    pub fired_runs: u64,
    pub new_runs: u64,
    /// Stored runs whose steps changed.
    pub grown_runs: u64,
    /// New and changed steps of those runs.
    pub grown_steps: u64,
    pub same_runs: u64,
    /// Runs without steps, which are not stored.
    pub empty_runs: u64,
}

impl ImportSummary {
    pub(crate) fn add(&mut self, outcome: ImportOutcome, steps: usize, has_fired: bool) {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.runs += 1;
        self.steps += count(steps);
        self.fired_runs += u64::from(has_fired);
        match outcome {
            ImportOutcome::New => self.new_runs += 1,
            ImportOutcome::Updated { steps } => {
                self.grown_runs += 1;
                self.grown_steps += count(steps);
            }
            ImportOutcome::Unchanged => self.same_runs += 1,
        }
    }

    /// Sum of two summaries.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            steps: self.steps + other.steps,
            fired_runs: self.fired_runs + other.fired_runs,
            new_runs: self.new_runs + other.new_runs,
            grown_runs: self.grown_runs + other.grown_runs,
            grown_steps: self.grown_steps + other.grown_steps,
            same_runs: self.same_runs + other.same_runs,
            empty_runs: self.empty_runs + other.empty_runs,
        }
    }
}
