//! Reports of small experiments, computed by hand.

use rb_store::ModelTokens;
use serde_json::{Value, json};

use rb_store::{ExperimentRun, Tokens};

use super::report::*;
use super::stats::*;

/// Builds a run of an arm with this outcome and these numbers of input and output tokens.
fn run(arm: &str, outcome: Option<&str>, input: u64, output: u64) -> ExperimentRun {
    let tokens = Tokens { total: input + output, input, output, ..Tokens::default() };
    ExperimentRun {
        run_id: format!("{arm}-{outcome:?}-{input}"),
        arm: arm.to_owned(),
        outcome: outcome.map(str::to_owned),
        task_profile: "coding".to_owned(),
        step_count: 4,
        score_sum: 1.0,
        score_peak: 0.5,
        by_model: vec![ModelTokens { model: "m".to_owned(), tokens, cost_usd: 0.0 }],
        ..ExperimentRun::default()
    }
}

/// A dollar a token of input, five a token of output, for the model `m`.
fn price(model: &str, tokens: &Tokens, _: i64) -> f64 {
    if model == "m" { as_f64(tokens.input + 5 * tokens.output) } else { 0.0 }
}

fn told(runs: &[ExperimentRun]) -> Value {
    serde_json::to_value(report("x", runs, 0.5, price)).unwrap()
}

/// Six runs an arm, five of them successful: the documented sample.
fn sample() -> Vec<ExperimentRun> {
    let arm = |name: &'static str, tokens: u64| {
        (0..6)
            .map(move |at| run(name, Some(if at == 0 { "failure" } else { "success" }), tokens, 0))
    };
    arm("on", 1_996).chain(arm("off", 12_600)).collect()
}

#[test]
fn the_documented_sample_has_the_documented_numbers() {
    let report = told(&sample());
    let cases = [
        ("/arms/on/n_runs", json!(6)),
        ("/arms/on/outcomes", json!({"success": 5, "failure": 1, "other": 0, "unfinished": 0})),
        ("/arms/on/success_rate", json!(0.8333)),
        ("/arms/on/tokens_per_run/median", json!(1996.0)),
        ("/arms/on/steps_per_run/winsorized_mean", json!(4.0)),
        ("/arms/on/cost/cache_read_tokens", json!(0)),
        ("/arms/on/cost/cost_per_run_usd", json!(1996.0)),
        ("/arms/on/reasoning_health/avg_score", json!(0.25)),
        ("/comparison/success_rate/delta", json!(0.0)),
        ("/comparison/success_rate/ci_95", json!([-0.4197, 0.4197])),
        ("/comparison/success_rate/method", json!("newcombe")),
        (
            "/comparison/tokens_per_run_median",
            json!({"on": 1996.0, "off": 12600.0, "pct": -0.8416}),
        ),
        ("/comparison/cost_per_run_usd/pct", json!(-0.8416)),
        ("/comparison/success_rate_stratified/strata/0/task_profile", json!("coding")),
        ("/srm/observed", json!({"on": 6, "off": 6})),
        ("/srm/p_value", json!(1.0)),
        ("/srm/flagged", json!(false)),
        ("/timeseries/0/day", json!("1970-01-01")),
        ("/timeseries/1/arm", json!("off")),
    ];
    for (at, expected) in cases {
        assert_eq!(report.pointer(at), Some(&expected), "{at}");
    }
}

#[test]
fn what_limits_a_report_is_said_in_plain_sentences() {
    let many = |arm, count| (0..count).map(move |_| run(arm, Some("success"), 10, 10));
    let even: Vec<_> = many("on", 40).chain(many("off", 40)).collect();
    let with = |more: Vec<ExperimentRun>| even.iter().cloned().chain(more).collect::<Vec<_>>();
    let mut unpriced = run("on", Some("success"), 10, 0);
    unpriced.by_model[0].model = "nobody's".to_owned();
    let mut totals = run("on", Some("success"), 0, 0);
    totals.by_model[0].tokens.total = 9;
    let mut lone = run("on", Some("success"), 1, 1);
    lone.task_profile = "qa".to_owned();
    let cases = [
        (sample(), "The smaller arm has 6 finished runs: below 30"),
        (even.clone(), "includes 0: no difference is shown"),
        (many("on", 40).chain(many("off", 90)).collect(), "40 and 90 runs where 65 and 65 were"),
        (many("on", 2).collect(), "The arm `off` has no finished run"),
        (with(vec![run("on", None, 1, 1)]), "1 run (1 on, 0 off) did not finish and is left out"),
        (
            with(vec![run("off", Some("gave up"), 1, 1)]),
            "neither `success` nor `failure` (`gave up`)",
        ),
        (with(vec![run("on", Some("success"), 0, 0)]), "1 run reported no tokens"),
        (with(vec![totals]), "1 run reported only total tokens"),
        (with(vec![unpriced]), "1 run used a model without a price (`nobody's`)"),
        (with(vec![lone]), "left out of the stratified comparison: `qa`."),
        (with(vec![run("treatment", None, 1, 1)]), "1 run named neither `on` nor `off`"),
    ];
    for (runs, said) in cases {
        let report = report("x", &runs, 0.5, price);
        let found = report.caveats.iter().any(|caveat| caveat.contains(said));
        assert!(found, "{said}: {:#?}", report.caveats);
    }
    let good: Vec<_> = many("on", 40)
        .chain((0..40).map(|_| run("off", Some("failure: ValueError"), 10, 10)))
        .collect();
    assert_eq!(report("x", &good, 0.5, price).caveats, Vec::<String>::new());
}

#[test]
fn an_arm_without_runs_has_no_rates() {
    let report = told(&[run("on", Some("success"), 1, 1)]);
    for at in [
        "/arms/off/success_rate",
        "/arms/off/tokens_per_run/median",
        "/arms/off/cost/cost_per_run_usd",
        "/comparison/success_rate/ci_95",
        "/comparison/cost_per_run_usd/pct",
        "/comparison/success_rate_stratified/delta",
    ] {
        assert_eq!(report.pointer(at), Some(&Value::Null), "{at}");
    }
}

#[test]
fn a_kept_cost_stands_and_a_run_without_prices_is_left_out_of_costs() {
    let mut kept = run("on", Some("success"), 100, 0);
    kept.by_model[0].cost_usd = 0.25;
    let mut unknown = run("on", Some("success"), 100, 0);
    unknown.by_model[0].model = "unknown".to_owned();
    let report = told(&[kept, unknown]);
    let cases = [
        ("/arms/on/cost/cost_per_run_usd", json!(0.25)),
        ("/arms/on/cost/total_tokens", json!(200)),
        ("/arms/on/cost/by_model/m", json!({"tokens": 100, "cost_usd": 0.25})),
        ("/arms/on/tokens_per_run/n_runs", json!(2)),
    ];
    for (at, expected) in cases {
        assert_eq!(report.pointer(at), Some(&expected), "{at}");
    }
}
