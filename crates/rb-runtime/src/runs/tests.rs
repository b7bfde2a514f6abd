//! Run service on an in-memory store: what is stored, returned and counted, with failures and with several nodes.

use std::sync::Arc;
use std::time::Duration;

use rb_engine::policy::Policy;
use rb_store::{
    Change, ConversationRow, PatternFilter, RunKey, RunStart, Scope, StepRow, Store, StoreError,
    Tokens,
};
use rb_testkit::{Fault, FaultyStore};
use rb_wire::model::{Run, RunStep};
use tokio::time::Instant;

use super::*;
use crate::auth::{self, Caller, KeyKind, Keys};
use crate::import::{ImportOutcome, ImportSource, ImportedRun};
use crate::retrieval::Gates;
use crate::retrieval::embedding_backend::EmbeddingConfig;
use crate::{Runtime, RuntimeConfig};

const MODEL: &str = "claude-sonnet-4-5";

async fn store() -> Arc<FaultyStore> {
    FaultyStore::new(rb_store::open("sqlite::memory:").await.unwrap())
}

/// A node on a store.
async fn node(store: &Arc<FaultyStore>) -> Runtime {
    let config = RuntimeConfig {
        static_keys: Vec::new(),
        is_loopback: true,
        gates: Gates { e1: 0.5, e2: 0.5 },
        policy: Policy { standing_rules: true, ..Policy::default() },
        intervention_cap: None,
        live_runs_max: 100,
        live_idle: Duration::from_mins(1),
        embedding: EmbeddingConfig::Builtin,
        prices: std::collections::BTreeMap::new(),
    };
    Runtime::new(config, Arc::clone(store) as Arc<dyn Store>).await.unwrap()
}

fn key(run_id: &str) -> RunKey {
    RunKey { org: auth::DEFAULT_ORG.to_owned(), run_id: run_id.to_owned() }
}

fn start(run_id: &str) -> RunStart {
    RunStart {
        run: key(run_id),
        project: "p".to_owned(),
        task: "Fix the cache".to_owned(),
        model: MODEL.to_owned(),
        ..RunStart::default()
    }
}

/// A failing test run, again and again; from the fourth on, `semantic_loop` fires.
fn step(run_id: &str, step_index: u32) -> StepRow {
    let tokens = Tokens { total: 1_100, input: 1_000, output: 100, ..Tokens::default() };
    StepRow {
        run: key(run_id),
        project: "p".to_owned(),
        step_index,
        thought: "The test still fails, let me run it again.".to_owned(),
        action: Some("bash".to_owned()),
        action_input: Some("pytest".to_owned()),
        observation: Some("1 failed: AssertionError".to_owned()),
        is_error: true,
        tokens,
        ..StepRow::default()
    }
}

async fn observe(node: &Runtime, step: StepRow) -> Result<Arc<StepRow>, RunError> {
    let run_id = step.run.run_id.clone();
    node.runs.observe(&Caller::local(), || start(&run_id), step).await
}

async fn decide(node: &Runtime, step: StepRow) -> Result<Decision, RunError> {
    let description = || start(&step.run.run_id);
    let call = CallContext::of_host(MODEL, &description);
    node.runs.decide(&Caller::local(), &call, step.clone()).await
}

async fn rows(node: &Runtime, run_id: &str) -> Vec<StepRow> {
    node.store.steps(&key(run_id), 0, 1_000).await.unwrap()
}

/// Value of a counter; 0 if it has no line.
fn counter(node: &Runtime, name: &str) -> f64 {
    let text = node.metrics.text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("reasonblocks_{name} ")));
    line.map_or(0.0, |value| value.parse().unwrap())
}

/// All metrics, except the number of replays.
fn lines(node: &Runtime) -> Vec<String> {
    let text = node.metrics.text();
    text.lines().filter(|line| !line.contains("replays")).map(str::to_owned).collect()
}

/// Compares the counters with the stored rows.
async fn assert_counters_match_rows(node: &Runtime, run_id: &str) {
    let rows = rows(node, run_id).await;
    let fired = |id: &str| rows.iter().filter(|row| row.fired.iter().any(|it| it == id)).count();
    let injected = |source: &str| {
        rows.iter().flat_map(|row| &row.injection_sources).filter(|it| *it == source).count()
    };
    let count = |count: usize| f64::from(u32::try_from(count).unwrap());
    let expected = [
        ("steps_total", count(rows.len())),
        ("monitor_fired_total{monitor=\"semantic_loop\"}", count(fired("semantic_loop"))),
        ("injections_total{source=\"monitor\"}", count(injected("monitor"))),
        ("injections_total{source=\"hand\"}", count(injected("hand"))),
        ("cost_usd_total", rows.iter().map(|row| row.cost_usd).sum()),
    ];
    for (name, expected) in expected {
        let found = counter(node, name);
        assert!((found - expected).abs() < 1e-9, "{run_id}: {name} is {found}, not {expected}");
    }
}

#[tokio::test]
async fn an_observed_step_is_stored_and_counted_once() {
    let expensive = StepRow {
        tokens: Tokens { total: 2_200, input: 2_000, output: 200, ..Tokens::default() },
        ..step("r", 2)
    };
    let told = StepRow {
        injections: vec!["look".to_owned()],
        injection_sources: vec!["monitor".to_owned()],
        ..step("r", 6)
    };
    let indices = |to: u32| (0..to).map(|index| step("r", index)).collect::<Vec<_>>();
    let cases: [(&str, Vec<StepRow>, usize); 5] = [
        ("in order", indices(8), 8),
        ("repeated", [indices(6), vec![step("r", 5), step("r", 2)]].concat(), 6),
        ("late", vec![step("r", 0), step("r", 2), step("r", 1), step("r", 3)], 4),
        ("more expensive", [indices(6), vec![expensive]].concat(), 6),
        ("with guidance, repeated", [indices(6), vec![told.clone(), told]].concat(), 7),
    ];
    for (case, steps, count) in cases {
        let node = node(&store().await).await;
        for step in steps {
            observe(&node, step).await.unwrap();
        }
        assert_eq!(rows(&node, "r").await.len(), count, "{case}");
        assert_counters_match_rows(&node, "r").await;
        let run = node.store.run(&Scope::default(), "r").await.unwrap().unwrap();
        assert_eq!((run.task.as_str(), run.model.as_str()), ("Fix the cache", MODEL), "{case}");
        assert!(run.cost_usd > 0.0, "{case}: steps cost what the model of the run costs");
    }
}

#[tokio::test]
async fn observing_out_of_order_gives_the_rows_of_the_order() {
    let changed = StepRow { observation: Some("2 failed".to_owned()), ..step("r", 4) };
    let steps = |order: &[u32]| order.iter().map(|index| step("r", *index)).collect::<Vec<_>>();
    let orders = [
        [steps(&[0, 1, 2, 3]), vec![changed.clone()], steps(&[5, 6, 7, 8])].concat(),
        [steps(&[0, 1, 2, 4, 3]), vec![changed.clone()], steps(&[5, 6, 7, 8])].concat(),
        [steps(&[0, 1, 2, 3, 4, 5]), vec![changed], steps(&[5, 6, 7, 8])].concat(),
    ];
    let mut last = Vec::new();
    for order in orders {
        let node = node(&store().await).await;
        for step in order {
            observe(&node, step).await.unwrap();
        }
        let StepRow { scores, fired, evidence, state, .. } = rows(&node, "r").await.pop().unwrap();
        assert!(!fired.is_empty());
        last.push((scores, fired, evidence, state));
    }
    assert!(last.windows(2).all(|pair| pair[0] == pair[1]), "{last:?}");
}

#[tokio::test]
async fn a_decision_is_made_once_and_repeated_for_its_step() {
    let node = node(&store().await).await;
    let mut decisions = Vec::new();
    for index in 0..8 {
        decisions.push(decide(&node, step("r", index)).await.unwrap());
    }
    assert!(decisions.iter().any(|it| it.plan.fragment.is_some()), "the trace must be steered");
    for restarted in [false, true] {
        if restarted {
            node.runs.lock(&key("r")).await.forget();
        }
        for (index, decision) in (0..).zip(&decisions) {
            let again = decide(&node, step("r", index)).await.unwrap();
            assert!(again.is_repeated && !decision.is_repeated);
            assert_eq!(again.plan, decision.plan, "step {index}, restarted: {restarted}");
            assert_eq!(again.evidence, decision.evidence, "step {index}");
        }
    }
    let states: Vec<String> = rows(&node, "r").await.into_iter().map(|row| row.state).collect();
    let expected: Vec<&str> = decisions.iter().map(|it| it.plan.pre_call().state.name()).collect();
    assert_eq!(states, expected);
    assert_counters_match_rows(&node, "r").await;
    node.patterns.flush_uses().await;
    let filter = PatternFilter { count_max: 1_000, ..PatternFilter::default() };
    let patterns = node.store.patterns(&Scope::default(), &filter).await.unwrap();
    let shown: usize = decisions.iter().map(|it| it.plan.shown().len()).sum();
    assert!(patterns.iter().map(|row| row.uses).sum::<u64>() > 0 && shown > 0);
}

#[tokio::test]
async fn steps_that_cannot_be_decided_change_nothing() {
    let node = node(&store().await).await;
    for index in [0, 1, 4] {
        decide(&node, step("r", index)).await.unwrap();
    }
    observe(&node, step("r", 5)).await.unwrap();
    node.runs.finish(&Caller::local(), start("over"), "success".to_owned()).await.unwrap();
    let before = (rows(&node, "r").await.len(), lines(&node));
    for (step, expected) in [
        (
            step("r", 3),
            "step 3 was skipped or observed without a decision; continue with a later one",
        ),
        (
            step("r", 5),
            "step 5 was skipped or observed without a decision; continue with a later one",
        ),
        (step("over", 0), "run is finished; start another one"),
    ] {
        let error = decide(&node, step).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!((rows(&node, "r").await.len(), lines(&node)), before);
}

#[tokio::test]
async fn a_key_of_another_project_finds_no_run() {
    let store = store().await;
    let node = node(&store).await;
    observe(&node, step("r", 0)).await.unwrap();
    let (secret, row) = auth::create_key(KeyKind::Test, auth::DEFAULT_ORG, "other", "k").unwrap();
    store.apply(vec![Change::PutKey(Box::new(row))]).await.unwrap();
    let caller = Keys::new(&[], true).caller(Some(&secret), &*node.store).await.unwrap();
    let runs = &node.runs;
    let description = || start("r");
    let call = CallContext::of_host(MODEL, &description);
    let trace = Trace { start: start("r"), steps: vec![step("r", 1)], outcome: String::new() };
    for is_loaded in [true, false] {
        if !is_loaded {
            runs.lock(&key("r")).await.forget();
        }
        let results = [
            ("observe", runs.observe(&caller, description, step("r", 1)).await.err()),
            ("decide", runs.decide(&caller, &call, step("r", 1)).await.err()),
            ("start", runs.start(&caller, start("r")).await.err()),
            ("trace", runs.observe_trace(&caller, trace.clone()).await.err()),
            ("finish", runs.finish(&caller, start("r"), String::new()).await.err()),
        ];
        for (call, error) in results {
            assert!(matches!(error, Some(RunError::NotFound)), "{call}: {error:?}");
        }
    }
    assert_eq!(rows(&node, "r").await.len(), 1);
}

#[tokio::test]
async fn nodes_take_turns_with_a_run_and_count_each_step_once() {
    let store = store().await;
    store.set_shared(true);
    let nodes = [node(&store).await, node(&store).await];
    let alone = node(&self::store().await).await;
    for index in 0..10 {
        let here = decide(&nodes[index as usize % 2], step("r", index)).await.unwrap();
        let there = decide(&alone, step("r", index)).await.unwrap();
        assert_eq!(here.plan, there.plan, "step {index}");
    }
    let strip = |rows: Vec<StepRow>| {
        rows.into_iter().map(|row| (row.step_index, row.scores, row.injections)).collect::<Vec<_>>()
    };
    assert_eq!(strip(rows(&nodes[0], "r").await), strip(rows(&alone, "r").await));
    let total: f64 = nodes.iter().map(|node| counter(node, "steps_total")).sum();
    assert!((total - 10.0).abs() < 1e-9, "{total}");
}

#[tokio::test]
async fn concurrent_steps_of_two_nodes_are_all_stored() {
    let store = store().await;
    store.set_shared(true);
    let nodes = [node(&store).await, node(&store).await].map(Arc::new);
    let mut tasks = Vec::new();
    for index in 0..20_u32 {
        let node = Arc::clone(&nodes[index as usize % 2]);
        tasks.push(tokio::spawn(async move { observe(&node, step("r", index)).await.map(drop) }));
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let indices: Vec<u32> = rows(&nodes[0], "r").await.iter().map(|row| row.step_index).collect();
    assert_eq!(indices, (0..20).collect::<Vec<_>>());
    let total: f64 = nodes.iter().map(|node| counter(node, "steps_total")).sum();
    assert!((total - 20.0).abs() < 1e-9, "{total}");
}

#[tokio::test]
async fn a_conflict_is_retried_a_limited_number_of_times() {
    let store = store().await;
    let node = node(&store).await;
    decide(&node, step("r", 0)).await.unwrap();
    node.messages.add(&key("r"), "Look at the lexer.").await.unwrap();
    store.set_fault(Fault::Conflict);
    let errors =
        [decide(&node, step("r", 1)).await.map(drop), observe(&node, step("r", 1)).await.map(drop)];
    for error in errors {
        assert!(matches!(error, Err(RunError::Conflict { attempts: MAX_ATTEMPTS })), "{error:?}");
    }
    let conflicts = counter(&node, "steps_overtaken_total");
    assert!((conflicts - 2.0 * f64::from(MAX_ATTEMPTS)).abs() < 1e-9, "{conflicts}");
    store.set_fault(Fault::None);
    assert_eq!(rows(&node, "r").await.len(), 1);
}

#[tokio::test]
async fn a_failed_decision_leaves_no_trace_and_can_be_repeated() {
    for fault in [Fault::Unavailable, Fault::DiskFull] {
        let (failing, steady) = (store().await, store().await);
        let nodes = [node(&failing).await, node(&steady).await];
        for index in 0..6 {
            for node in &nodes {
                decide(node, step("r", index)).await.unwrap();
            }
        }
        let before = lines(&nodes[0]);
        failing.set_fault(fault);
        for _ in 0..3 {
            let error = decide(&nodes[0], step("r", 6)).await.unwrap_err();
            assert!(matches!(error, RunError::Store(StoreError::Unavailable(_))), "{error:?}");
        }
        failing.set_fault(Fault::None);
        assert_eq!(before, lines(&nodes[0]), "{fault:?}");
        for index in 6..9 {
            let [here, there] = [&nodes[0], &nodes[1]];
            let (here, there) = (
                decide(here, step("r", index)).await.unwrap(),
                decide(there, step("r", index)).await.unwrap(),
            );
            assert_eq!(
                (here.is_repeated, here.plan),
                (false, there.plan),
                "{fault:?}: step {index}"
            );
        }
        assert_counters_match_rows(&nodes[0], "r").await;
    }
}

/// Context of a gateway request.
fn queued<'a>(
    description: &'a (dyn Fn() -> RunStart + Send + Sync),
    companion: &'a (dyn Fn() -> Option<Change> + Send + Sync),
) -> CallContext<'a> {
    CallContext {
        deadline: Some(Instant::now() + Duration::from_millis(300)),
        durability: Durability::Queued,
        delivery: Delivery::Confirmed,
        companion,
        ..CallContext::of_host(MODEL, description)
    }
}

fn conversation(run_id: &str, state: &str) -> Change {
    let row =
        ConversationRow { run: key(run_id), state: state.to_owned(), ..ConversationRow::default() };
    Change::PutConversation(Box::new(row))
}

#[tokio::test]
async fn queued_steps_wait_for_the_store_on_one_node_and_not_on_several() {
    let description = || start("r");
    let companion = || Some(conversation("r", "1"));
    for (is_shared, fault, succeeds) in [
        (false, Fault::None, true),
        (false, Fault::DiskFull, true),
        (true, Fault::None, true),
        (true, Fault::DiskFull, false),
        (true, Fault::Conflict, false),
    ] {
        let case = format!("shared: {is_shared}, {fault:?}");
        let store = store().await;
        let node = node(&store).await;
        store.set_shared(is_shared);
        store.set_fault(fault);
        let call = queued(&description, &companion);
        let mut session = node.runs.lock(&key("r")).await;
        let decided = session.decide(&call, vec![step("r", 0), step("r", 1)]).await;
        assert_eq!(decided.is_ok(), succeeds, "{case}: {decided:?}");
        assert_eq!(session.is_loaded(), succeeds, "{case}: a state that was not stored is dropped");
        drop(session);
        store.set_fault(Fault::None);
        node.write_queue.flush().await;
        let stored = rows(&node, "r").await.len();
        assert_eq!(stored, if succeeds { 2 } else { 0 }, "{case}");
        assert!(
            (counter(&node, "steps_total") - f64::from(u8::try_from(stored).unwrap())).abs() < 1e-9,
            "{case}"
        );
        let companion = node.store.conversation(&key("r")).await.unwrap();
        assert_eq!(companion.is_some(), succeeds, "{case}");
    }
}

#[tokio::test]
async fn a_decision_ends_at_its_deadline() {
    let store = store().await;
    store.set_shared(true);
    let node = node(&store).await;
    let (description, companion) = (|| start("r"), || None);
    let mut session = node.runs.lock(&key("r")).await;
    session.decide(&queued(&description, &companion), vec![step("r", 0)]).await.unwrap();
    store.set_fault(Fault::Locked);
    let begun = Instant::now();
    let late = session.decide(&queued(&description, &companion), vec![step("r", 1)]).await;
    assert!(matches!(late, Err(RunError::TimedOut)), "{late:?}");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert!(!session.is_loaded());
}

#[tokio::test]
async fn a_repeated_call_is_stored_again_and_not_counted_again() {
    let node = node(&store().await).await;
    let (description, companion) = (|| start("r"), || None);
    let mut session = node.runs.lock(&key("r")).await;
    let mut decided = Decided::default();
    for index in 0..8 {
        let call = queued(&description, &companion);
        decided = session.decide(&call, vec![step("r", index)]).await.unwrap();
        node.runs.guidance_delivered(&decided);
    }
    let plan = session.plan().cloned().unwrap();
    let again = StepRow { model: "other".to_owned(), ..StepRow::clone(&decided.row) };
    session.repeat(&queued(&description, &companion), again).await.unwrap();
    assert_eq!(session.plan(), Some(&plan));
    drop(session);
    node.write_queue.flush().await;
    let stored = rows(&node, "r").await;
    assert_eq!((stored.len(), stored[7].model.as_str()), (8, "other"));
    let injected = stored.iter().flat_map(|row| &row.injection_sources).count();
    assert!(injected > 0, "the trace must be steered");
    assert_counters_match_rows(&node, "r").await;
}

#[tokio::test]
async fn a_discarded_plan_is_offered_again() {
    let node = node(&store().await).await;
    let (description, companion) = (|| start("r"), || None);
    node.messages.add(&key("r"), "Look at the lexer.").await.unwrap();
    let mut shown = Vec::new();
    for index in 0..2 {
        let mut session = node.runs.lock(&key("r")).await;
        let call = queued(&description, &companion);
        let Decided { mut row, messages, .. } =
            session.decide(&call, vec![step("r", index)]).await.unwrap();
        drop(session);
        shown.push(row.injection_sources.clone());
        node.runs.discard_plan(&mut row, messages).await;
        assert!(row.injection_sources.is_empty() && row.injections.is_empty());
        node.runs.amend(row);
    }
    assert_eq!(shown[0], shown[1]);
    assert_eq!(shown[0][0], "hand");
    node.write_queue.flush().await;
    assert_counters_match_rows(&node, "r").await;
}

#[tokio::test]
async fn a_trace_and_an_imported_run_are_counted_once() {
    let node = node(&store().await).await;
    for _ in 0..2 {
        let steps = [3, 1, 0, 2, 2].map(|index| step("whole", index)).to_vec();
        let trace = Trace { start: start("whole"), steps, outcome: "success".to_owned() };
        node.runs.observe_trace(&Caller::local(), trace).await.unwrap();
    }
    assert_counters_match_rows(&node, "whole").await;
    let run = node.store.run(&Scope::default(), "whole").await.unwrap().unwrap();
    assert_eq!((run.step_count, run.outcome.as_deref()), (4, Some("success")));
    let source =
        ImportSource { org: "o", project: "p", format: "test", file: "", fallback_id: "recorded" };
    let thoughts = ["one", "two", "three"]
        .map(|thought| RunStep { thought: thought.into(), ..RunStep::default() });
    for (count, expected, steps) in [
        (2, ImportOutcome::New, 6.0),
        (2, ImportOutcome::Unchanged, 6.0),
        (3, ImportOutcome::Updated { steps: 1 }, 7.0),
    ] {
        let run = Run { steps: thoughts[..count].to_vec(), ..Run::default() };
        let imported = ImportedRun::assess(&run, &source, &node.prices).unwrap();
        let (_, outcome) = node.runs.import(imported).await.unwrap();
        assert_eq!(outcome, expected);
        assert!((counter(&node, "steps_total") - steps).abs() < 1e-9, "{expected:?}");
    }
}

#[tokio::test]
async fn an_operator_key_finds_the_newest_run_with_an_id() {
    let node = node(&store().await).await;
    for (org, at_ms) in [("acme", 1), ("globex", 2)] {
        let run = RunKey { org: org.to_owned(), run_id: "shared".to_owned() };
        let start = RunStart { run, at_ms, ..RunStart::default() };
        node.runs.start(&Caller::local(), start).await.unwrap();
    }
    for (org, run_id, expected) in [
        (None, "shared", "globex"),
        (Some("acme"), "shared", "acme"),
        (None, "unknown", auth::DEFAULT_ORG),
    ] {
        let run = node.runs.find(&Caller::local(), org, run_id).await.unwrap();
        assert_eq!(run.org, expected, "{org:?} {run_id}");
    }
}

#[tokio::test]
async fn a_closing_step_is_stored_once_and_applied_when_the_run_continues() {
    let closing =
        || StepRow { action: None, action_input: None, observation: None, ..step("r", 6) };
    let next = || step("r", 7);
    for (is_shared, is_restarted) in [(false, false), (false, true), (true, false), (true, true)] {
        let case = format!("shared: {is_shared}, restarted: {is_restarted}");
        let store = store().await;
        store.set_shared(is_shared);
        let node = node(&store).await;
        let plain = self::node(&self::store().await).await;
        let (description, companion) = (|| start("r"), || None);
        for index in 0..6 {
            for node in [&node, &plain] {
                let call = queued(&description, &companion);
                let mut session = node.runs.lock(&key("r")).await;
                session.decide(&call, vec![step("r", index)]).await.unwrap();
            }
        }
        for _ in 0..2 {
            node.runs.close(closing()).await.unwrap();
        }
        node.write_queue.flush().await;
        let closed = rows(&node, "r").await;
        assert_eq!(closed.len(), 7, "{case}");
        assert!((counter(&node, "steps_total") - 7.0).abs() < 1e-9, "{case}");
        if is_restarted {
            node.runs.lock(&key("r")).await.forget();
        }
        for node in [&node, &plain] {
            let call = queued(&description, &companion);
            let mut session = node.runs.lock(&key("r")).await;
            session.decide(&call, vec![closing(), next()]).await.unwrap();
            drop(session);
            node.runs.close(closing()).await.unwrap(); // too late: the run has continued
            node.write_queue.flush().await;
        }
        let scores = |rows: Vec<StepRow>| {
            rows.into_iter().map(|row| (row.step_index, row.scores, row.fired)).collect::<Vec<_>>()
        };
        assert_eq!(scores(rows(&node, "r").await), scores(rows(&plain, "r").await), "{case}");
        assert!((counter(&node, "steps_total") - 8.0).abs() < 1e-9, "{case}");
    }
}

#[tokio::test]
async fn a_closing_step_does_not_replace_a_step_of_another_node() {
    let store = store().await;
    store.set_shared(true);
    let (first, second) = (node(&store).await, node(&store).await);
    let (description, companion) = (|| start("r"), || None);
    for (node, index) in [(&first, 0), (&second, 1)] {
        let call = queued(&description, &companion);
        let mut session = node.runs.lock(&key("r")).await;
        session.load().await.unwrap();
        session.decide(&call, vec![step("r", index)]).await.unwrap();
    }
    // The first node still holds the state before the second step.
    let closing = StepRow { action: None, action_input: None, observation: None, ..step("r", 1) };
    first.runs.close(closing).await.unwrap();
    let stored = rows(&first, "r").await;
    assert_eq!(stored.len(), 2);
    assert_eq!(stored[1].action.as_deref(), Some("bash"));
}
