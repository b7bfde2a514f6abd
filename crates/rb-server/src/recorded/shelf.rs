//! Where recorded runs come together with the store: what is new is written, many runs in one commit.

use std::collections::BTreeSet;
use std::sync::Arc;

use rb_store::{Change, RunKey, Store, StoreError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Kept, Recorded, plan};

/// Changes that are written together.
const CHANGES_AT_ONCE: usize = 2_000;

/// The way into the store. What was not flushed is not written.
pub struct Shelf {
    store: Arc<dyn Store>,
    changes: Vec<Change>,
    /// The runs that these are about.
    waiting: BTreeSet<RunKey>,
    pub tally: Tally,
}

impl Shelf {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, changes: Vec::new(), waiting: BTreeSet::new(), tally: Tally::default() }
    }

    /// Takes a run; `None` is one without steps, which is only counted.
    pub async fn keep(&mut self, run: Option<Recorded>) -> Result<(), StoreError> {
        let Some(run) = run else {
            self.tally.empty_runs += 1;
            return Ok(());
        };
        // What is compared must be stored.
        if self.waiting.iter().any(|waiting| run.may_be(waiting)) {
            self.flush().await?;
        }
        let (steps, has_fired) = (run.step_count(), run.fired().next().is_some());
        let planned = plan(&*self.store, run).await?;
        self.tally.add(planned.kept, steps, has_fired);
        self.changes.extend(planned.changes);
        self.waiting.insert(planned.run);
        if self.changes.len() >= CHANGES_AT_ONCE {
            self.flush().await?;
        }
        Ok(())
    }

    /// Writes what was taken.
    pub async fn flush(&mut self) -> Result<(), StoreError> {
        let changes = std::mem::take(&mut self.changes);
        self.waiting.clear();
        if !changes.is_empty() {
            self.store.apply(changes).await?;
        }
        Ok(())
    }
}

/// What became of recorded runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Tally {
    pub runs: u64,
    pub steps: u64,
    /// Runs in which something fired.
    pub fired_runs: u64,
    pub new_runs: u64,
    /// Runs that were there, with other steps.
    pub grown_runs: u64,
    /// Their steps that are new or have changed.
    pub grown_steps: u64,
    pub same_runs: u64,
    /// Left out, as there is nothing to look at.
    pub empty_runs: u64,
}

impl Tally {
    fn add(&mut self, kept: Kept, steps: usize, has_fired: bool) {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.runs += 1;
        self.steps += count(steps);
        self.fired_runs += u64::from(has_fired);
        match kept {
            Kept::New => self.new_runs += 1,
            Kept::Grown { steps } => {
                self.grown_runs += 1;
                self.grown_steps += count(steps);
            }
            Kept::Same => self.same_runs += 1,
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
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
