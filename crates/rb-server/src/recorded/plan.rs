//! What is left to write of a recorded run, beside what the store has of it.

use std::sync::Arc;

use rb_store::{Change, RunKey, RunRow, Scope, StepRow, Store, StoreError};
use serde_json::Value;

use super::{IMPORTED, Recorded, identity};
use crate::clock::now_ms;
use crate::live::is_same_step;

/// Steps read from the store at once.
const PAGE_STEPS: u32 = 500;
/// Amounts that differ by less are the same, written and read.
const CLOSE: f64 = 1e-9;

/// What became of a recorded run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It was not there.
    New,
    /// It was there, and so many steps are new or have changed.
    Grown { steps: usize },
    /// It was there as it is.
    Same,
}

/// What to change, and what that comes to.
#[derive(Debug)]
pub struct Planned {
    pub run: RunKey,
    pub kept: Kept,
    pub changes: Vec<Change>,
}

/// Compares a run with the store.
pub async fn plan(store: &dyn Store, mut recorded: Recorded) -> Result<Planned, StoreError> {
    let found = find(store, &mut recorded).await?;
    recorded.set_clock(found.as_ref().map_or_else(now_ms, |row| row.started_ms));
    let Some(row) = found else {
        let run = recorded.start.run.clone();
        return Ok(Planned { run, kept: Kept::New, changes: recorded.whole() });
    };
    let stored = stored_steps(store, &row.run).await?;
    if stored.len() > recorded.steps.len() {
        let steps = recorded.steps.len();
        let mut changes = vec![Change::DeleteRun(row.run.clone())];
        changes.extend(recorded.whole());
        return Ok(Planned { run: row.run, kept: Kept::Grown { steps }, changes });
    }
    Ok(recorded.beside(row, &stored))
}

/// The row of the same run, if it was taken before. A run that has the name and is another one leaves it: this one is
/// called by its full name then.
async fn find(store: &dyn Store, recorded: &mut Recorded) -> Result<Option<RunRow>, StoreError> {
    let run = &recorded.start.run;
    let scope = Scope::org(&run.org);
    let full_name = identity::full_name(&run.run_id, &recorded.fingerprint);
    let is_same = |row: &RunRow| {
        let known = row.metadata.get(IMPORTED).and_then(|it| it.get("fingerprint"));
        known.and_then(Value::as_str) == Some(&recorded.fingerprint)
            && row.project == recorded.start.project
    };
    // Whoever has the full name has taken it from the same beginning.
    let namesake = store.run(&scope, &full_name).await?;
    let row = match namesake {
        Some(row) => Some(row),
        None => match store.run(&scope, &run.run_id).await? {
            Some(row) if !is_same(&row) => {
                recorded.rename(&full_name);
                return Ok(None);
            }
            row => row,
        },
    };
    if let Some(row) = &row {
        recorded.rename(&row.run.run_id);
    }
    Ok(row)
}

/// How many steps are stored of a run that was taken before; none if it is not there, or was not taken.
pub(crate) async fn taken_steps(store: &dyn Store, run: &RunKey) -> Result<u32, StoreError> {
    let row = store.run(&Scope::org(&run.org), &run.run_id).await?;
    let taken = row.filter(|row| row.metadata.contains_key(IMPORTED));
    Ok(taken.map_or(0, |row| u32::try_from(row.step_count).unwrap_or(u32::MAX)))
}

/// All steps of a run.
pub(crate) async fn stored_steps(
    store: &dyn Store,
    run: &RunKey,
) -> Result<Vec<StepRow>, StoreError> {
    let mut all: Vec<StepRow> = Vec::new();
    loop {
        let from = all.last().map_or(0, |step| step.step_index.saturating_add(1));
        let page = store.steps(run, from, PAGE_STEPS).await?;
        let is_last = page.len() < PAGE_STEPS as usize;
        all.extend(page);
        if is_last {
            return Ok(all);
        }
    }
}

impl Recorded {
    fn rename(&mut self, run_id: &str) {
        run_id.clone_into(&mut self.start.run.run_id);
        for step in &mut self.steps {
            run_id.clone_into(&mut step.run.run_id);
        }
    }

    /// A run that tells no times was when it was first heard of.
    fn set_clock(&mut self, at_ms: i64) {
        if self.is_timeless {
            self.start.at_ms = at_ms;
            self.steps.iter_mut().for_each(|step| step.at_ms = at_ms);
            if let Some((ended_ms, _)) = &mut self.end {
                *ended_ms = at_ms;
            }
        }
    }

    /// Everything.
    fn whole(self) -> Vec<Change> {
        let run = self.start.run.clone();
        let mut changes = vec![Change::StartRun(Box::new(self.start))];
        changes.extend(self.steps.into_iter().map(|step| Change::PutStep(Arc::new(step))));
        changes.extend(self.end.map(|(at_ms, outcome)| Change::FinishRun { run, at_ms, outcome }));
        changes
    }

    /// What is not stored yet, or not so.
    fn beside(self, row: RunRow, stored: &[StepRow]) -> Planned {
        let mut changes = Vec::new();
        if !self.is_said(&row) {
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
        let kept = if changes.is_empty() { Kept::Same } else { Kept::Grown { steps } };
        Planned { run: row.run, kept, changes }
    }

    /// Whether the row says what the run says of itself.
    fn is_said(&self, row: &RunRow) -> bool {
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

/// Whether a step is stored as it is, scores and all.
fn is_same_row(a: &StepRow, b: &StepRow) -> bool {
    let is_close = |a: f64, b: f64| (a - b).abs() < CLOSE;
    is_same_step(a, b)
        && (a.at_ms, &a.model, a.tokens, &a.fired) == (b.at_ms, &b.model, b.tokens, &b.fired)
        && is_close(a.total_score, b.total_score)
        && is_close(a.cost_usd, b.cost_usd)
}
