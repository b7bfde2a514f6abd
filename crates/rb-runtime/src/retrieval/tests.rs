//! Refresh of the pattern index, and fallback to the built-in vectors.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde_json::{Value, json};

use super::embedding_backend::EmbeddingConfig;
use super::*;

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

async fn found(retriever: &Arc<PatternRetriever>, context: &str) -> Vec<String> {
    let (tier, model) = (Some(Tier::E1), "");
    let query = PatternQuery { org: "o", tier, context, failure_type: None, model, top_k: 5 };
    let found = retriever.find(&query).await.unwrap();
    found.iter().map(|found| found.row.pattern_id.clone()).collect()
}

const GATES: Gates = Gates { e1: 0.8, e2: 0.7 };

#[tokio::test]
async fn changes_are_visible_at_once_here_and_soon_elsewhere() {
    let store = rb_store::open("sqlite::memory:").await.unwrap();
    let (here, elsewhere) = (
        PatternRetriever::new(Arc::clone(&store), GATES, None),
        PatternRetriever::new(Arc::clone(&store), GATES, None),
    );
    for retriever in [&here, &elsewhere] {
        assert!(found(retriever, "session token expiration").await.is_empty());
    }
    store.apply(vec![row("p", "session token expiration")]).await.unwrap();
    here.invalidate();
    assert_eq!(found(&here, "session token expiration").await, ["p"]);
    let begun = Instant::now();
    while found(&elsewhere, "session token expiration").await.is_empty() {
        assert!(begun.elapsed() < REFRESH_INTERVAL * 5, "the change never becomes visible");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn queries_do_not_wait_for_a_slow_refresh() {
    let store = rb_store::open("sqlite::memory:").await.unwrap();
    let retriever = PatternRetriever::new(Arc::clone(&store), GATES, None);
    store.apply(vec![row("p", "session token expiration")]).await.unwrap();
    assert_eq!(found(&retriever, "session token expiration").await, ["p"]);
    retriever.invalidate();
    let _refreshing = retriever.refreshing.lock().await;
    retriever.freshness.lock().refresh_started = Some(Instant::now());
    assert!(
        retriever.freshness.lock().wait_budget() > MAX_REFRESH_WAIT / 2,
        "a new refresh is awaited"
    );
    retriever.freshness.lock().refresh_started = Instant::now().checked_sub(MAX_REFRESH_WAIT);
    let found = found(&retriever, "session token expiration");
    let found = tokio::time::timeout(MAX_REFRESH_WAIT / 2, found).await;
    assert_eq!(found.expect("at once"), ["p"], "the loaded patterns are searched");
}

/// Changes and removals are applied, and a large library loads in batches.
#[tokio::test]
async fn changed_and_removed_situations_are_not_found() {
    let store = rb_store::open("sqlite::memory:").await.unwrap();
    let retriever = PatternRetriever::new(Arc::clone(&store), GATES, None);
    let many = (0..2 * CHANGES_BATCH).map(|at| row(&format!("p{at:04}"), &format!("step {at}")));
    store.apply(many.collect()).await.unwrap();
    let Change::PutPattern(mut several) = row("several", "x") else { panic!() };
    several.context = "paint the garden fence\nthe disk is full".to_owned();
    store.apply(vec![Change::PutPattern(several)]).await.unwrap();
    assert_eq!(found(&retriever, "paint the garden fence").await, ["several"]);
    assert_eq!(retriever.index.read().version, u64::from(2 * CHANGES_BATCH) + 1);

    store.apply(vec![row("several", "session token expiration")]).await.unwrap();
    retriever.invalidate();
    for gone in ["paint the garden fence", "the disk is full"] {
        assert!(found(&retriever, gone).await.is_empty(), "{gone}");
    }
    assert_eq!(found(&retriever, "session token expiration").await, ["several"]);

    let (org, tier, pattern_id) = ("o".to_owned(), "e1".to_owned(), "several".to_owned());
    store.apply(vec![Change::DeletePattern { org, tier, pattern_id }]).await.unwrap();
    retriever.invalidate();
    assert!(found(&retriever, "session token expiration").await.is_empty());
}

#[tokio::test]
async fn patterns_have_thresholds_situations_and_families() {
    let store = rb_store::open("sqlite::memory:").await.unwrap();
    let retriever = PatternRetriever::new(Arc::clone(&store), GATES, None);
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
        let mut ids = found(&retriever, context).await;
        ids.sort();
        assert_eq!(ids, expected, "{context}");
    }
    let query = PatternQuery {
        org: "o",
        tier: Some(Tier::E1),
        context: "the disk is full",
        failure_type: None,
        model: "claude-haiku-4-5",
        top_k: 5,
    };
    let for_haiku = retriever.find(&query).await.unwrap();
    assert_eq!(for_haiku.len(), 1, "patterns for another family are left out");
}

/// Endpoint that embeds all texts about fences alike, until it is switched off.
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
async fn the_backend_is_used_while_it_answers() {
    static IS_UP: AtomicBool = AtomicBool::new(true);
    let store = rb_store::open("sqlite::memory:").await.unwrap();
    store
        .apply(vec![row("fence", "paint the fence"), row("time", "session expiry")])
        .await
        .unwrap();
    let (url, model) = (endpoint(&IS_UP).await, "m".to_owned());
    let config = EmbeddingConfig::Endpoint { url, model, key: "k".to_owned() };
    assert!(!format!("{config:?}").contains("\"k\""), "keys stay out of logs");
    let backend = EmbeddingBackend::open(&config).unwrap();
    let retriever = PatternRetriever::new(store, GATES, backend);
    let reworded = "a fence, and what colours might be done with it some day";
    let begun = Instant::now();
    // The patterns are embedded in the background.
    while found(&retriever, reworded).await != ["fence"] {
        assert!(begun.elapsed() < Duration::from_secs(20), "patterns never embedded");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    IS_UP.store(false, Ordering::SeqCst);
    assert_eq!(
        found(&retriever, "session token expiration").await,
        ["time"],
        "the built-in vectors are used"
    );
    assert_eq!(
        found(&retriever, reworded).await,
        ["fence"],
        "vectors of earlier queries are cached"
    );
}
