//! Isolation of organisations and projects that use the same ids.

use std::sync::Arc;

use super::fixtures::{
    ALL, T0, a, begins, finding, in_experiment, key, pattern, patterns, profile, project, puts,
    start, step,
};
use super::{Checked, holds, put, same, there};
use rb_store::{Change, RunFilter, RunStart, Scope, StepRow, Store};

type SharedStore = Arc<dyn Store>;

/// Fills the store for one organisation; `mark` is part of every text.
async fn settle(store: &SharedStore, org: &str, mark: &str) -> Checked {
    let own = |mut run: RunStart| {
        run.task = String::from(mark);
        run.codebase = format!("code of {mark}");
        run.framework = String::from(mark);
        run
    };
    let mut e1 = pattern(org, "e1", "p");
    e1.context = mark.to_owned();
    let mut found = finding(org, "shared name", "f", "src/a.rs");
    found.content = mark.to_owned();
    let mut weights = profile(org, "", "w");
    weights.description = mark.to_owned();
    let changes = vec![
        begins(own(start(org, "r", T0))),
        puts(StepRow { thought: mark.to_owned(), ..step(org, "r", 0) }),
        begins(own(in_experiment(start(org, "trial", T0), "x", mark))),
        begins(own(in_experiment(start(org, "own trial", T0), mark, "on"))),
        Change::PutPattern(Box::new(e1)),
        Change::PutFinding(Box::new(found)),
        Change::PutProfile(Box::new(weights)),
    ];
    store.apply(changes).await?;
    Ok(())
}

pub(super) async fn reads_are_limited_to_the_organisation(store: SharedStore) -> Checked {
    settle(&store, "a", "mine").await?;
    settle(&store, "b", "theirs").await?;
    let other = store.apply(vec![puts(step("b", "only theirs", 0))]).await?;
    same("affected rows", other, vec![1])?;
    let everything = RunFilter { count_max: ALL, ..RunFilter::default() };
    let run = there("the run", store.run(&a(), "r").await?)?;
    same("run", run.task.as_str(), "mine")?;
    same("their run", store.run(&a(), "only theirs").await?, None)?;
    for filter in [
        everything.clone(),
        RunFilter { fired: Some("repeat".to_owned()), ..everything.clone() },
        RunFilter { text: Some("r".to_owned()), ..everything.clone() },
        RunFilter { agent_name: Some("fixer".to_owned()), ..everything.clone() },
    ] {
        let runs = store.runs(&a(), &filter).await?;
        holds("some runs", !runs.is_empty())?;
        holds("runs", runs.iter().all(|run| run.run.org == "a" && run.task == "mine"))?;
    }
    let steps = store.steps(&key("a", "r"), 0, ALL).await?;
    same("steps", steps.iter().map(|step| step.thought.as_str()).collect(), vec!["mine"])?;
    same("their steps", store.steps(&key("a", "only theirs"), 0, ALL).await?, vec![])?;
    let health = store.health(&a(), 0).await?;
    same("health", (health.runs, health.steps), (3, 1))?;
    holds("frameworks", !health.by_framework.contains_key("theirs"))?;
    let experiments = store.experiments(&a()).await?;
    same("experiments", experiments, vec![("mine".to_owned(), 1), ("x".to_owned(), 1)])?;
    let trial = store.experiment(&a(), "x").await?;
    same("experiment", trial.iter().map(|run| run.arm.as_str()).collect(), vec!["mine"])?;
    same("their experiment", store.experiment(&a(), "theirs").await?, vec![])?;
    let seen = store.patterns(&a(), &patterns()).await?;
    same("patterns", seen.iter().map(|p| p.context.as_str()).collect(), vec!["mine"])?;
    let findings = store.findings("a", "shared name").await?;
    same("findings", findings.iter().map(|f| f.content.as_str()).collect(), vec!["mine"])?;
    let codebases = store.codebases(&a()).await?;
    same("codebases", codebases, vec!["code of mine".to_owned(), "shared name".to_owned()])?;
    let profiles = store.profiles(&a()).await?;
    same("profiles", profiles.iter().map(|p| p.description.as_str()).collect(), vec!["mine"])?;
    let steps_used: u64 = store.usage("a", 0).await?.iter().map(|day| day.steps).sum();
    same("usage", steps_used, 1)?;

    let unlimited = Scope::org("");
    holds("no run without an organisation", store.runs(&unlimited, &everything).await?.is_empty())?;
    holds(
        "no E1 without an organisation",
        store.patterns(&unlimited, &patterns()).await?.is_empty(),
    )
}

pub(super) async fn changes_are_limited_to_the_organisation(store: SharedStore) -> Checked {
    settle(&store, "a", "mine").await?;
    settle(&store, "b", "theirs").await?;
    let (org, codebase) = ("b".to_owned(), "shared name".to_owned());
    let changes = vec![
        begins(RunStart { task: "changed".to_owned(), ..start("b", "r", T0) }),
        puts(StepRow { thought: "changed".to_owned(), ..step("b", "r", 0) }),
        Change::FinishRun { run: key("b", "r"), at_ms: T0, outcome: "failure".to_owned() },
        Change::UsePatterns {
            used: vec![("b".to_owned(), "e1".to_owned(), "p".to_owned())],
            at_ms: T0,
        },
        Change::DeletePattern {
            org: org.clone(),
            tier: "e1".to_owned(),
            pattern_id: "p".to_owned(),
        },
        Change::InvalidateFindings {
            org: org.clone(),
            codebase: codebase.clone(),
            file_paths: vec!["src/a.rs".to_owned()],
        },
        Change::DeleteFinding {
            org: org.clone(),
            codebase: codebase.clone(),
            finding_id: "f".to_owned(),
        },
        Change::ClearFindings { org: org.clone(), codebase },
        Change::DeleteProfile { org, project: String::new(), profile_id: "w".to_owned() },
        Change::DeleteRun(key("b", "trial")),
    ];
    same("affected rows", store.apply(changes).await?, vec![1, 1, 1, 1, 1, 1, 0, 0, 1, 1])?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    same("the run", (run.task.as_str(), run.outcome), ("mine", None))?;
    let steps = store.steps(&key("a", "r"), 0, ALL).await?;
    same("steps", steps.iter().map(|step| step.thought.as_str()).collect(), vec!["mine"])?;
    let seen = store.patterns(&a(), &patterns()).await?;
    same("patterns", seen.iter().map(|pattern| pattern.uses).collect(), vec![0])?;
    same("findings", store.findings("a", "shared name").await?.len(), 1)?;
    same("profiles", store.profiles(&a()).await?.len(), 1)?;
    same("experiments", store.experiment(&a(), "x").await?.len(), 1)
}

pub(super) async fn a_project_limits_the_scope(store: SharedStore) -> Checked {
    let inside = |run_id: &str, project: &str| RunStart {
        project: project.to_owned(),
        codebase: format!("code of {project}"),
        ..in_experiment(start("a", run_id, T0), "x", "on")
    };
    let changes = vec![
        begins(inside("r1", "one")),
        begins(inside("r2", "two")),
        begins(RunStart { run: key("a", "r0"), at_ms: T0, ..RunStart::default() }),
        puts(step("a", "r1", 0)),
        puts(step("a", "r2", 0)),
        Change::PutProfile(Box::new(profile("a", "", "w"))),
        Change::PutProfile(Box::new(profile("a", "one", "w"))),
        Change::PutProfile(Box::new(profile("a", "two", "w"))),
        Change::PutFinding(Box::new(finding("a", "of the organisation", "f", ""))),
    ];
    store.apply(changes).await?;
    let one = project("a", "one");
    let everything = RunFilter { count_max: ALL, ..RunFilter::default() };
    for filter in
        [everything.clone(), RunFilter { fired: Some("repeat".to_owned()), ..everything.clone() }]
    {
        let runs = store.runs(&one, &filter).await?;
        same("runs", runs.iter().map(|run| run.run.run_id.as_str()).collect(), vec!["r1"])?;
    }
    same("another project's run", store.run(&one, "r2").await?, None)?;
    same("health", store.health(&one, 0).await?.runs, 1)?;
    same("experiments", store.experiments(&one).await?, vec![("x".to_owned(), 1)])?;
    same("experiment", store.experiment(&one, "x").await?.len(), 1)?;
    same("codebases", store.codebases(&one).await?, vec!["code of one".to_owned()])?;
    let profiles = store.profiles(&one).await?;
    let projects = profiles.iter().map(|profile| profile.project.as_str()).collect();
    same("profiles", projects, vec!["", "one"])?;
    same("of all projects", store.runs(&a(), &everything).await?.len(), 3)?;
    same("profiles of all", store.profiles(&a()).await?.len(), 3)
}

pub(super) async fn an_unlimited_scope_includes_everything(store: SharedStore) -> Checked {
    settle(&store, "a", "mine").await?;
    settle(&store, "b", "theirs").await?;
    put(&store, begins(RunStart { task: "newest".to_owned(), ..start("0", "r", T0 + 1) })).await?;
    let all = Scope::default();
    let run = there("the run", store.run(&all, "r").await?)?;
    same("the newest of that name", run.task.as_str(), "newest")?;
    let everything = RunFilter { count_max: ALL, ..RunFilter::default() };
    same("runs", store.runs(&all, &everything).await?.len(), 7)?;
    same("health", store.health(&all, 0).await?.runs, 7)?;
    same("experiment", store.experiment(&all, "x").await?.len(), 2)?;
    same("patterns", store.patterns(&all, &patterns()).await?.len(), 2)?;
    same("profiles", store.profiles(&all).await?.len(), 2)?;
    same("codebases", store.codebases(&all).await?.len(), 4)
}
