//! Import into a store that is in use.

use std::sync::Arc;

use rb_store::{Change, RunKey, StepRow};

use super::{ImportOutcome, ImportSummary, ImportedRun, plan};
use crate::runs::{MAX_ATTEMPTS, RunError, RunService};

impl RunService {
    /// Updates a recorded run. An imported run is never live, so its steps are compared with the store rather than
    /// with a state in memory.
    pub async fn import(&self, imported: ImportedRun) -> Result<(RunKey, ImportOutcome), RunError> {
        for _ in 0..MAX_ATTEMPTS {
            let planned = plan(&*self.store, imported.clone()).await?;
            if planned.changes.is_empty() {
                return Ok((planned.run, planned.outcome));
            }
            let rows: Vec<Arc<StepRow>> = planned.changes.iter().filter_map(step).collect();
            match self.apply_at(&planned.run, planned.version, planned.changes.into_iter()).await {
                Err(RunError::Conflict { .. }) => continue,
                result => result?,
            }
            self.emit_replaced(rows.iter().map(|row| &**row), &planned.stored);
            return Ok((planned.run, planned.outcome));
        }
        Err(RunError::Conflict { attempts: MAX_ATTEMPTS })
    }

    /// Updates recorded runs; `None` is a run without steps.
    pub async fn import_all(
        &self,
        runs: impl IntoIterator<Item = Option<ImportedRun>, IntoIter: Send>,
    ) -> Result<ImportSummary, RunError> {
        let mut summary = ImportSummary::default();
        for run in runs {
            let Some(run) = run else {
                summary.empty_runs += 1;
                continue;
            };
            let (steps, has_fired) = (run.step_count(), run.fired().next().is_some());
            let (_, outcome) = self.import(run).await?;
            summary.add(outcome, steps, has_fired);
        }
        Ok(summary)
    }
}

fn step(change: &Change) -> Option<Arc<StepRow>> {
    if let Change::PutStep(row) = change { Some(Arc::clone(row)) } else { None }
}
