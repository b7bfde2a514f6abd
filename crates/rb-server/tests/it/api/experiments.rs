//! Experiments and the meter.

use std::sync::Arc;

use axum::http::StatusCode;
use rb_store::{Change, RunKey, RunStart, StepRow};
use serde_json::json;

use super::with_runs;
use crate::test_server::{OPERATOR, Trial};
use rb_runtime::clock::now_ms;
use rb_server::config::RawConfig;

#[tokio::test]
async fn an_experiment_is_reported_from_its_runs() {
    let trial = with_runs().await;
    let list = trial.get("/monitor/experiments", &trial.acme).await;
    assert_eq!(list.json, json!([{"experiment_id": "trial", "n_runs": 2}]));
    let path = "/v1/monitor/experiments/trial/report?on_fraction=0.5";
    let report = trial.get(path, &trial.acme).await;
    assert_eq!(report.status, StatusCode::OK, "{}", report.text);
    let cases = [
        ("/arms/on/n_runs", json!(1)),
        ("/arms/off/outcomes/success", json!(1)),
        ("/arms/on/tokens_per_run/median", json!(110.0)),
        ("/srm/observed", json!({"on": 1, "off": 1})),
        ("/timeseries/0/day", json!("1970-01-01")),
    ];
    for (at, expected) in cases {
        assert_eq!(report.at(at), expected, "{at}");
    }
    // 100 tokens of input and 10 of output at the listed prices of the model.
    assert!(report.at("/arms/on/cost/cost_per_run_usd").as_f64().is_some_and(|usd| usd > 0.0));
    assert!(!report.at("/caveats").as_array().unwrap().is_empty());
    let unknown = trial.get("/monitor/experiments/none/report", &trial.acme).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_meter_counts_this_month_and_knows_the_cap() {
    for (cap, over) in [(0, false), (2, true), (3, false)] {
        let trial = Trial::with(RawConfig {
            static_keys: vec![OPERATOR.to_owned()],
            intervention_cap: cap,
            ..RawConfig::default()
        })
        .await;
        let run = RunKey { org: "acme".to_owned(), run_id: "r".to_owned() };
        let now = now_ms();
        let start = RunStart { run: run.clone(), at_ms: now, ..RunStart::default() };
        let step = |step_index, injected: bool| {
            let injections = if injected { vec!["[x]".to_owned()] } else { Vec::new() };
            let run = run.clone();
            let step = StepRow { run, step_index, at_ms: now, injections, ..StepRow::default() };
            Change::PutStep(Arc::new(step))
        };
        let changes =
            vec![Change::StartRun(Box::new(start)), step(0, true), step(1, false), step(2, true)];
        trial.store().apply(changes).await.unwrap();
        let meter = trial.get("/billing/meter?org_id=acme&days=3", &trial.acme).await;
        let told = json!([meter.at("/used"), meter.at("/cap"), meter.at("/over_cap")]);
        let shown = if cap == 0 { json!(null) } else { json!(cap) };
        assert_eq!(told, json!([2, shown, over]), "{}", meter.text);
        let series = meter.at("/series");
        assert_eq!(series.as_array().unwrap().len(), 3);
        assert_eq!((series[2]["used"].clone(), series[2]["steps"].clone()), (json!(2), json!(3)));
        assert_eq!(series[0]["used"], json!(0));
    }
}

#[tokio::test]
async fn a_meter_is_read_by_its_owner_and_by_the_operator() {
    let trial = Trial::new().await;
    let cases = [
        (trial.acme.as_str(), "", json!("acme")),
        (&trial.acme, "?org_id=acme", json!("acme")),
        (&trial.acme, "?org_id=globex", json!(null)),
        (OPERATOR, "?org_id=globex", json!("globex")),
        (OPERATOR, "", json!("default")),
    ];
    for (key, query, org) in cases {
        let meter = trial.get(&format!("/billing/meter{query}"), key).await;
        assert_eq!(meter.at("/org_id"), org, "{query}");
        let status = if org.is_null() { StatusCode::FORBIDDEN } else { StatusCode::OK };
        assert_eq!(meter.status, status, "{query}");
        assert!(meter.json.get("series").is_none(), "{query}");
    }
}
