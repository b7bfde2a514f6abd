//! Steps.

use std::sync::Arc;

use super::fixtures::{ALL, T0, a, begins, key, puts, quiet, start, step};
use super::{Checked, put, same, there};
use rb_store::{Change, StepRow, Store, Tokens};

type SharedStore = Arc<dyn Store>;

pub(super) async fn a_step_is_read_back_unchanged(store: SharedStore) -> Checked {
    put(&store, begins(start("a", "r", T0))).await?;
    let (full, empty) = (step("a", "r", 0), quiet("a", "r", 1));
    same("affected rows", put(&store, puts(full.clone())).await?, 1)?;
    put(&store, puts(empty.clone())).await?;
    same("the steps", store.steps(&key("a", "r"), 0, ALL).await?, vec![full, empty])
}

pub(super) async fn a_step_creates_an_unknown_run(store: SharedStore) -> Checked {
    put(&store, puts(step("a", "r", 4))).await?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    same("start time", run.started_ms, T0 + 4_000)?;
    same("its project", run.project.as_str(), "main")?;
    same("its steps", run.step_count, 1)?;
    let elsewhere = StepRow { project: "other".to_owned(), ..step("a", "r", 5) };
    put(&store, puts(elsewhere)).await?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    same("project after a step with another one", run.project.as_str(), "main")
}

pub(super) async fn steps_are_listed_by_index(store: SharedStore) -> Checked {
    for index in [7, 0, 300, 2, 70_000, 1] {
        put(&store, puts(quiet("a", "r", index))).await?;
        put(&store, puts(quiet("a", "other", index + 1))).await?;
    }
    let steps = store.steps(&key("a", "r"), 0, ALL).await?;
    let found: Vec<u32> = steps.iter().map(|step| step.step_index).collect();
    same("indices", found, vec![0, 1, 2, 7, 300, 70_000])?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    same("time of the last activity", run.seen_ms, T0 + 70_000_000)
}

pub(super) async fn steps_are_read_in_pages(store: SharedStore) -> Checked {
    let steps: Vec<Change> = (0..25).map(|index| puts(quiet("a", "r", index * 2))).collect();
    store.apply(steps).await?;
    for (from, count_max, expected) in [
        (0, 3, vec![0, 2, 4]),
        (3, 3, vec![4, 6, 8]),
        (46, 10, vec![46, 48]),
        (49, 10, vec![]),
        (0, 0, vec![]),
        (u32::MAX, 10, vec![]),
    ] {
        let page = store.steps(&key("a", "r"), from, count_max).await?;
        let found: Vec<u32> = page.iter().map(|step| step.step_index).collect();
        same(&format!("{count_max} steps from {from}"), found, expected)?;
    }
    Ok(())
}

pub(super) async fn a_step_with_the_same_index_is_replaced(store: SharedStore) -> Checked {
    put(&store, puts(step("a", "r", 0))).await?;
    let second = StepRow { thought: "Another thought".to_owned(), ..quiet("a", "r", 0) };
    for _ in 0..2 {
        same("affected rows", put(&store, puts(second.clone())).await?, 1)?;
        same("the steps", store.steps(&key("a", "r"), 0, ALL).await?, vec![second.clone()])?;
    }
    let run = there("the run", store.run(&a(), "r").await?)?;
    same("steps", run.step_count, 1)?;
    same("tokens", run.tokens, Tokens::default())?;
    same("fired", run.fired.len(), 0)?;
    super::recount(store, &[]).await
}

pub(super) async fn the_largest_step_index_is_valid(store: SharedStore) -> Checked {
    let last = quiet("a", "r", u32::MAX);
    put(&store, puts(last.clone())).await?;
    put(&store, puts(quiet("a", "next", 0))).await?;
    same("the steps", store.steps(&key("a", "r"), 1, ALL).await?, vec![last])
}

pub(super) async fn non_finite_numbers_are_left_out_of_sums(store: SharedStore) -> Checked {
    let mut odd = step("a", "r", 0);
    odd.total_score = f64::NAN;
    odd.cost_usd = f64::INFINITY;
    odd.scores.insert("drift".into(), f64::NAN);
    odd.tokens.total = u64::MAX;
    put(&store, puts(odd)).await?;
    put(&store, puts(step("a", "r", 1))).await?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    same("score", run.score_sum, 0.55)?;
    same("cost", run.cost_usd, 0.001_25)?;
    put(&store, puts(quiet("a", "r", 0))).await?;
    let run = there("the run", store.run(&a(), "r").await?)?;
    same("tokens once the odd step is replaced", run.tokens.total, 115)
}

pub(super) async fn large_texts_and_all_characters_are_stored(store: SharedStore) -> Checked {
    let mut large = step("a", "r", 0);
    large.thought =
        "\u{0}tab\t\"quote\" 'single' \\ \u{1F9E0} \u{202E}right to left %_*?".repeat(2_000);
    large.observation = Some(String::new());
    large.action_input = Some("x".repeat(500_000));
    put(&store, puts(large.clone())).await?;
    same("the step", store.steps(&key("a", "r"), 0, ALL).await? == vec![large], true)
}
