//! Repeated imports, renamed runs and runs beside live ones.

use std::collections::BTreeMap;

use rb_store::{Change, RunFilter, RunStart, Scope, Store};
use rb_wire::transcripts::NATIVE;
use serde_json::json;

use super::*;

const SOURCE: ImportSource<'static> =
    ImportSource { org: "o", project: "p", format: "runs", file: "a/b.jsonl", fallback_id: "b:1" };

async fn store() -> Arc<dyn Store> {
    rb_store::open("sqlite::memory:").await.unwrap()
}

/// Imports the runs of a text and returns the outcome of each.
async fn take(store: &dyn Store, text: &str) -> Vec<(String, ImportOutcome)> {
    let prices = Prices::new(BTreeMap::new());
    let (runs, _) = (NATIVE.parse)(text.as_bytes());
    let mut all = Vec::new();
    for run in &runs {
        let recorded = ImportedRun::assess(run, &SOURCE, &prices).unwrap();
        let planned = plan(store, recorded).await.unwrap();
        store.apply(planned.changes).await.unwrap();
        all.push((planned.run.run_id, planned.outcome));
    }
    all
}

fn steps(count: usize) -> Vec<Value> {
    let step = |at: usize| {
        json!({ "thought": format!("Again, {at}."), "action": "bash", "action_input": "pytest",
                "observation": "1 failed" })
    };
    (0..count).map(step).collect()
}

fn line(run_id: &str, task: &str, count: usize) -> String {
    json!({ "run_id": run_id, "task": task, "steps": steps(count) }).to_string()
}

#[tokio::test]
async fn a_run_is_taken_once_and_grows() {
    let store = store().await;
    let named = |kept| vec![("r".to_owned(), kept)];
    assert_eq!(take(&*store, &line("r", "t", 3)).await, named(ImportOutcome::New));
    assert_eq!(take(&*store, &line("r", "t", 3)).await, named(ImportOutcome::Unchanged));
    assert_eq!(
        take(&*store, &line("r", "t", 12)).await,
        named(ImportOutcome::Updated { steps: 9 })
    );
    let done = json!({ "run_id": "r", "task": "t", "outcome": "failure", "steps": steps(12) });
    assert_eq!(take(&*store, &done.to_string()).await, named(ImportOutcome::Updated { steps: 0 }));
    assert_eq!(take(&*store, &done.to_string()).await, named(ImportOutcome::Unchanged));
    // A shorter file replaces the stored run as well.
    assert_eq!(take(&*store, &line("r", "t", 2)).await, named(ImportOutcome::Updated { steps: 2 }));
    let all = RunFilter { count_max: 9, ..RunFilter::default() };
    let runs = store.runs(&Scope::default(), &all).await.unwrap();
    assert_eq!(runs.iter().map(|run| run.step_count).collect::<Vec<_>>(), [2]);
}

#[tokio::test]
async fn runs_with_equal_ids_are_distinguished_and_live_runs_stay() {
    let store = store().await;
    let live = RunStart {
        run: RunKey { org: "o".to_owned(), run_id: "live".to_owned() },
        task: "watched".to_owned(),
        ..RunStart::default()
    };
    store.apply(vec![Change::StartRun(Box::new(live))]).await.unwrap();
    let cases = [("live", "t", false), ("r", "one task", true), ("r", "another", false)];
    for round in 0..2 {
        for (run_id, task, keeps_its_name) in cases {
            let taken = take(&*store, &line(run_id, task, 2)).await;
            let (name, kept) = &taken[0];
            assert_eq!(name == run_id, keeps_its_name, "{name}");
            assert!(name.starts_with(run_id), "{name}");
            assert_eq!(*kept == ImportOutcome::New, round == 0, "{name} {kept:?}");
        }
    }
    let live = store.run(&Scope::org("o"), "live").await.unwrap().unwrap();
    assert_eq!((live.task.as_str(), live.step_count), ("watched", 0));
}

#[tokio::test]
async fn everything_the_source_knows_is_kept() {
    let store = store().await;
    let text = json!({
        "run_id": "r", "task": "Mend it.", "agent": "me", "model": "claude-sonnet-4-5", "outcome": "success",
        "started_ms": 1_000, "ended_ms": 9_000, "cost_usd": 0.5, "usage": {"input_tokens": 100, "output_tokens": 20},
        "steps": steps(12),
    });
    take(&*store, &text.to_string()).await;
    let run = store.run(&Scope::org("o"), "r").await.unwrap().unwrap();
    assert_eq!((run.task.as_str(), run.agent_name.as_str()), ("Mend it.", "me"));
    assert_eq!((run.model.as_str(), run.framework.as_str()), ("claude-sonnet-4-5", "runs"));
    assert_eq!((run.started_ms, run.finished_ms), (1_000, Some(9_000)));
    assert_eq!((run.outcome.as_deref(), run.tokens.total), (Some("success"), 120));
    assert!((run.cost_usd - 0.5).abs() < 1e-9, "{}", run.cost_usd);
    assert!(run.fired.contains_key("semantic_loop"), "{:?}", run.fired);
    assert!(run.high_scores.contains_key("streak"), "{:?}", run.high_scores);
    let steps = store.steps(&run.run, 0, 100).await.unwrap();
    assert!(steps.iter().all(|step| step.injections.is_empty() && !step.scores.is_empty()));
    assert!(steps.iter().any(|step| !step.evidence.is_empty()));
}

#[test]
fn what_a_run_cost_is_spread_over_its_steps() {
    let prices = Prices::new(BTreeMap::new());
    let usage = |input| RecordedUsage { input_tokens: Some(input), ..RecordedUsage::default() };
    let check = |whole: RecordedUsage, cost: Option<f64>, each: [(u64, Option<f64>); 2]| {
        let step = |(input, cost_usd)| RunStep {
            usage: usage(input),
            cost_usd,
            thought: "x".into(),
            ..RunStep::default()
        };
        let run =
            Run { usage: whole, cost_usd: cost, steps: each.map(step).to_vec(), ..Run::default() };
        let recorded = ImportedRun::assess(&run, &SOURCE, &prices).unwrap();
        let seen: Vec<_> =
            recorded.steps.iter().map(|step| (step.tokens.input, step.cost_usd)).collect();
        seen
    };
    // Steps with all usage; a run with more usage than its steps; a total cost only; no cost.
    let cases = [
        (usage(30), None, [(10, Some(0.1)), (20, Some(0.2))], [(10, 0.1), (20, 0.2)]),
        (usage(50), Some(0.6), [(10, Some(0.1)), (20, Some(0.2))], [(10, 0.2), (40, 0.4)]),
        (RecordedUsage::default(), Some(0.6), [(10, None), (20, None)], [(10, 0.0), (20, 0.6)]),
        (RecordedUsage::default(), None, [(0, None), (0, Some(f64::NAN))], [(0, 0.0), (0, 0.0)]),
    ];
    for (whole, cost, each, expected) in cases {
        let seen = check(whole, cost, each);
        for ((tokens, cost), (tokens_expected, cost_expected)) in seen.iter().zip(expected) {
            assert_eq!(*tokens, tokens_expected, "{seen:?}");
            assert!((cost - cost_expected).abs() < 1e-9, "{seen:?}");
        }
    }
}
