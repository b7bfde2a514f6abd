//! Runs with steps as coding agents make them, written into a store through its trait, many at once.

use std::sync::Arc;

use anyhow::Result;
use rb_engine::monitors::ALL;
use rb_store::{Change, RunKey, RunStart, Scores, StepRow, Store, Tokens};
use tokio::task::JoinSet;

/// Steps of a run; a few runs are long.
const STEPS_A_RUN: u32 = 40;
const STEPS_LONG: u32 = 2_000;
const LONG_EVERY: u64 = 500;
const STEPS_A_CALL: usize = 1_000;
/// Writers that share commits.
const SIDE_BY_SIDE: usize = 8;
/// The runs began over this time.
pub(super) const SPAN_MS: i64 = 60 * 86_400_000;

/// What was filled in so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Stored {
    pub(super) runs: u64,
    pub(super) steps: u64,
}

impl Stored {
    /// Adds runs until there are as many steps, and tells now and then how many there are.
    pub(super) async fn grow(
        &mut self,
        store: &Arc<dyn Store>,
        steps_wanted: u64,
        now_ms: i64,
        mut told: impl FnMut(Stored),
    ) -> Result<()> {
        let mut writing = JoinSet::new();
        let mut changes = Vec::with_capacity(STEPS_A_CALL + 2);
        while self.steps < steps_wanted {
            // Whatever the size, the newest run begins now and the oldest two months ago.
            let share = (self.runs * 7_919) % 100_000;
            let at_ms = now_ms - SPAN_MS + SPAN_MS / 100_000 * i64::try_from(share)?;
            self.steps += u64::from(put_run(&mut changes, self.runs, at_ms));
            self.runs += 1;
            if changes.len() >= STEPS_A_CALL {
                let (store, some) = (Arc::clone(store), std::mem::take(&mut changes));
                writing.spawn(async move { store.apply(some).await });
            }
            if writing.len() >= SIDE_BY_SIDE
                && let Some(done) = writing.join_next().await
            {
                done??;
                told(*self);
            }
        }
        store.apply(changes).await?;
        while let Some(done) = writing.join_next().await {
            done??;
        }
        Ok(())
    }
}

/// One run, from its beginning to its end; says how many steps it has.
fn put_run(changes: &mut Vec<Change>, number: u64, at_ms: i64) -> u32 {
    let run = RunKey { org: "default".to_owned(), run_id: format!("run-{number:07}") };
    changes.push(Change::StartRun(Box::new(start(&run, number, at_ms))));
    let count = if number.is_multiple_of(LONG_EVERY) { STEPS_LONG } else { STEPS_A_RUN };
    for index in 0..count {
        changes.push(Change::PutStep(Arc::new(step(&run, number, index, at_ms))));
    }
    let outcome = if number.is_multiple_of(3) { "failure" } else { "success" };
    changes.push(Change::FinishRun { run, at_ms: at_ms + 60_000, outcome: outcome.to_owned() });
    count
}

fn start(run: &RunKey, number: u64, at_ms: i64) -> RunStart {
    RunStart {
        run: run.clone(),
        project: "default".to_owned(),
        at_ms,
        agent_name: format!("agent-{}", number % 40),
        task: format!(
            "Repair the parser of module {number} so that nested lists are read as they were written."
        ),
        model: format!("model-{}", number % 7),
        framework: "langchain".to_owned(),
        ..RunStart::default()
    }
}

/// A step as a coding agent makes it: a short thought, a call, half a kilobyte of output.
fn step(run: &RunKey, number: u64, index: u32, at_ms: i64) -> StepRow {
    let height = |place: usize| {
        let mixed = (number * 31 + u64::from(index) * 17 + place as u64 * 7) % 100;
        u32::try_from(mixed).map_or(0.0, f64::from) / 130.0
    };
    let scores: Scores =
        ALL.iter().enumerate().map(|(at, spec)| (spec.id.into(), height(at))).collect();
    let fired = scores.iter().filter(|(_, score)| **score >= 0.72).map(|(id, _)| id.to_string());
    let fired: Vec<String> = fired.take(1).collect();
    let is_told = index == 0 || !fired.is_empty();
    StepRow {
        run: run.clone(),
        project: "default".to_owned(),
        step_index: index,
        at_ms: at_ms + i64::from(index) * 1_000,
        thought:
            "The lists are read by the same function as the rows, so I look at how it ends them."
                .to_owned(),
        action: Some("read_file".to_owned()),
        action_input: Some(format!("{{\"path\": \"src/parser/module_{index}.rs\"}}")),
        input_is_structured: true,
        observation: Some("pub fn list(input: &str) -> Result<List, Error> {\n".repeat(10)),
        model: "model".to_owned(),
        tokens: Tokens {
            total: 2_200,
            input: 2_000,
            output: 200,
            cache_read: 1_500,
            cache_write: 0,
        },
        cost_usd: 0.002,
        total_score: height(3),
        fired,
        scores,
        injections: if is_told {
            vec![format!("[e1:pattern-{}]", number % 50)]
        } else {
            Vec::new()
        },
        ..StepRow::default()
    }
}
