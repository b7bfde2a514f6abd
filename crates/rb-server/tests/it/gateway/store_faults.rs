//! Failures of the store: the agent's request succeeds regardless.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rb_engine::analysis::embedding::Vector;
use rb_engine::config::Engine;
use rb_store::RunKey;

use super::Stage;
use super::dialects::{DIALECTS, Dialect, SIGN, obliging};
use rb_runtime::auth::DEFAULT_ORG;
use rb_runtime::runs::LiveRun;
use rb_testkit::Fault;

const WEAK: [Fault; 4] = [Fault::Unavailable, Fault::Locked, Fault::DiskFull, Fault::PanicOnRead];
/// Much shorter than the wait for a locked store, and much longer than a request on a busy machine.
const SOON: Duration = Duration::from_secs(2);

/// Starts a gateway that does not wait for its store.
async fn hasty() -> Stage {
    let mut raw = super::patient();
    raw.gateway.decision_timeout = Duration::from_millis(200);
    Stage::with(raw, obliging).await
}

/// Sends a request of an agent, checks that the response is unmodified and fast, and returns the upstream request.
async fn call(stage: &Stage, dialect: Dialect, run: &str, turns: usize) -> String {
    let body = dialect.request("m", &dialect.history(turns));
    let begun = Instant::now();
    let got = stage.post(dialect.path(), &[("x-reasonblocks-run-id", run)], &body).await;
    assert_eq!((got.status, got.json()), (200, dialect.body("m")), "{}", got.text());
    assert!(begun.elapsed() < SOON, "{dialect:?}: {:?}", begun.elapsed());
    stage.upstream.seen().last().unwrap().text()
}

#[tokio::test]
async fn a_new_run_goes_through_whatever_the_store_does() {
    for weakness in WEAK {
        let stage = hasty().await;
        stage.store.set_fault(weakness);
        for dialect in DIALECTS {
            let sent = call(&stage, dialect, "new", 2).await;
            assert_eq!(sent, dialect.request("m", &dialect.history(2)), "{weakness:?}");
        }
        stage.store.set_fault(Fault::None);
        call(&stage, Dialect::Chat, "after", 2).await;
        assert_eq!(stage.steps("after").await.len(), 2, "{weakness:?}: it goes on as before");
    }
}

#[tokio::test]
async fn a_known_run_is_steered_from_memory_while_the_store_is_away() {
    for weakness in [Fault::Unavailable, Fault::Locked, Fault::DiskFull] {
        for dialect in DIALECTS {
            let stage = hasty().await;
            call(&stage, dialect, "known", 1).await;
            stage.store.set_fault(weakness);
            let mut is_steered = false;
            for turns in 2..10 {
                is_steered |= call(&stage, dialect, "known", turns).await.contains(SIGN);
            }
            assert!(is_steered, "{weakness:?} {dialect:?}");
        }
    }
}

#[tokio::test]
async fn whoever_watches_a_project_hears_of_its_steps() {
    let stage = Stage::new(obliging).await;
    let key = stage.key_of("web").await;
    let mut heard = stage.app.runtime.events.subscribe();
    let headers = [("x-reasonblocks-run-id", "r"), ("x-reasonblocks-key", key.as_str())];
    let body = Dialect::Chat.request("m", &Dialect::Chat.history(1));
    assert_eq!(stage.post(Dialect::Chat.path(), &headers, &body).await.status, 200);
    let event = heard.recv().await.unwrap();
    assert_eq!((event.run_id.as_str(), event.project_id.as_str()), ("r", "web"));
}

#[tokio::test]
async fn what_waits_for_a_full_disk_is_stored_once_there_is_room() {
    let stage = Stage::new(obliging).await;
    stage.store.set_fault(Fault::DiskFull);
    for turns in 0..4 {
        call(&stage, Dialect::Anthropic, "full", turns).await;
    }
    stage.store.set_fault(Fault::None);
    assert_eq!(stage.steps("full").await.len(), 4);
}

#[tokio::test]
async fn a_run_goes_on_after_a_panic_in_the_middle() {
    let mut stage = Stage::new(obliging).await;
    call(&stage, Dialect::Anthropic, "shaken", 1).await;
    stage.restart().await; // nothing is in memory
    stage.store.set_fault(Fault::PanicOnRead);
    call(&stage, Dialect::Anthropic, "shaken", 2).await;
    assert!(stage.failed_open() > 0, "it is counted");
    stage.store.set_fault(Fault::None);
    call(&stage, Dialect::Anthropic, "shaken", 3).await;
    let indices: Vec<u32> =
        stage.steps("shaken").await.iter().map(|step| step.step_index).collect();
    assert_eq!(indices, [0, 1, 2], "no step is lost and none is there twice");
}

#[tokio::test]
async fn an_engine_that_panics_harms_no_call() {
    let stage = Stage::new(obliging).await;
    for dialect in DIALECTS {
        let run_id = format!("{dialect:?}");
        let run = RunKey { org: DEFAULT_ORG.to_owned(), run_id: run_id.clone() };
        let panics = |_: &str| -> Vector { panic!("injected") };
        let rules = Engine::default().with_embedder(Arc::new(panics));
        stage.app.runtime.runs.lock(&run).await.replace(LiveRun::with_engine(Arc::new(rules)));
        for turns in 0..8 {
            call(&stage, dialect, &run_id, turns).await;
        }
    }
}

#[tokio::test]
async fn a_known_key_is_believed_and_an_unknown_one_is_not_refused_for_our_fault() {
    for weakness in [Fault::Unavailable, Fault::Locked] {
        let stage = hasty().await;
        let key = stage.key().await;
        let dialect = Dialect::Anthropic;
        let body = dialect.request("m", &dialect.history(1));
        let ask = async |key: &str| {
            let begun = Instant::now();
            let got = stage.post(dialect.path(), &[("x-reasonblocks-key", key)], &body).await;
            (got.status, got.json()["error"]["type"].to_string(), begun.elapsed())
        };
        assert_eq!(ask(&key).await.0, 200);
        assert_eq!(ask("rb_test_other").await.0, 401, "the store knows that it is none");
        stage.store.set_fault(weakness);
        tokio::time::sleep(Duration::from_millis(600)).await; // what was remembered is asked for again
        let (status, _, took) = ask(&key).await;
        assert_eq!(status, 200, "{weakness:?}");
        assert!(took < SOON, "{weakness:?}: {took:?}");
        let (status, kind, took) = ask("rb_test_never_seen").await;
        assert_eq!((status, kind.as_str()), (503, "\"api_error\""), "{weakness:?}");
        assert!(took < 2 * SOON, "{weakness:?}: {took:?}");
    }
}
