//! Difference between an imported run and the store.

use std::sync::Arc;

use rb_store::{Change, RunKey, RunRow, Scope, StepRow, Store, StoreError};
use serde_json::Value;

use super::{IMPORTED, ImportedRun, identity};
use crate::clock::now_ms;
use crate::runs::{is_same_step, stored_steps};

/// Tolerance for numbers that went through the store.
const TOLERANCE: f64 = 1e-9;

/// Outcome of the import of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    New,
    /// The run was stored before; `steps` are new or changed.
    Updated {
        steps: usize,
    },
    Unchanged,
}

/// Changes that import one run.
#[derive(Debug)]
pub struct ImportPlan {
    pub run: RunKey,
    pub outcome: ImportOutcome,
    pub changes: Vec<Change>,
    /// Version of the run that the changes apply to.
    pub version: u64,
    /// Steps that the store has, in order.
    pub stored: Vec<StepRow>,
}

/// Compares a run with the store.
pub async fn plan(store: &dyn Store, mut imported: ImportedRun) -> Result<ImportPlan, StoreError> {
    let found = find(store, &mut imported).await?;
    imported.set_default_time(found.as_ref().map_or_else(now_ms, |row| row.started_ms));
    let Some(row) = found else {
        let run = imported.start.run.clone();
        let (outcome, changes) = (ImportOutcome::New, imported.insert_changes());
        return Ok(ImportPlan { run, outcome, changes, version: 0, stored: Vec::new() });
    };
    let stored = stored_steps(store, &row.run).await?;
    if stored.len() > imported.steps.len() {
        let steps = imported.steps.len();
        let mut changes = vec![Change::DeleteRun(row.run.clone())];
        changes.extend(imported.insert_changes());
        let outcome = ImportOutcome::Updated { steps };
        return Ok(ImportPlan { run: row.run, outcome, changes, version: row.version, stored });
    }
    Ok(imported.diff_changes(row, stored))
}

/// Finds the row of an earlier import of the run. If another run has its id, the run gets an id with its fingerprint.
async fn find(store: &dyn Store, imported: &mut ImportedRun) -> Result<Option<RunRow>, StoreError> {
    let run = &imported.start.run;
    let scope = Scope::org(&run.org);
    let qualified_id = identity::qualified_id(&run.run_id, &imported.fingerprint);
    let is_same = |row: &RunRow| {
        let known = row.metadata.get(IMPORTED).and_then(|it| it.get("fingerprint"));
        known.and_then(Value::as_str) == Some(&imported.fingerprint)
            && row.project == imported.start.project
    };
    // Only an earlier import of the same run has the qualified id.
    let qualified = store.run(&scope, &qualified_id).await?;
    let row = match qualified {
        Some(row) => Some(row),
        None => match store.run(&scope, &run.run_id).await? {
            Some(row) if !is_same(&row) => {
                imported.rename(&qualified_id);
                return Ok(None);
            }
            row => row,
        },
    };
    if let Some(row) = &row {
        imported.rename(&row.run.run_id);
    }
    Ok(row)
}

/// Number of stored steps of an imported run; 0 for an unknown or live run.
pub async fn imported_step_count(store: &dyn Store, run: &RunKey) -> Result<u32, StoreError> {
    let row = store.run(&Scope::org(&run.org), &run.run_id).await?;
    let imported = row.filter(|row| row.metadata.contains_key(IMPORTED));
    Ok(imported.map_or(0, |row| u32::try_from(row.step_count).unwrap_or(u32::MAX)))
}

impl ImportedRun {
    fn rename(&mut self, run_id: &str) {
        run_id.clone_into(&mut self.start.run.run_id);
        for step in &mut self.steps {
            run_id.clone_into(&mut step.run.run_id);
        }
    }

    /// Sets the times of a run without times.
    fn set_default_time(&mut self, at_ms: i64) {
        if self.is_timeless {
            self.start.at_ms = at_ms;
            self.steps.iter_mut().for_each(|step| step.at_ms = at_ms);
            if let Some((ended_ms, _)) = &mut self.end {
                *ended_ms = at_ms;
            }
        }
    }

    /// Changes that insert the whole run.
    fn insert_changes(self) -> Vec<Change> {
        let run = self.start.run.clone();
        let mut changes = vec![Change::StartRun(Box::new(self.start))];
        changes.extend(self.steps.into_iter().map(|step| Change::PutStep(Arc::new(step))));
        changes.extend(self.end.map(|(at_ms, outcome)| Change::FinishRun { run, at_ms, outcome }));
        changes
    }

    /// Changes that update the stored run.
    fn diff_changes(self, row: RunRow, stored: Vec<StepRow>) -> ImportPlan {
        let mut changes = Vec::new();
        if !self.start_matches(&row) {
            changes.push(Change::StartRun(Box::new(self.start)));
        }
        let mut known = stored.iter().peekable();
        let mut steps = 0;
        for step in self.steps {
            let known = known.next_if(|known| known.step_index == step.step_index);
            if !known.is_some_and(|known| is_same_row(known, &step)) {
                steps += 1;
                changes.push(Change::PutStep(Arc::new(step)));
            }
        }
        if let Some((at_ms, outcome)) = self.end
            && row.outcome.as_deref() != Some(&outcome)
        {
            changes.push(Change::FinishRun { run: row.run.clone(), at_ms, outcome });
        }
        let outcome = if changes.is_empty() {
            ImportOutcome::Unchanged
        } else {
            ImportOutcome::Updated { steps }
        };
        ImportPlan { run: row.run, outcome, changes, version: row.version, stored }
    }

    /// Returns `true` if the row has the start fields of the run.
    fn start_matches(&self, row: &RunRow) -> bool {
        let start = &self.start;
        let texts = [
            (&start.agent_name, &row.agent_name),
            (&start.task, &row.task),
            (&start.model, &row.model),
            (&start.framework, &row.framework),
            (&start.parent, &row.parent),
            (&start.project, &row.project),
        ];
        texts.iter().all(|(new, old)| new.is_empty() || new == old)
            && start.metadata.iter().all(|(key, value)| row.metadata.get(key) == Some(value))
    }
}

/// Compares two rows including scores and cost.
fn is_same_row(a: &StepRow, b: &StepRow) -> bool {
    let is_close = |a: f64, b: f64| (a - b).abs() < TOLERANCE;
    is_same_step(a, b)
        && (a.at_ms, &a.model, a.tokens, &a.fired) == (b.at_ms, &b.model, b.tokens, &b.fired)
        && is_close(a.total_score, b.total_score)
        && is_close(a.cost_usd, b.cost_usd)
}
