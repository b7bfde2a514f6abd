//! Metrics of requests through the gateway equal those of the same steps through the API.

use rb_store::{PatternFilter, Scope};

use super::Stage;
use super::talk::{Dialect, obliging};

const HEADERS: [(&str, &str); 1] = [("x-reasonblocks-run-id", "r")];

/// Values of a counter by its line in the exposition text.
fn counter(stage: &Stage, name: &str) -> f64 {
    let text = stage.app.runtime.metrics.text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("reasonblocks_{name} ")));
    line.map_or(0.0, |value| value.parse().unwrap())
}

fn count(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

async fn play(stage: &Stage, calls: usize) {
    let dialect = Dialect::Anthropic;
    for turns in 0..calls {
        let body = dialect.request("claude-sonnet-4-5", &dialect.history(turns));
        assert_eq!(stage.post(dialect.path(), &HEADERS, &body).await.status, 200);
        stage.app.gateway.settled().await;
    }
}

#[tokio::test]
async fn steps_costs_fired_monitors_and_injections_are_counted() {
    let stage = Stage::new(obliging).await;
    play(&stage, 8).await;
    let steps = stage.steps("r").await;
    let fired = steps.iter().filter(|row| row.fired.iter().any(|id| id == "semantic_loop"));
    let injected = steps.iter().flat_map(|row| &row.injection_sources);
    let injected = injected.filter(|source| *source == "monitor").count();
    let cost: f64 = steps.iter().map(|row| row.cost_usd).sum();
    let expected = [
        ("steps_total", count(steps.len())),
        ("monitor_fired_total{monitor=\"semantic_loop\"}", count(fired.count())),
        ("injections_total{source=\"monitor\"}", count(injected)),
    ];
    for (name, value) in expected {
        assert!(value > 0.0, "{name}: the trace must exercise it");
        assert_eq!(counter(&stage, name), value, "{name}");
    }
    assert!(cost > 0.0, "the scripted response must report tokens");
    assert!((counter(&stage, "cost_usd_total") - cost).abs() < 1e-9);
}

#[tokio::test]
async fn a_retry_is_not_counted_as_another_step() {
    let stage = Stage::new(obliging).await;
    play(&stage, 2).await;
    let before = counter(&stage, "steps_total");
    let dialect = Dialect::Anthropic;
    let again = dialect.request("claude-sonnet-4-5", &dialect.history(1));
    assert_eq!(stage.post(dialect.path(), &HEADERS, &again).await.status, 200);
    stage.app.gateway.settled().await;
    assert_eq!(counter(&stage, "steps_total"), before);
}

#[tokio::test]
async fn patterns_that_reach_the_model_count_as_shown() {
    let mut raw = super::patient();
    raw.gateway.standing_rules = true;
    let stage = Stage::with(raw, obliging).await;
    play(&stage, 1).await;
    stage.app.runtime.patterns.flush_uses().await;
    let filter = PatternFilter { tier: Some("e3".to_owned()), count_max: 1_000, after: None };
    let patterns = stage.app.runtime.store.patterns(&Scope::default(), &filter).await.unwrap();
    let uses: u64 = patterns.iter().map(|row| row.uses).sum();
    assert!(uses > 0, "standing rules were injected into the first call");
}
