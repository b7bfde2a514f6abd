//! Copies between stores: complete, incremental and in both directions.

use std::sync::Arc;

use rb_store::{
    Change, ConversationRow, FindingRow, KeyRow, PatternFilter, PatternRow, ProfileRow, RunFilter,
    RunKey, RunStart, Scope, StepRow, Store, Tokens, copy, count_rows, open,
};

use crate::cluster::Cluster;

fn run(at: u32) -> RunKey {
    RunKey { org: format!("org {}", at % 3), run_id: format!("run {at}") }
}

fn steps(at: u32, count: u32) -> impl Iterator<Item = Change> {
    (0..count).map(move |step_index| {
        Change::PutStep(Arc::new(StepRow {
            run: run(at),
            step_index,
            at_ms: i64::from(at) * 1_000 + i64::from(step_index),
            thought: format!("zero \0 and {step_index}"),
            total_score: f64::from(step_index % 10) / 10.0,
            fired: if step_index % 4 == 1 { vec!["repeat".to_owned()] } else { vec![] },
            tokens: Tokens { total: 10, input: 8, output: 2, ..Tokens::default() },
            injections: vec!["advice".to_owned()],
            state: if step_index % 2 == 0 { "SLOW".to_owned() } else { String::new() },
            ..StepRow::default()
        }))
    })
}

/// Fills a store with rows of every kind; deleted runs stay counted as usage.
async fn fill(store: &Arc<dyn Store>) {
    let mut changes = Vec::new();
    for at in 0..30 {
        let task = format!("task {at}");
        changes.push(Change::StartRun(Box::new(RunStart {
            run: run(at),
            at_ms: i64::from(at) * 1_000,
            task,
            ..RunStart::default()
        })));
        changes.extend(steps(at, at * 20 % 450));
        changes.push(Change::PutConversation(Box::new(ConversationRow {
            run: run(at),
            head: format!("head {at}"),
            answer: format!("answer {at}"),
            mark: format!("mark {at}"),
            state: "{}".to_owned(),
            at_ms: 7,
        })));
        if at % 2 == 0 {
            let outcome = "success".to_owned();
            changes.push(Change::FinishRun { run: run(at), at_ms: 9_000_000, outcome });
        }
    }
    changes.push(Change::DeleteRun(run(7)));
    let org = || "org 0".to_owned();
    let name = || "n".to_owned();
    changes.extend([
        Change::PutPattern(Box::new(PatternRow {
            org: org(),
            tier: "e1".to_owned(),
            pattern_id: name(),
            uses: 4,
            ..PatternRow::default()
        })),
        Change::PutFinding(Box::new(FindingRow {
            org: org(),
            codebase: name(),
            finding_id: name(),
            ..FindingRow::default()
        })),
        Change::PutProfile(Box::new(ProfileRow {
            org: org(),
            profile_id: name(),
            ..ProfileRow::default()
        })),
        Change::PutKey(Box::new(KeyRow {
            key_id: name(),
            hash: name(),
            org: "keys only".to_owned(),
            ..KeyRow::default()
        })),
        Change::PutSetting { name: name(), value: "v".to_owned() },
    ]);
    store.apply(changes).await.expect("written");
}

async fn check_same(one: &Arc<dyn Store>, other: &Arc<dyn Store>) {
    assert_eq!(count_rows(one).await.expect("counted"), count_rows(other).await.expect("counted"));
    let unlimited = Scope::default();
    let patterns = PatternFilter { count_max: 1_000, ..PatternFilter::default() };
    let all = RunFilter { count_max: 1_000, ..RunFilter::default() };
    let runs = one.runs(&unlimited, &all).await.expect("runs");
    assert_eq!(runs, other.runs(&unlimited, &all).await.expect("runs"));
    for row in &runs {
        let steps = one.steps(&row.run, 0, u32::MAX).await.expect("steps");
        assert_eq!(steps, other.steps(&row.run, 0, u32::MAX).await.expect("steps"));
    }
    for org in one.orgs().await.expect("organisations") {
        let usage = one.usage(&org, 0).await.expect("usage");
        assert_eq!(usage, other.usage(&org, 0).await.expect("usage"), "{org}");
    }
    let rest = async |store: &Arc<dyn Store>| {
        (
            store.keys().await.expect("keys"),
            store.patterns(&unlimited, &patterns).await.expect("patterns"),
            store.conversations(None, 1_000).await.expect("conversations"),
            store.settings().await.expect("settings"),
        )
    };
    assert_eq!(rest(one).await, rest(other).await);
}

async fn copied(from: &Arc<dyn Store>, to: &Arc<dyn Store>) -> u64 {
    let mut runs = 0;
    copy(from, to, |_, copied| runs = copied).await.expect("copied");
    runs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_complete_and_a_second_copy_transfers_only_changes() {
    let Some(cluster) = Cluster::shared() else { return };
    let from = open("sqlite::memory:").await.expect("a store");
    let to = open(&cluster.database()).await.expect("a store");
    fill(&from).await;
    assert_eq!(copied(&from, &to).await, 29);
    check_same(&from, &to).await;
    assert_eq!(copied(&from, &to).await, 0, "nothing has changed");
    // Changes during a copy.
    let later = steps(3, 200).chain([Change::DeleteRun(run(5))]).chain(steps(50, 3));
    from.apply(later.collect()).await.expect("written");
    let all = PatternFilter { count_max: 1, ..PatternFilter::default() };
    let gone = from.patterns(&Scope::default(), &all).await.expect("patterns").remove(0);
    let PatternRow { org, tier, pattern_id, .. } = gone;
    let gone = Change::DeletePattern { org, tier, pattern_id };
    assert_eq!(from.apply(vec![gone]).await.expect("deleted"), [1]);
    assert_eq!(copied(&from, &to).await, 2);
    check_same(&from, &to).await;
    // Back to SQLite.
    let back = open("sqlite::memory:").await.expect("a store");
    assert_eq!(copied(&to, &back).await, 29);
    check_same(&from, &back).await;
}
