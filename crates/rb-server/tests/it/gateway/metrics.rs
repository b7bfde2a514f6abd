//! Metrics of requests through the gateway equal those of the same steps through the API.

use rb_store::{PatternFilter, Scope, StepRow};
use serde_json::{Value, json};

use super::Stage;
use super::dialects::{Dialect, obliging};
use super::final_answer::is_closing;

const HEADERS: [(&str, &str); 1] = [("x-reasonblocks-run-id", "r")];
const MODEL: &str = "claude-sonnet-4-5";

/// Values of a counter by its line in the exposition text.
fn counter(stage: &Stage, name: &str) -> f64 {
    let text = stage.app.runtime.metrics.text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("reasonblocks_{name} ")));
    line.map_or(0.0, |value| value.parse().unwrap())
}

fn count(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

/// Number of times that patterns were shown.
async fn pattern_uses(stage: &Stage) -> u64 {
    stage.app.runtime.patterns.flush_uses().await;
    let filter = PatternFilter { tier: None, count_max: 1_000, after: None };
    let patterns = stage.app.runtime.store.patterns(&Scope::default(), &filter).await.unwrap();
    patterns.iter().map(|row| row.uses).sum()
}

/// Counters of steps, fired monitors, injections and cost.
fn step_counters(stage: &Stage) -> Vec<String> {
    let names = ["steps_total", "monitor_fired_total", "injections_total", "cost_usd_total"];
    let is_wanted =
        |line: &&str| names.iter().any(|name| line.starts_with(&format!("reasonblocks_{name}")));
    let text = stage.app.runtime.metrics.text();
    let mut lines: Vec<String> = text.lines().filter(is_wanted).map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The request to `/walk` or `/steps` that reports a stored step.
fn reported(row: &StepRow) -> Value {
    json!({
        "step_index": row.step_index, "thought": row.thought, "action": row.action,
        "action_input": row.action_input.as_deref().map(|input| {
            serde_json::from_str::<Value>(input).unwrap_or_else(|_| input.into())
        }),
        "observation": row.observation, "is_error": row.is_error, "user_input": row.user_input,
        "model": MODEL, "step_model": row.model, "task": super::dialects::TASK,
        "tokens": row.tokens.total, "input_tokens": row.tokens.input,
        "output_tokens": row.tokens.output,
    })
}

async fn play(stage: &Stage, calls: usize) {
    let dialect = Dialect::Anthropic;
    for turns in 0..calls {
        let body = dialect.request(MODEL, &dialect.history(turns));
        assert_eq!(stage.post(dialect.path(), &HEADERS, &body).await.status, 200);
        stage.app.gateway.flush().await;
    }
}

#[tokio::test]
async fn steps_costs_fired_monitors_and_injections_are_counted() {
    let stage = Stage::new(obliging).await;
    play(&stage, 8).await;
    let steps = stage.rows("r").await;
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
    let again = dialect.request(MODEL, &dialect.history(1));
    assert_eq!(stage.post(dialect.path(), &HEADERS, &again).await.status, 200);
    stage.app.gateway.flush().await;
    assert_eq!(counter(&stage, "steps_total"), before);
}

#[tokio::test]
async fn patterns_that_reach_the_model_count_as_shown() {
    let mut raw = super::patient();
    raw.gateway.standing_rules = true;
    let stage = Stage::with(raw, obliging).await;
    play(&stage, 1).await;
    assert!(pattern_uses(&stage).await > 0, "standing rules were injected into the first call");
}

#[tokio::test]
async fn a_trace_counts_the_same_through_the_gateway_and_the_walk() {
    let mut raw = super::patient();
    raw.gateway.standing_rules = true;
    let gateway = Stage::with(raw.clone(), obliging).await;
    play(&gateway, 8).await;
    let rows = gateway.rows("r").await;
    let walk = Stage::with(raw, obliging).await;
    for row in &rows {
        let body = reported(row).to_string();
        if is_closing(row) {
            let reply = walk.post("/v1/monitor/runs/r/steps", &[], &body).await; // no call follows
            assert_eq!(reply.status, 200);
            continue;
        }
        for is_repeated in [false, true] {
            let reply = walk.post("/v1/monitor/runs/r/walk", &[], &body).await;
            assert_eq!((reply.status, &reply.json()["repeated"]), (200, &json!(is_repeated)));
        }
    }
    assert_eq!(step_counters(&walk), step_counters(&gateway));
    let shown = pattern_uses(&gateway).await;
    assert!(shown > 0, "the trace must show patterns");
    assert_eq!(pattern_uses(&walk).await, shown);
    let decided = |rows: Vec<StepRow>| {
        let of = |row: StepRow| {
            let StepRow { state, scores, fired, injections, injection_sources, .. } = row;
            (row.step_index, state, scores, fired, injections, injection_sources)
        };
        rows.into_iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(decided(walk.rows("r").await), decided(rows));
}

/// The public SDKs call `evaluate` with the steps so far, and then report the newest one with what they showed.
#[tokio::test]
async fn a_step_that_is_evaluated_and_reported_is_counted_once() {
    let gateway = Stage::new(obliging).await;
    play(&gateway, 8).await;
    let rows = gateway.rows("r").await;
    let sdk = Stage::new(obliging).await;
    let (mut steps, mut shown) = (Vec::new(), 0);
    for row in &rows {
        let mut body = reported(row);
        steps.push(json!({
            "thought": body["thought"], "action": body["action"],
            "action_input": body["action_input"], "observation": body["observation"],
        }));
        let request = json!({ "run_id": "r", "steps": steps }).to_string();
        let verdict = sdk.post("/v1/monitors/evaluate", &[], &request).await.json();
        if verdict["inject"] == json!(true) {
            body["intervention_texts"] = json!([verdict["intervention_text"]]);
            body["injection_sources"] = json!(["RemoteMonitorSteering"]);
            shown += 1;
        }
        for _ in 0..2 {
            let reply = sdk.post("/v1/monitor/runs/r/steps", &[], &body.to_string()).await;
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
    }
    let stored = sdk.rows("r").await;
    let fired = stored.iter().filter(|row| row.fired.iter().any(|id| id == "semantic_loop"));
    for (name, expected) in [
        ("steps_total", count(stored.len())),
        ("monitor_fired_total{monitor=\"semantic_loop\"}", count(fired.count())),
        ("injections_total{source=\"monitor\"}", count(shown)),
    ] {
        assert!(expected > 0.0, "{name}: the trace must exercise it");
        assert_eq!(counter(&sdk, name), expected, "{name}");
    }
}
