//! Filters, order and pages of lists.

use std::sync::Arc;

use super::fixtures::{ALL, T0, a, begins, ends, puts, start, step};
use super::{Broken, Checked, holds, put, same};
use rb_store::{OutcomeClass, RunAfter, RunFilter, RunStart, Scope, Store};

type SharedStore = Arc<dyn Store>;

fn all() -> RunFilter {
    RunFilter { count_max: ALL, ..RunFilter::default() }
}

async fn ids(
    store: &SharedStore,
    scope: &Scope,
    filter: &RunFilter,
) -> Result<Vec<String>, Broken> {
    let runs = store.runs(scope, filter).await?;
    Ok(runs.into_iter().map(|run| run.run.run_id).collect())
}

pub(super) async fn runs_are_listed_newest_first(store: SharedStore) -> Checked {
    for (run_id, at_ms) in [("second", 20), ("first", 10), ("third", 30)] {
        put(&store, begins(start("a", run_id, T0 + at_ms))).await?;
    }
    // Activity must not change the order, or pages would skip runs.
    put(&store, puts(step("a", "first", 0))).await?;
    same("runs", ids(&store, &a(), &all()).await?, owned(&["third", "second", "first"]))?;
    let two = RunFilter { count_max: 2, ..RunFilter::default() };
    same("the first two", ids(&store, &a(), &two).await?, owned(&["third", "second"]))?;
    same("none", ids(&store, &a(), &RunFilter::default()).await?, owned(&[]))
}

fn owned(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|&id| id.to_owned()).collect()
}

/// Starts four runs that differ in every filtered field.
async fn four(store: &SharedStore) -> Checked {
    let start_with = |run_id: &str, at_ms: i64, agent_name: &str, model: &str| {
        begins(RunStart {
            agent_name: agent_name.to_owned(),
            model: model.to_owned(),
            key_name: format!("key of {agent_name}"),
            ..start("a", run_id, T0 + at_ms)
        })
    };
    let changes = [
        start_with("1", 10, "fixer", "model-a"),
        start_with("2", 20, "writer", "model-a"),
        start_with("3", 30, "fixer", "model-b"),
        start_with("4", 40, "writer", "model-b"),
        puts(step("a", "1", 0)),
        puts(step("a", "4", 0)),
        ends("a", "1", T0 + 99, "success"),
        ends("a", "2", T0 + 99, "failure: gave up"),
        ends("a", "3", T0 + 99, "completed"),
    ];
    store.apply(changes.to_vec()).await?;
    Ok(())
}

pub(super) async fn each_filter_selects_its_runs(store: SharedStore) -> Checked {
    four(&store).await?;
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (RunFilter { agent_name: text("fixer"), ..all() }, ["3", "1"].as_slice()),
        (RunFilter { agent_name: text("fix"), ..all() }, &[]),
        (RunFilter { model: text("model-a"), ..all() }, &["2", "1"]),
        (RunFilter { outcome: Some(OutcomeClass::Success), ..all() }, &["1"]),
        (RunFilter { outcome: Some(OutcomeClass::Failure), ..all() }, &["2"]),
        (RunFilter { outcome: Some(OutcomeClass::Other), ..all() }, &["3"]),
        (RunFilter { outcome: Some(OutcomeClass::Unfinished), ..all() }, &["4"]),
        (RunFilter { fired: text("repeat"), ..all() }, &["4", "1"]),
        (RunFilter { fired: text("drift"), ..all() }, &[]),
        (RunFilter { pattern: text("e1:p-1"), ..all() }, &["4", "1"]),
        (RunFilter { pattern: text("e1:p-1"), fired: text("repeat"), ..all() }, &["4", "1"]),
        (RunFilter { pattern: text("p-1"), ..all() }, &[]),
        (RunFilter { key_name: text("key of writer"), ..all() }, &["4", "2"]),
        (RunFilter { key_name: text("key"), ..all() }, &[]),
        (RunFilter { key_name: text(""), ..all() }, &[]),
        (RunFilter { since_ms: Some(T0 + 30), ..all() }, &["4", "3"]),
        (RunFilter { until_ms: Some(T0 + 30), ..all() }, &["2", "1"]),
        (RunFilter { text: text("WRIT"), ..all() }, &["4", "2"]),
        (RunFilter { text: text(""), ..all() }, &["4", "3", "2", "1"]),
    ];
    for (filter, expected) in cases {
        for scope in [a(), Scope::default()] {
            let found = ids(&store, &scope, &filter).await?;
            same(&format!("{filter:?}"), found, owned(expected))?;
        }
    }
    Ok(())
}

pub(super) async fn filters_can_be_combined(store: SharedStore) -> Checked {
    four(&store).await?;
    let mut filter = RunFilter {
        agent_name: Some("fixer".to_owned()),
        model: Some("model-a".to_owned()),
        outcome: Some(OutcomeClass::Success),
        fired: Some("repeat".to_owned()),
        pattern: Some("e1:p-1".to_owned()),
        key_name: Some("key of fixer".to_owned()),
        text: Some("parser".to_owned()),
        since_ms: Some(T0 + 10),
        until_ms: Some(T0 + 11),
        ..all()
    };
    same("all of them", ids(&store, &a(), &filter).await?, owned(&["1"]))?;
    filter.model = Some("model-b".to_owned());
    same("all but one", ids(&store, &a(), &filter).await?, owned(&[]))
}

pub(super) async fn text_search_covers_id_task_and_agent_ignoring_case(
    store: SharedStore,
) -> Checked {
    let run = RunStart {
        agent_name: "Über-Agent".to_owned(),
        task: "Fix 100% of the \"quotes\" in don't_stop*".to_owned(),
        ..start("a", "Run-7f3A", T0)
    };
    put(&store, begins(run)).await?;
    put(&store, begins(start("a", "other", T0))).await?;
    for read_set in
        ["run-7F3a", "7f3", "ÜBER", "über-a", "100%", "\"QUOTES\"", "don't_", "stop*", "x 1", "f"]
    {
        let filter = RunFilter { text: Some(read_set.to_owned()), ..all() };
        let found = ids(&store, &a(), &filter).await?;
        holds(&format!("{read_set} is found"), found.contains(&"Run-7f3A".to_owned()))?;
    }
    for unwanted in ["100_", "quotes*", "%", "agent fix"] {
        let filter = RunFilter { text: Some(unwanted.to_owned()), ..all() };
        let found = ids(&store, &a(), &filter).await?;
        let is_percent = unwanted == "%";
        same(&format!("{unwanted} is literal"), found.len(), usize::from(is_percent))?;
    }
    let renamed = RunStart { task: "Nothing special".to_owned(), ..start("a", "Run-7f3A", T0) };
    put(&store, begins(renamed)).await?;
    let filter = RunFilter { text: Some("quotes".to_owned()), ..all() };
    same("text before", ids(&store, &a(), &filter).await?, owned(&[]))
}

/// Reads a list page by page.
async fn paged(
    store: &SharedStore,
    scope: &Scope,
    filter: &RunFilter,
) -> Result<Vec<String>, Broken> {
    let mut filter = filter.clone();
    let mut found = Vec::new();
    loop {
        let page = store.runs(scope, &filter).await?;
        let Some(last) = page.last() else { return Ok(found) };
        filter.after = Some(RunAfter { started_ms: last.started_ms, run: last.run.clone() });
        found.extend(page.into_iter().map(|run| format!("{}/{}", run.run.org, run.run.run_id)));
    }
}

pub(super) async fn pages_neither_skip_nor_repeat_runs(store: SharedStore) -> Checked {
    for at in 0..20 {
        let run_id = format!("r{at}");
        put(&store, begins(start("a", &run_id, T0 + at / 3))).await?;
        if at % 2 == 0 {
            put(&store, puts(step("a", &run_id, 0))).await?;
        }
    }
    for fired in [None, Some("repeat".to_owned())] {
        let whole = RunFilter { fired, ..all() };
        let runs = store.runs(&a(), &whole).await?;
        let expected: Vec<String> =
            runs.iter().map(|run| format!("a/{}", run.run.run_id)).collect();
        holds("something to page", expected.len() >= 10)?;
        for count_max in [1, 3, 7, 50] {
            let found = paged(&store, &a(), &RunFilter { count_max, ..whole.clone() }).await?;
            same(&format!("pages of {count_max}"), &found, &expected)?;
        }
    }
    Ok(())
}

pub(super) async fn runs_with_equal_start_times_are_paged(store: SharedStore) -> Checked {
    for org in ["a", "b", "c"] {
        for run_id in ["x", "y"] {
            put(&store, begins(start(org, run_id, T0))).await?;
        }
    }
    let unlimited = Scope::default();
    let filter = RunFilter { count_max: 1, ..RunFilter::default() };
    let mut found = paged(&store, &unlimited, &filter).await?;
    same("runs", found.len(), 6)?;
    found.sort_unstable();
    found.dedup();
    same("different runs", found.len(), 6)
}

pub(super) async fn an_offset_skips_runs(store: SharedStore) -> Checked {
    four(&store).await?;
    for (offset, expected) in [(0, ["4", "3"].as_slice()), (1, &["3", "2"]), (3, &["1"]), (9, &[])]
    {
        let filter = RunFilter { offset, count_max: 2, ..RunFilter::default() };
        same(&format!("from {offset}"), ids(&store, &a(), &filter).await?, owned(expected))?;
    }
    Ok(())
}
