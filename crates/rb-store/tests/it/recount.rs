//! Property tests: after random changes of a few runs, all aggregates equal a recount.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use rb_store::{
    Change, RunFilter, RunKey, RunStart, Scope, Scores, StepRow, StoreError, Tokens, open,
};
use rb_testkit::store_contract;
use serde_json::{Map, Value};

use crate::cluster::Cluster;

const DAY_MS: i64 = 86_400_000;

fn run_key() -> impl Strategy<Value = RunKey> {
    (select(vec!["a", "b"]), select(vec!["r", "s"]))
        .prop_map(|(org, run_id)| RunKey { org: org.to_owned(), run_id: run_id.to_owned() })
}

fn score() -> impl Strategy<Value = f64> {
    // Limits of the severity classes, and fractions without an exact binary representation.
    select(vec![0.0, 0.1, 0.2, 0.3, 0.349_999, 0.35, 0.599_999, 0.6, 0.7, 1.0, 1.0 / 3.0])
}

fn words(from: Vec<&'static str>) -> impl Strategy<Value = Vec<String>> {
    let count = from.len();
    subsequence(from, 0..=count).prop_map(|words| words.into_iter().map(str::to_owned).collect())
}

fn step() -> impl Strategy<Value = StepRow> {
    let scores = vec((select(vec!["repeat", "drift", "calm"]), score()), 0..4);
    let rated = (run_key(), 0..4_u32, 0..3_i64, score(), scores, words(vec!["repeat", "drift"]));
    let tokens_and_cost =
        (0..5_u64, 0..500_u64, 0..9_u64, select(vec![0.0, 0.1, 0.000_1, 1.0 / 7.0]));
    let given = (
        words(vec!["advice", "[e1:p-1]", "[e3:q]"]),
        words(vec!["E1Injection"]),
        select(vec!["", "m", "n"]),
    );
    (rated, tokens_and_cost, given).prop_map(|(rated, tokens_and_cost, given)| {
        let (run, step_index, day, total_score, scores, fired) = rated;
        let (output, input, cache, cost_usd) = tokens_and_cost;
        let (injections, injection_sources, model) = given;
        let scores: Scores = scores.into_iter().map(|(name, score)| (name.into(), score)).collect();
        let tokens = Tokens {
            total: input + output,
            input,
            output,
            cache_read: cache,
            cache_write: cache / 2,
        };
        let at_ms = day * DAY_MS + i64::from(step_index);
        let model = model.to_owned();
        StepRow {
            run,
            step_index,
            at_ms,
            total_score,
            scores,
            fired,
            tokens,
            cost_usd,
            injections,
            injection_sources,
            model,
            ..StepRow::default()
        }
    })
}

fn start() -> impl Strategy<Value = RunStart> {
    let experiment = select(vec!["", "", "x", "y"]);
    (run_key(), 0..DAY_MS, select(vec!["", "m"]), select(vec!["", "f"]), experiment).prop_map(
        |(run, at_ms, model, framework, experiment)| {
            let mut metadata = Map::new();
            if !experiment.is_empty() {
                metadata.insert("experiment_id".to_owned(), Value::from(experiment));
                metadata.insert("arm".to_owned(), Value::from("on"));
            }
            let (model, framework) = (model.to_owned(), framework.to_owned());
            RunStart { run, at_ms, model, framework, metadata, ..RunStart::default() }
        },
    )
}

fn change() -> impl Strategy<Value = Change> {
    let outcome = select(vec!["success", "failure", "done"]);
    prop_oneof![
        12 => step().prop_map(|step| Change::PutStep(Arc::new(step))),
        3 => start().prop_map(|start| Change::StartRun(Box::new(start))),
        2 => (run_key(), 0..DAY_MS, outcome).prop_map(|(run, at_ms, outcome)| {
            Change::FinishRun { run, at_ms, outcome: outcome.to_owned() }
        }),
        1 => run_key().prop_map(Change::DeleteRun),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn aggregates_equal_a_recount(changes in vec(change(), 0..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let outcome = runtime.block_on(async {
            store_contract::recount(open("sqlite::memory:").await?, &changes).await
        });
        prop_assert!(outcome.is_ok(), "{outcome:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn aggregates_equal_a_recount_in_postgres(changes in vec(change(), 0..60)) {
        let Some(cluster) = Cluster::shared() else { return Ok(()) };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let outcome = runtime.block_on(async {
            store_contract::recount(open(&cluster.database()).await?, &changes).await
        });
        prop_assert!(outcome.is_ok(), "{outcome:?}");
    }

    #[test]
    fn one_call_has_the_same_result_as_separate_calls(changes in vec(change(), 0..40)) {
        let Some(cluster) = Cluster::shared() else { return Ok(()) };
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let (together, apart) = runtime.block_on(async {
            let (one, other) = (open(&cluster.database()).await?, open("sqlite::memory:").await?);
            let touched = one.apply(changes.clone()).await?;
            let mut counts = Vec::new();
            for change in &changes {
                counts.extend(other.apply(vec![change.clone()]).await?);
            }
            assert_eq!(touched, counts, "affected rows");
            let all = RunFilter { count_max: 1_000, ..RunFilter::default() };
            let unlimited = Scope::default();
            Ok::<_, StoreError>((one.runs(&unlimited, &all).await?, other.runs(&unlimited, &all).await?))
        }).expect("both answer");
        prop_assert_eq!(together, apart);
    }
}
