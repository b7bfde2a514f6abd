//! End and deletion of runs.

use std::sync::Arc;

use super::fixtures::{ALL, T0, a, begins, ends, key, puts, quiet, start, step};
use super::{Checked, holds, put, same, there};
use rb_store::{Change, RunFilter, Store};

type SharedStore = Arc<dyn Store>;

pub(super) async fn a_finished_run_has_an_outcome_and_a_time(store: SharedStore) -> Checked {
    put(&store, begins(start("a", "r", T0))).await?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    same("before it ends", (run.finished_ms, run.outcome), (None, None))?;
    same("affected rows", put(&store, ends("a", "r", T0 + 9, "success")).await?, 1)?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    let ended = (run.finished_ms, run.outcome.as_deref(), run.seen_ms);
    same("after it has", ended, (Some(T0 + 9), Some("success"), T0 + 9))
}

pub(super) async fn the_last_outcome_and_the_first_end_time_are_kept(
    store: SharedStore,
) -> Checked {
    put(&store, begins(start("a", "r", T0))).await?;
    put(&store, ends("a", "r", T0 + 9, "success")).await?;
    put(&store, ends("a", "r", T0 + 20, "failure: ValueError")).await?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    let ended = (run.finished_ms, run.outcome.as_deref());
    same("the end", ended, (Some(T0 + 9), Some("failure: ValueError")))?;
    put(&store, begins(start("a", "r", T0 + 30))).await?;
    put(&store, puts(quiet("a", "r", 0))).await?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    holds("it stays finished after another start", run.outcome.is_some() && run.step_count == 1)
}

pub(super) async fn finishing_an_unknown_run_creates_it(store: SharedStore) -> Checked {
    same("affected rows", put(&store, ends("a", "r", T0, "completed")).await?, 1)?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    let times = (run.started_ms, run.finished_ms, run.outcome.as_deref());
    same("times", times, (T0, Some(T0), Some("completed")))
}

pub(super) async fn deleting_a_run_deletes_its_steps(store: SharedStore) -> Checked {
    for run_id in ["r", "stays"] {
        put(&store, begins(start("a", run_id, T0))).await?;
        put(&store, puts(step("a", run_id, 0))).await?;
    }
    same("affected rows", put(&store, Change::DeleteRun(key("a", "r"))).await?, 1)?;
    same("the run", store.run(&a(), "r").await?, None)?;
    same("its steps", store.steps(&key("a", "r"), 0, ALL).await?, vec![])?;
    let fired =
        RunFilter { fired: Some("repeat".to_owned()), count_max: 9, ..RunFilter::default() };
    for filter in [fired, RunFilter { count_max: 9, ..RunFilter::default() }] {
        let runs = store.runs(&a(), &filter).await?;
        let left: Vec<&str> = runs.iter().map(|run| run.run.run_id.as_str()).collect();
        same("runs left", left, vec!["stays"])?;
    }
    same("steps left", store.steps(&key("a", "stays"), 0, ALL).await?.len(), 1)?;
    same("touched again", put(&store, Change::DeleteRun(key("a", "r"))).await?, 0)
}

pub(super) async fn a_deleted_run_id_can_be_used_again(store: SharedStore) -> Checked {
    put(&store, puts(step("a", "r", 0))).await?;
    put(&store, Change::DeleteRun(key("a", "r"))).await?;
    put(&store, puts(step("a", "r", 1))).await?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    same("its steps", run.step_count, 1)?;
    same("start time", run.started_ms, T0 + 1_000)?;
    let steps = store.steps(&key("a", "r"), 0, ALL).await?;
    same("indices", steps.iter().map(|step| step.step_index).collect::<Vec<_>>(), vec![1])
}

pub(super) async fn inactive_runs_expire_oldest_first_in_batches(store: SharedStore) -> Checked {
    for (org, run_id, active_ms) in
        [("a", "third", 30), ("b", "first", 10), ("a", "kept", 100), ("a", "second", 20)]
    {
        put(&store, begins(start(org, run_id, T0))).await?;
        let active = rb_store::StepRow { at_ms: T0 + active_ms, ..quiet(org, run_id, 0) };
        put(&store, puts(active)).await?;
    }
    let expire = Change::ExpireRuns { before_ms: T0 + 100, runs_max: 2 };
    let unlimited = rb_store::Scope::default();
    let everything = RunFilter { count_max: ALL, ..RunFilter::default() };
    for (touched, left) in [(2, vec!["kept", "third"]), (1, vec!["kept"]), (0, vec!["kept"])] {
        same("runs expired", put(&store, expire.clone()).await?, touched)?;
        let mut runs = store.runs(&unlimited, &everything).await?;
        runs.sort_by(|one, other| one.run.cmp(&other.run));
        let found: Vec<&str> = runs.iter().map(|run| run.run.run_id.as_str()).collect();
        same("runs left", found, left)?;
    }
    same("steps of an expired run", store.steps(&key("a", "third"), 0, ALL).await?, vec![])
}
