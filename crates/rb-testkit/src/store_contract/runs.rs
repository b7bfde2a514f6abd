//! Start and description of runs.

use std::sync::Arc;

use serde_json::json;

use super::fixtures::{ALL, T0, a, begins, ends, key, object, puts, quiet, start};
use super::{Checked, holds, put, same, there};
use rb_store::{Change, RunRow, RunStart, StepRow, Store, StoreError};

type SharedStore = Arc<dyn Store>;

pub(super) async fn a_started_run_is_read_back(store: SharedStore) -> Checked {
    let expected_start = start("a", "r/1:x@y", T0);
    same("affected rows", put(&store, begins(expected_start.clone())).await?, 1)?;
    let expected = RunRow {
        run: expected_start.run,
        version: 1,
        project: expected_start.project,
        agent_name: expected_start.agent_name,
        task: expected_start.task,
        model: expected_start.model,
        framework: expected_start.framework,
        codebase: expected_start.codebase,
        task_profile: expected_start.task_profile,
        parent: expected_start.parent,
        key_name: expected_start.key_name,
        metadata: expected_start.metadata,
        started_ms: T0,
        seen_ms: T0,
        ..RunRow::default()
    };
    same("the run", store.run(&a(), "r/1:x@y").await?, Some(expected))
}

pub(super) async fn a_second_start_keeps_the_fields_it_leaves_empty(store: SharedStore) -> Checked {
    put(&store, begins(start("a", "r", T0))).await?;
    let before = there("the run", store.run(&a(), "r").await?)?;
    let silent = RunStart { run: key("a", "r"), at_ms: T0 + 50, ..RunStart::default() };
    put(&store, begins(silent)).await?;
    let mut expected = RunRow { seen_ms: T0 + 50, version: 2, ..before };
    same("after an empty start", store.run(&a(), "r").await?, Some(expected.clone()))?;

    let more = RunStart {
        run: key("a", "r"),
        at_ms: T0 - 50,
        project: "other".to_owned(),
        key_name: "another".to_owned(),
        model: "model-z".to_owned(),
        task: "Repair the lexer".to_owned(),
        ..RunStart::default()
    };
    put(&store, begins(more)).await?;
    expected.version = 3;
    expected.project = String::from("other");
    expected.model = String::from("model-z");
    expected.task = String::from("Repair the lexer");
    same("after a partial start", store.run(&a(), "r").await?, Some(expected))?;

    put(&store, puts(quiet("a", "begun by a step", 3))).await?;
    put(&store, begins(start("a", "begun by a step", T0 + 9_000))).await?;
    let run = there("the run", store.run(&a(), "begun by a step").await?)?;
    same("the time of its first step", run.started_ms, T0 + 3_000)?;
    same("the agent name", run.agent_name.as_str(), "fixer")?;
    same("its step", run.step_count, 1)
}

pub(super) async fn metadata_is_merged_key_by_key(store: SharedStore) -> Checked {
    let start_with = |metadata| RunStart { metadata: object(metadata), ..start("a", "r", T0) };
    put(&store, begins(start_with(json!({ "kept": 1, "changed": { "deep": 1 } })))).await?;
    put(&store, begins(start_with(json!({ "changed": { "other": 2 }, "new": [true] })))).await?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    let expected = json!({ "kept": 1, "changed": { "other": 2 }, "new": [true] });
    same("metadata", run.metadata, object(expected))
}

pub(super) async fn experiment_and_arm_keep_their_first_value(store: SharedStore) -> Checked {
    let start_with = |metadata| RunStart { metadata: object(metadata), ..start("a", "r", T0) };
    put(&store, begins(start_with(json!({ "experiment_id": "", "arm": null })))).await?;
    same("experiments before it is set", store.experiments(&a()).await?, vec![])?;
    put(&store, begins(start_with(json!({ "experiment_id": "x", "arm": "on" })))).await?;
    put(&store, begins(start_with(json!({ "experiment_id": "y", "arm": "off", "n": 1 })))).await?;
    put(&store, begins(start_with(json!({ "experiment_id": null, "arm": "" })))).await?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    let expected = json!({ "experiment_id": "x", "arm": "on", "n": 1 });
    same("metadata", run.metadata, object(expected))?;
    same("experiments", store.experiments(&a()).await?, vec![("x".to_owned(), 1)])?;
    let runs = store.experiment(&a(), "x").await?;
    same("arm", runs.iter().map(|run| run.arm.as_str()).collect::<Vec<_>>(), vec!["on"])
}

pub(super) async fn an_unknown_run_is_not_found(store: SharedStore) -> Checked {
    put(&store, begins(start("a", "r", T0))).await?;
    same("a run", store.run(&a(), "R").await?, None)?;
    same("a run with an empty id", store.run(&a(), "").await?, None)?;
    holds("no steps", store.steps(&key("a", "R"), 0, 10).await?.is_empty())?;
    holds("no experiment", store.experiment(&a(), "x").await?.is_empty())?;
    holds("not even the one without a name", store.experiment(&a(), "").await?.is_empty())
}

pub(super) async fn every_change_of_a_run_increases_its_version(store: SharedStore) -> Checked {
    let changes = [
        puts(quiet("a", "r", 0)),
        puts(quiet("a", "r", 0)),
        begins(start("a", "r", T0)),
        ends("a", "r", T0, "success"),
        puts(quiet("a", "r", 7)),
    ];
    for (version, change) in (1..).zip(&changes) {
        put(&store, change.clone()).await?;
        let run = there("the run", store.run(&a(), "r").await?)?;
        same("its version", run.version, version)?;
    }
    store.apply(changes.to_vec()).await?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    same("its version after a call of five", run.version, 10)?;
    put(&store, ends("a", "ended only", T0, "success")).await?;
    let run = there("the run", store.run(&a(), "ended only").await?)?;
    same("the version of a run that only ended", run.version, 1)
}

pub(super) async fn amending_a_step_keeps_the_version_of_its_run(store: SharedStore) -> Checked {
    put(&store, puts(quiet("a", "r", 0))).await?;
    let answered = StepRow { cost_usd: 0.25, total_score: 0.5, ..quiet("a", "r", 0) };
    put(&store, Change::AmendStep(Arc::new(answered))).await?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    same("its version and cost", (run.version, run.cost_usd), (1, 0.25))?;
    let steps = store.steps(&key("a", "r"), 0, ALL).await?;
    same("its step", steps.iter().map(|step| step.cost_usd).collect(), vec![0.25])?;
    put(&store, Change::AmendStep(Arc::new(quiet("a", "s", 4)))).await?;
    let run = there("a run created by an amended step", store.run(&a(), "s").await?)?;
    same("its version and steps", (run.version, run.step_count), (1, 1))?;
    super::recount(store, &[]).await
}

pub(super) async fn a_guarded_call_requires_the_expected_version(store: SharedStore) -> Checked {
    let guarded = |version, index| {
        vec![Change::ExpectVersion { run: key("a", "r"), version }, puts(quiet("a", "r", index))]
    };
    let moved = |outcome| matches!(outcome, Err(StoreError::VersionConflict));
    holds("an unknown run has no version", moved(store.apply(guarded(1, 0)).await))?;
    same("no run was made", store.run(&a(), "r").await?, None)?;
    same("affected rows", store.apply(guarded(0, 0)).await?, vec![0, 1])?;
    holds("too old", moved(store.apply(guarded(0, 1)).await))?;
    holds("too new", moved(store.apply(guarded(2, 1)).await))?;
    let mut late = guarded(7, 1);
    late.insert(0, puts(quiet("a", "r", 9)));
    holds("nothing before the guard is done either", moved(store.apply(late).await))?;
    same("steps", store.steps(&key("a", "r"), 0, 10).await?.len(), 1)?;
    // Of several callers with the same version, only one succeeds.
    let callers: Vec<_> = (0..16)
        .map(|caller| {
            let (store, changes) = (Arc::clone(&store), guarded(1, caller + 1));
            tokio::spawn(async move { store.apply(changes).await.is_ok() })
        })
        .collect();
    let mut made = 0;
    for caller in callers {
        let is_made = caller.await.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        made += u32::from(is_made);
    }
    same("calls that were made", made, 1)?;
    same("steps after it", store.steps(&key("a", "r"), 0, 100).await?.len(), 2)
}
