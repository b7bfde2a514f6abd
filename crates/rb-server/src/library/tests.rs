//! The library sees changes of others, and lives without its better embedder.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde_json::{Value, json};

use super::*;
use crate::config::Embedding;

fn row(id: &str, situation: &str) -> Change {
    let fields = json!({"situation": situation, "unlock": "u"});
    Change::PutPattern(Box::new(PatternRow {
        org: "o".to_owned(),
        tier: "e1".to_owned(),
        pattern_id: id.to_owned(),
        fields: fields.as_object().cloned().unwrap_or_default(),
        ..PatternRow::default()
    }))
}

async fn found(library: &Arc<Library>, context: &str) -> Vec<String> {
    let (tier, model) = (Some(Tier::E1), "");
    let wanted = Wanted { org: "o", tier, context, failure_type: None, model, top_k: 5 };
    let found = library.find(&wanted).await.unwrap();
    found.iter().map(|found| found.row.pattern_id.clone()).collect()
}

const GATES: Gates = Gates { e1: 0.8, e2: 0.7 };

#[tokio::test]
async fn changes_are_seen_at_once_here_and_soon_elsewhere() {
    let store = rb_store::open("sqlite::memory:").await.unwrap();
    let (here, elsewhere) = (
        Library::new(Arc::clone(&store), GATES, None),
        Library::new(Arc::clone(&store), GATES, None),
    );
    for library in [&here, &elsewhere] {
        assert!(found(library, "session token expiration").await.is_empty());
    }
    store.apply(vec![row("p", "session token expiration")]).await.unwrap();
    here.forget();
    assert_eq!(found(&here, "session token expiration").await, ["p"]);
    let begun = Instant::now();
    while found(&elsewhere, "session token expiration").await.is_empty() {
        assert!(begun.elapsed() < LOOKED_EVERY * 5, "another process never hears of it");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_reading_that_takes_long_is_not_waited_for_by_everybody() {
    let store = rb_store::open("sqlite::memory:").await.unwrap();
    let library = Library::new(Arc::clone(&store), GATES, None);
    store.apply(vec![row("p", "session token expiration")]).await.unwrap();
    assert_eq!(found(&library, "session token expiration").await, ["p"]);
    library.forget();
    let _reading = library.reading.lock().await;
    library.looked().reading_since = Some(Instant::now());
    assert!(library.looked().patience() > WAITED_MAX / 2, "one that has just begun is waited for");
    library.looked().reading_since = Instant::now().checked_sub(WAITED_MAX);
    let found = found(&library, "session token expiration");
    let found = tokio::time::timeout(WAITED_MAX / 2, found).await;
    assert_eq!(found.expect("at once"), ["p"], "what has come is searched");
}

/// Changes and removals are laid on, and a large library comes in page by page.
#[tokio::test]
async fn what_is_changed_or_removed_is_found_no_more() {
    let store = rb_store::open("sqlite::memory:").await.unwrap();
    let library = Library::new(Arc::clone(&store), GATES, None);
    let many = (0..2 * CHANGES_AT_ONCE).map(|at| row(&format!("p{at:04}"), &format!("step {at}")));
    store.apply(many.collect()).await.unwrap();
    let Change::PutPattern(mut several) = row("several", "x") else { panic!() };
    several.context = "paint the garden fence\nthe disk is full".to_owned();
    store.apply(vec![Change::PutPattern(several)]).await.unwrap();
    assert_eq!(found(&library, "paint the garden fence").await, ["several"]);
    assert_eq!(library.shelf().version, u64::from(2 * CHANGES_AT_ONCE) + 1);

    store.apply(vec![row("several", "session token expiration")]).await.unwrap();
    library.forget();
    for gone in ["paint the garden fence", "the disk is full"] {
        assert!(found(&library, gone).await.is_empty(), "{gone}");
    }
    assert_eq!(found(&library, "session token expiration").await, ["several"]);

    let (org, tier, pattern_id) = ("o".to_owned(), "e1".to_owned(), "several".to_owned());
    store.apply(vec![Change::DeletePattern { org, tier, pattern_id }]).await.unwrap();
    library.forget();
    assert!(found(&library, "session token expiration").await.is_empty());
}

#[tokio::test]
async fn a_pattern_may_ask_for_more_and_describe_several_situations() {
    let store = rb_store::open("sqlite::memory:").await.unwrap();
    let library = Library::new(Arc::clone(&store), GATES, None);
    let Change::PutPattern(mut strict) = row("strict", "session token expiration") else {
        panic!()
    };
    strict.gate_threshold = Some(0.999);
    let Change::PutPattern(mut several) = row("several", "x") else { panic!() };
    several.context = "paint the garden fence\nthe disk is full".to_owned();
    let Change::PutPattern(mut opus) = row("opus", "the disk is full") else { panic!() };
    opus.model_family = Some("opus".to_owned());
    let changes = [strict, several, opus].map(Change::PutPattern);
    store.apply(changes.to_vec()).await.unwrap();
    for (context, expected) in [
        ("session expiry", vec![]),
        ("the disk is full", vec!["opus", "several"]),
        ("Let me think.\npaint the garden fence", vec!["several"]),
    ] {
        let mut ids = found(&library, context).await;
        ids.sort();
        assert_eq!(ids, expected, "{context}");
    }
    let wanted = Wanted {
        org: "o",
        tier: Some(Tier::E1),
        context: "the disk is full",
        failure_type: None,
        model: "claude-haiku-4-5",
        top_k: 5,
    };
    let for_haiku = library.find(&wanted).await.unwrap();
    assert_eq!(for_haiku.len(), 1, "patterns for another family are left out");
}

/// An endpoint for which everything about fences is the same; it can be switched off.
async fn endpoint(is_up: &'static AtomicBool) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let answer = move |body: String| async move {
        if !is_up.load(Ordering::SeqCst) {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
        let asked: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(asked["model"], "m");
        let rows = asked["input"].as_array().unwrap().iter().enumerate().map(|(index, text)| {
            let is_fence = text.as_str().unwrap().contains("fence");
            json!({"index": index, "embedding": if is_fence { [1.0, 0.0] } else { [0.0, 1.0] }})
        });
        let rows: Vec<Value> = rows.collect();
        axum::Json(json!({"data": rows})).into_response()
    };
    tokio::spawn(async move {
        axum::serve(listener, axum::Router::new().fallback(answer)).await.unwrap();
    });
    address
}

#[tokio::test]
async fn a_better_embedder_is_used_while_it_answers() {
    static IS_UP: AtomicBool = AtomicBool::new(true);
    let store = rb_store::open("sqlite::memory:").await.unwrap();
    store
        .apply(vec![row("fence", "paint the fence"), row("time", "session expiry")])
        .await
        .unwrap();
    let (url, model) = (endpoint(&IS_UP).await, "m".to_owned());
    let embedding = Embedding::Endpoint { url, model, key: "k".to_owned() };
    assert!(!format!("{embedding:?}").contains("\"k\""), "keys stay out of logs");
    let better = Better::open(&embedding).unwrap();
    let library = Library::new(store, GATES, better);
    let reworded = "a fence, and what colours might be done with it some day";
    let begun = Instant::now();
    // The vectors of the patterns come in the background.
    while found(&library, reworded).await != ["fence"] {
        assert!(begun.elapsed() < Duration::from_secs(20), "the better vectors never came");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    IS_UP.store(false, Ordering::SeqCst);
    assert_eq!(
        found(&library, "session token expiration").await,
        ["time"],
        "the packed vectors serve"
    );
    assert_eq!(found(&library, reworded).await, ["fence"], "what was asked before is remembered");
}
