//! The same answers as the package that fixed the heuristic suite, bit for bit.
//!
//! `RB_REFERENCE_PYTHON` names a Python with `reasonblocks==0.1.0` (`pip install --no-deps` will do), and
//! `RB_CONTRACT_VECTORS` a file of recorded answers. Without them the tests say that they are skipped.

use std::io::Write as _;
use std::process::Command;

use rb_engine::analysis::difficulty::difficulty;
use rb_engine::config::weights::Weights;
use rb_engine::config::{Engine, EngineConfig};
use rb_engine::monitors::SuiteChoice;
use rb_engine::policy::Policy;
use rb_engine::policy::fsm::{Fsm, FsmConfig};
use rb_engine::run::{Assessment, MonitorSet};
use rb_wire::transcripts::native::parse_line;
use serde_json::{Value, json};

use crate::run;
use crate::traces::{Random, a_run};

const RUNS_DEFAULT: usize = 3000;

/// Step of `rb check --json` in the format of the reference script.
fn our_answer(step: &Value, ids: &[&str]) -> Value {
    let scores: Vec<&Value> = ids.iter().map(|id| &step["scores"][id]).collect();
    json!([scores, step["composite"], step["fired"], step["difficulty"], step["fsm_state"]])
}

const IDS: [&str; 6] = ["streak", "call_count", "edit_revert", "test_repeat", "diversity", "hedge"];

#[test]
fn every_prefix_of_random_runs_scores_as_the_reference_does() {
    let Ok(python) = std::env::var("RB_REFERENCE_PYTHON") else {
        println!("skipped: RB_REFERENCE_PYTHON names no Python with reasonblocks==0.1.0");
        return;
    };
    let count = std::env::var("RB_REFERENCE_RUNS").ok().and_then(|runs| runs.parse().ok());
    let seed = std::env::var("RB_REFERENCE_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = Random::new(seed.unwrap_or(20_240_601));
    let runs: Vec<Value> = (0..count.unwrap_or(RUNS_DEFAULT))
        .map(|at| json!({ "run_id": format!("r{at}"), "steps": a_run(&mut random) }))
        .collect();
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    for run in &runs {
        writeln!(file, "{run}").expect("a line");
    }
    let path = file.path().to_str().expect("UTF-8");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/reference.py");
    let theirs = Command::new(python).args([script, path]).output().expect("Python starts");
    assert!(theirs.status.success(), "{}", String::from_utf8_lossy(&theirs.stderr));
    let ours = run(&["check", path, "--suite", "heuristic", "--json"], b"");
    let lines = |bytes: Vec<u8>| -> Vec<Value> {
        let text = String::from_utf8(bytes).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let (theirs, ours) = (lines(theirs.stdout), lines(ours.stdout));
    assert_eq!((theirs.len(), ours.len()), (runs.len(), runs.len()));
    let mut steps = 0;
    let mut fired = [0; IDS.len()];
    for ((theirs, ours), run) in theirs.iter().zip(&ours).zip(&runs) {
        let (theirs, ours) =
            (theirs.as_array().expect("a list"), ours["steps"].as_array().expect("a list"));
        assert_eq!(theirs.len(), ours.len());
        for (at, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
            let prefix = &run["steps"].as_array().expect("a list")[..=at];
            assert_eq!(
                *theirs,
                our_answer(ours, &IDS),
                "{} step {at}: {}",
                run["run_id"],
                json!(prefix)
            );
            steps += 1;
            for (count, id) in fired.iter_mut().zip(IDS) {
                *count += usize::from(theirs[2].as_array().expect("a list").contains(&json!(id)));
            }
        }
    }
    println!("{} runs, {steps} prefixes agree; fired: {IDS:?} {fired:?}", runs.len());
    if runs.len() >= RUNS_DEFAULT {
        assert!(
            fired.iter().all(|count| *count > 100),
            "the runs do not try everything: {fired:?}"
        );
    }
}

#[test]
fn the_recorded_answers_are_given() {
    let Ok(path) = std::env::var("RB_CONTRACT_VECTORS") else {
        println!("skipped: RB_CONTRACT_VECTORS names no file of recorded answers");
        return;
    };
    let file = std::fs::read(path).expect("the file of RB_CONTRACT_VECTORS");
    let vectors: Value = serde_json::from_slice(&file).expect("JSON");
    let list = |of: &str, name: &str| vectors[of][name].as_array().expect(name).clone();
    for case in list("both", "score_step") {
        let text = case["text"].as_str().expect("a text");
        assert_eq!(json!(difficulty(text)), case["score"], "{text:?}");
    }
    for case in list("both", "fsm") {
        machine(&case);
    }
    for case in list("v0_1_0", "suite") {
        suite(&case);
    }
    for case in list("v0_1_0", "normalize_error") {
        normalized(&case);
    }
}

fn machine(case: &Value) {
    let mut config = FsmConfig::default();
    for (name, value) in case["kwargs"].as_object().into_iter().flatten() {
        match name.as_str() {
            "slow_window" => {
                let window = value.as_u64().and_then(|n| n.try_into().ok());
                config.slow_window = window.expect("a window");
            }
            other => panic!("the test does not know {other}"),
        }
    }
    let mut fsm = Fsm::new(config.check().expect("a machine that works"));
    let scores = case["scores"].as_array().expect("scores");
    let states: Vec<&str> =
        scores.iter().map(|score| fsm.advance(score.as_f64().expect("a score")).name()).collect();
    assert_eq!(json!(states), case["states"], "{scores:?}");
}

fn heuristic(weights: Weights, fire_threshold: Option<f64>) -> Engine {
    let policy = Policy::only(SuiteChoice::Heuristic);
    EngineConfig { policy, weights, fire_threshold, ..EngineConfig::default() }
        .check()
        .expect("good rules")
}

fn suite(case: &Value) {
    let line = json!({ "steps": case["steps"] }).to_string();
    let (run, troubles) = parse_line(line.as_bytes());
    assert_eq!(troubles, []);
    let given = case["kwargs"]["weights"].as_object().into_iter().flatten();
    let given = given.map(|(name, weight)| (name.as_str(), weight.as_f64().expect("a weight")));
    let overridden = case["kwargs"]["weights"].is_object();
    let weights = Weights::default().with(given).0;
    let fire_at = case["kwargs"]["fire_threshold"].as_f64();
    let mut panel = MonitorSet::new(&heuristic(weights, fire_at), "");
    let mut last = Assessment::default();
    for step in run.expect("a run").steps {
        last = panel.observe(&step.step());
    }
    let (name, out) = (&case["name"], &case["out"]);
    for reading in &last.readings {
        assert_eq!(
            json!(reading.score),
            out["scores"][reading.monitor.id],
            "{name} {}",
            reading.monitor.id
        );
    }
    if !overridden {
        // The reference neither clamps weights nor drops unknown ones; we do.
        assert_eq!(json!(last.composite), out["total"], "{name}");
    }
    let fired: Vec<&str> = last.fired().map(|reading| reading.monitor.id).collect();
    assert_eq!(json!(fired), out["fired"], "{name}");
}

/// The signature cannot be seen from outside, but two failures that have the same one can.
fn normalized(case: &Value) {
    let (before, after) =
        (case["in"].as_str().expect("a text"), case["out"].as_str().expect("a text"));
    let step = |observation: &str| json!({ "action": "test", "observation": observation, "is_error": true });
    let line = json!({ "steps": [step(before), step(after)] }).to_string();
    let (run, _) = parse_line(line.as_bytes());
    let mut panel = MonitorSet::new(&heuristic(Weights::default(), None), "");
    let readings = run.expect("a run").steps.iter().map(|step| panel.observe(&step.step())).last();
    let repeated =
        readings.expect("two steps").fired().any(|reading| reading.monitor.id == "test_repeat");
    assert_eq!(repeated, !after.is_empty(), "{case}");
}
