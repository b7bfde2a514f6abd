//! Aggregates in runs, health, experiments and usage equal a recount of the steps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::fixtures::{
    ALL, DAY_MS, T0, a, begins, ends, in_experiment, key, puts, quiet, start, step,
};
use super::{Broken, Checked, holds, near, put, same, there};
use rb_store::{
    Change, DayHealth, ExperimentRun, Health, ModelTokens, MonitorHealth, RunFilter, RunKey,
    RunRow, Scope, StepRow, Store, Tokens, UsageDay,
};

type SharedStore = Arc<dyn Store>;

/// Applies changes one call at a time and compares every aggregate with the stored steps. Changes may start, end and
/// delete runs and put steps, but not expire runs, since the effect is not known in advance.
pub async fn recount(store: Arc<dyn Store>, changes: &[Change]) -> Result<(), Broken> {
    // Usage of deleted runs stays counted.
    let mut used = UsageDelta::new();
    for change in changes {
        if let Change::DeleteRun(run) = change
            && let Some(row) = store.run(&Scope::org(&run.org), &run.run_id).await?
        {
            meter(&mut used, &row, &steps_of(&store, run).await?);
        }
        put(&store, change.clone()).await?;
    }
    let everything = RunFilter { count_max: ALL, ..RunFilter::default() };
    let mut orgs: BTreeMap<String, Vec<(RunRow, Vec<StepRow>)>> = BTreeMap::new();
    for row in store.runs(&Scope::default(), &everything).await? {
        let steps = steps_of(&store, &row.run).await?;
        run_equals_its_steps(&row, &steps)?;
        listed_where_it_fired(&store, &row).await?;
        listed_where_shown(&store, &row, &steps).await?;
        meter(&mut used, &row, &steps);
        orgs.entry(row.run.org.clone()).or_default().push((row, steps));
    }
    for (org, runs) in &orgs {
        health_equals_the_runs(&store.health(&Scope::org(org), 0).await?, runs)?;
        experiments_equal_the_runs(&store, org, runs).await?;
    }
    let metered: BTreeSet<&String> = used.keys().map(|(org, _)| org).chain(orgs.keys()).collect();
    for org in metered {
        let expected: Vec<UsageDay> =
            used.iter().filter(|((of, _), _)| of == org).map(|(_, day)| *day).collect();
        same("usage", store.usage(org, 0).await?, expected)?;
    }
    Ok(())
}

type UsageDelta = BTreeMap<(String, i64), UsageDay>;

async fn steps_of(store: &SharedStore, run: &RunKey) -> Result<Vec<StepRow>, Broken> {
    Ok(store.steps(run, 0, ALL).await?)
}

fn experiment_of(row: &RunRow) -> &str {
    row.metadata.get("experiment_id").and_then(|id| id.as_str()).unwrap_or_default()
}

fn meter(used: &mut UsageDelta, row: &RunRow, steps: &[StepRow]) {
    if !experiment_of(row).is_empty() {
        return;
    }
    for step in steps {
        let day = step.at_ms.div_euclid(DAY_MS);
        let entry = used.entry((row.run.org.clone(), day)).or_default();
        entry.day = day;
        entry.steps += 1;
        entry.tokens += step.tokens.total;
        entry.interventions += u64::from(step.is_injected());
    }
}

fn tokens<'a>(steps: impl Iterator<Item = &'a StepRow>) -> Tokens {
    steps.fold(Tokens::default(), |sum, step| Tokens {
        total: sum.total + step.tokens.total,
        input: sum.input + step.tokens.input,
        output: sum.output + step.tokens.output,
        cache_read: sum.cache_read + step.tokens.cache_read,
        cache_write: sum.cache_write + step.tokens.cache_write,
    })
}

fn peak(steps: &[StepRow]) -> f64 {
    steps.iter().fold(0.0, |peak, step| peak.max(step.total_score))
}

fn count(steps: &[StepRow], is_so: impl Fn(&StepRow) -> bool) -> u64 {
    steps.iter().map(|step| u64::from(is_so(step))).sum()
}

fn high_scores(steps: &[StepRow]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let scores = steps.iter().flat_map(|step| &step.scores);
    for (monitor, _) in scores.filter(|(_, score)| **score >= Health::DANGER_FROM) {
        *counts.entry(monitor.to_string()).or_default() += 1;
    }
    counts
}

fn fired(steps: &[StepRow]) -> BTreeMap<String, u64> {
    let mut fired = BTreeMap::new();
    for step in steps {
        for monitor in step.fired.iter().collect::<BTreeSet<_>>() {
            *fired.entry(monitor.clone()).or_default() += 1;
        }
    }
    fired
}

fn run_equals_its_steps(row: &RunRow, steps: &[StepRow]) -> Checked {
    same("step_count", row.step_count, count(steps, |_| true))?;
    near("score_sum", row.score_sum, steps.iter().map(|step| step.total_score).sum())?;
    same("score_peak", row.score_peak, peak(steps))?;
    same("tokens", row.tokens, tokens(steps.iter()))?;
    near("cost_usd", row.cost_usd, steps.iter().map(|step| step.cost_usd).sum())?;
    same("injected_steps", row.injected_steps, count(steps, StepRow::is_injected))?;
    same("high scores", &row.high_scores, &high_scores(steps))?;
    same("fired", &row.fired, &fired(steps))
}

async fn listed_where_it_fired(store: &SharedStore, row: &RunRow) -> Checked {
    for monitor in ["repeat", "drift", "never"] {
        let filter =
            RunFilter { fired: Some(monitor.to_owned()), count_max: ALL, ..RunFilter::default() };
        let runs = store.runs(&Scope::org(&row.run.org), &filter).await?;
        let is_listed = runs.iter().any(|listed| listed.run == row.run);
        same("listed under a monitor", is_listed, row.fired.contains_key(monitor))?;
    }
    Ok(())
}

async fn listed_where_shown(store: &SharedStore, row: &RunRow, steps: &[StepRow]) -> Checked {
    for pattern in ["e1:p-1", "e3:q", "e1:never"] {
        let filter =
            RunFilter { pattern: Some(pattern.to_owned()), count_max: ALL, ..RunFilter::default() };
        for scope in [Scope::org(&row.run.org), Scope::default()] {
            let runs = store.runs(&scope, &filter).await?;
            let listed = count_of(&runs, |listed| listed.run == row.run);
            let is_shown = steps.iter().any(|step| step.patterns().contains(pattern));
            same("listed under a pattern, once", listed, u64::from(is_shown))?;
        }
    }
    Ok(())
}

fn count_of(runs: &[RunRow], is_so: impl Fn(&RunRow) -> bool) -> u64 {
    runs.iter().map(|run| u64::from(is_so(run))).sum()
}

fn health_equals_the_runs(health: &Health, runs: &[(RunRow, Vec<StepRow>)]) -> Checked {
    let all: Vec<StepRow> = runs.iter().flat_map(|(_, steps)| steps.clone()).collect();
    let many = |is_so: &dyn Fn(&RunRow) -> bool| {
        runs.iter().map(|(row, _)| u64::from(is_so(row))).sum::<u64>()
    };
    same("runs", health.runs, many(&|_| true))?;
    same("steps", health.steps, count(&all, |_| true))?;
    same("success", health.success_runs, many(&|row| row.outcome.as_deref() == Some("success")))?;
    same("fired runs", health.fired_runs, many(&|row| !row.fired.is_empty()))?;
    same("clean runs", health.clean_runs, many(&|row| row.score_peak < Health::CLEAN_BELOW))?;
    let from = |least: f64| count(&all, |step| step.total_score >= least);
    same("warn steps", health.warn_steps, from(0.35) - from(0.6))?;
    same("danger steps", health.danger_steps, from(0.6))?;
    days_equal_the_runs(&health.by_day, runs)?;
    near("score of all", health.score_sum, all.iter().map(|step| step.total_score).sum())?;
    same("peak of all", health.score_peak, peak(&all))?;
    same("tokens of all", health.tokens, tokens(all.iter()))?;
    near("cost of all", health.cost_usd, all.iter().map(|step| step.cost_usd).sum())?;
    let mut by_monitor: BTreeMap<String, MonitorHealth> = BTreeMap::new();
    for step in &all {
        for (name, score) in &step.scores {
            let monitor = by_monitor.entry(name.to_string()).or_default();
            monitor.low += u64::from(*score < 0.35);
            monitor.warn += u64::from((0.35..0.6).contains(score));
            monitor.danger += u64::from(*score >= 0.6);
        }
    }
    for (name, steps) in fired(&all) {
        by_monitor.entry(name).or_default().fired = steps;
    }
    same("by monitor", &health.by_monitor, &by_monitor)?;
    let runs_by_framework: u64 = health.by_framework.values().map(|(runs, ..)| runs).sum();
    let steps_by_framework: u64 = health.by_framework.values().map(|(_, _, steps, _)| steps).sum();
    let score_by_framework: f64 = health.by_framework.values().map(|(_, score, ..)| score).sum();
    same("runs by framework", runs_by_framework, health.runs)?;
    same("steps by framework", steps_by_framework, health.steps)?;
    near("score by framework", score_by_framework, health.score_sum)
}

fn days_equal_the_runs(
    by_day: &BTreeMap<i64, DayHealth>,
    runs: &[(RunRow, Vec<StepRow>)],
) -> Checked {
    let mut expected: BTreeMap<i64, DayHealth> = BTreeMap::new();
    for (row, _) in runs {
        let day = expected.entry(row.started_ms.div_euclid(DAY_MS)).or_default();
        day.runs += 1;
        day.clean_runs += u64::from(row.score_peak < Health::CLEAN_BELOW);
        day.steps += row.step_count;
        day.tokens += row.tokens.total;
        day.cost_usd += row.cost_usd;
    }
    same("days", by_day.keys().collect::<Vec<_>>(), expected.keys().collect())?;
    for (day, expected) in &expected {
        let found = there("a day", by_day.get(day))?;
        near("cost of a day", found.cost_usd, expected.cost_usd)?;
        let cost_usd = 0.0;
        same("a day", DayHealth { cost_usd, ..*found }, DayHealth { cost_usd, ..*expected })?;
    }
    Ok(())
}

async fn experiments_equal_the_runs(
    store: &SharedStore,
    org: &str,
    runs: &[(RunRow, Vec<StepRow>)],
) -> Checked {
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for (row, _) in runs.iter().filter(|(row, _)| !experiment_of(row).is_empty()) {
        *expected.entry(experiment_of(row).to_owned()).or_default() += 1;
    }
    let found = store.experiments(&Scope::org(org)).await?;
    same("experiments", &found, &expected.into_iter().collect())?;
    for (id, _) in found {
        for reported in store.experiment(&Scope::org(org), &id).await? {
            let run = runs.iter().find(|(row, _)| row.run.run_id == reported.run_id);
            let (row, steps) = there("a run of the experiment", run)?;
            same("its experiment", experiment_of(row), id.as_str())?;
            same("its steps", reported.step_count, row.step_count)?;
            same("its injected steps", reported.injected_steps, row.injected_steps)?;
            same(
                "its fired steps",
                reported.fired_steps,
                count(steps, |step| !step.fired.is_empty()),
            )?;
            models_equal_the_steps(&reported, row, steps)?;
        }
    }
    Ok(())
}

fn models_equal_the_steps(reported: &ExperimentRun, row: &RunRow, steps: &[StepRow]) -> Checked {
    let model_of = |step: &StepRow| {
        if step.model.is_empty() { row.model.clone() } else { step.model.clone() }
    };
    for tokens_and_cost in &reported.by_model {
        let own = || steps.iter().filter(|step| model_of(step) == tokens_and_cost.model);
        same("tokens of a model", tokens_and_cost.tokens, tokens(own()))?;
        near("cost of a model", tokens_and_cost.cost_usd, own().map(|step| step.cost_usd).sum())?;
    }
    let cost: f64 = reported.by_model.iter().map(|tokens_and_cost| tokens_and_cost.cost_usd).sum();
    let total: u64 =
        reported.by_model.iter().map(|tokens_and_cost| tokens_and_cost.tokens.total).sum();
    near("cost of all models", cost, row.cost_usd)?;
    same("tokens of all models", total, row.tokens.total)
}

pub(super) async fn a_run_counts_its_steps(store: SharedStore) -> Checked {
    let mut high = step("a", "r", 1);
    high.total_score = 0.9;
    high.fired = vec!["repeat".to_owned(), "drift".to_owned(), "repeat".to_owned()];
    let changes = [
        begins(start("a", "r", T0)),
        puts(step("a", "r", 0)),
        puts(high),
        puts(quiet("a", "r", 2)),
    ];
    store.apply(changes.to_vec()).await?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    same("steps, injected", (run.step_count, run.injected_steps), (3, 2))?;
    near("sum", run.score_sum, 1.45)?;
    same("peak", run.score_peak, 0.9)?;
    near("cost", run.cost_usd, 0.0025)?;
    let tokens_and_cost =
        Tokens { total: 230, input: 200, output: 30, cache_read: 80, cache_write: 14 };
    same("tokens", run.tokens, tokens_and_cost)?;
    let fired = BTreeMap::from([("drift".to_owned(), 1), ("repeat".to_owned(), 2)]);
    same("fired", run.fired, fired)?;
    recount(store, &[]).await
}

pub(super) async fn replacing_the_peak_step_recomputes_the_peak(store: SharedStore) -> Checked {
    let scored = |index, total_score| puts(StepRow { total_score, ..quiet("a", "r", index) });
    for (change, expected) in [
        (scored(0, 0.3), 0.3),
        (scored(1, 0.8), 0.8),
        (scored(2, 0.5), 0.8),
        (scored(1, 0.1), 0.5),
        (scored(2, 0.9), 0.9),
        (scored(2, 0.0), 0.3),
    ] {
        put(&store, change).await?;
        let run = there("the run", store.run(&a(), "r").await?)?;
        same("peak", run.score_peak, expected)?;
    }
    Ok(())
}

pub(super) async fn health_counts_runs_steps_and_monitors(store: SharedStore) -> Checked {
    let clean = StepRow { total_score: 0.349, ..quiet("a", "clean", 0) };
    let other = rb_store::RunStart { framework: "sdk".to_owned(), ..start("a", "clean", T0 + 10) };
    let changes = [
        begins(start("a", "r", T0)),
        puts(step("a", "r", 0)),
        ends("a", "r", T0, "success"),
        begins(other),
        puts(clean),
        ends("a", "clean", T0, "successful"),
    ];
    recount(Arc::clone(&store), &changes).await?;
    let health = store.health(&a(), 0).await?;
    let runs = (health.runs, health.success_runs, health.fired_runs, health.clean_runs);
    same("runs, successes, fired, clean", runs, (2, 1, 1, 1))?;
    let repeat = MonitorHealth { fired: 1, low: 0, warn: 0, danger: 1 };
    let drift = MonitorHealth { fired: 0, low: 0, warn: 1, danger: 0 };
    let expected = BTreeMap::from([("repeat".to_owned(), repeat), ("drift".to_owned(), drift)]);
    same("monitors", health.by_monitor, expected)?;
    same("steps worth a look, in danger", (health.warn_steps, health.danger_steps), (1, 0))?;
    same("days", health.by_day.keys().copied().collect::<Vec<_>>(), vec![20_000])?;
    let names: Vec<&str> = health.by_framework.keys().map(String::as_str).collect();
    same("frameworks", names, vec!["langchain", "sdk"])?;
    same("since the second began", store.health(&a(), T0 + 10).await?.runs, 1)?;
    same("since after it began", store.health(&a(), T0 + 11).await?, Health::default())
}

pub(super) async fn an_experiment_is_reported_by_arm_and_model(store: SharedStore) -> Checked {
    let unnamed = StepRow { model: String::new(), ..step("a", "late", 1) };
    let changes = [
        begins(in_experiment(start("a", "late", T0 + 5), "x", "off")),
        puts(step("a", "late", 0)),
        puts(unnamed),
        ends("a", "late", T0 + 9, "failure"),
        begins(in_experiment(start("a", "early", T0), "x", "on")),
        begins(in_experiment(start("a", "another", T0), "y", "on")),
    ];
    recount(Arc::clone(&store), &changes).await?;
    let runs = store.experiment(&a(), "x").await?;
    let reported: Vec<(&str, &str)> =
        runs.iter().map(|run| (run.run_id.as_str(), run.arm.as_str())).collect();
    same("runs, oldest first", reported, vec![("early", "on"), ("late", "off")])?;
    let late = there("the later run", runs.last())?;
    same("its outcome", late.outcome.as_deref(), Some("failure"))?;
    same("its profile", late.task_profile.as_str(), "coding")?;
    let tokens = step("a", "late", 0).tokens;
    let tokens_and_cost =
        |model: &str| ModelTokens { model: model.to_owned(), tokens, cost_usd: 0.001_25 };
    same("by model", &late.by_model, &vec![tokens_and_cost("model-a"), tokens_and_cost("model-b")])
}

pub(super) async fn usage_is_counted_by_day(store: SharedStore) -> Checked {
    let on = |day: i64, index| StepRow { at_ms: T0 + day * DAY_MS, ..step("a", "r", index) };
    let quiet_on = |day: i64, index| StepRow { at_ms: T0 + day * DAY_MS, ..quiet("a", "r", index) };
    for step in [on(0, 0), quiet_on(0, 1), on(2, 2), on(3, 3), quiet_on(2, 3)] {
        put(&store, puts(step)).await?;
    }
    let first = UsageDay { day: 20_000, interventions: 1, steps: 2, tokens: 115 };
    let third = UsageDay { day: 20_002, interventions: 1, steps: 2, tokens: 115 };
    same("usage", store.usage("a", 0).await?, vec![first, third])?;
    same("since the second day", store.usage("a", 20_001).await?, vec![third])?;
    same("since after", store.usage("a", 20_003).await?, vec![])
}

pub(super) async fn experiment_runs_do_not_count_as_usage(store: SharedStore) -> Checked {
    put(&store, puts(step("a", "r", 0))).await?;
    put(&store, puts(step("a", "plain", 0))).await?;
    same("before", store.usage("a", 0).await?.first().map(|day| day.steps), Some(2))?;
    put(&store, begins(in_experiment(start("a", "r", T0), "x", "on"))).await?;
    put(&store, puts(step("a", "r", 0))).await?;
    put(&store, puts(step("a", "r", 1))).await?;
    let left = UsageDay { day: 20_000, interventions: 1, steps: 1, tokens: 115 };
    same("once it is an experiment's", store.usage("a", 0).await?, vec![left])
}

pub(super) async fn deleting_a_run_keeps_its_usage(store: SharedStore) -> Checked {
    put(&store, puts(step("a", "r", 0))).await?;
    let before = store.usage("a", 0).await?;
    put(&store, Change::DeleteRun(key("a", "r"))).await?;
    same("usage", store.usage("a", 0).await?, before.clone())?;
    holds("there was some", !before.is_empty())
}
