//! What is recognised is what was there, whatever the bodies look like.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn step(at: usize, chars: usize) -> Value {
    json!({"thought": format!("step {at} {}", "x\n".repeat(chars)), "action": "ls", "action_input": {"a": at}})
}

fn body(steps: &[Value], weights: Option<&Value>, spaced: bool) -> Bytes {
    let list = serde_json::to_string(steps).unwrap();
    let tail = weights.map(|weights| format!(",\"weights\":{weights}")).unwrap_or_default();
    let space = if spaced { " " } else { "" };
    format!("{{\"model\":\"m\",\"steps\":{list}{space}{tail}{space}}}").into()
}

/// The steps of a body as a parser without memory sees them.
fn thoughts(body: &[u8]) -> Vec<String> {
    let value: Value = serde_json::from_slice(body).unwrap();
    let steps = value["steps"].as_array().unwrap();
    steps.iter().map(|step| step["thought"].as_str().unwrap().to_owned()).collect()
}

/// Reads a body as `evaluate` does, and remembers it. How many steps were new.
fn read(prefixes: &Prefixes, owner: &str, body: &Bytes) -> usize {
    let blocks = prefixes.blocks(owner, body);
    let trace = prefixes.read(owner, &blocks, body).unwrap();
    let all = thoughts(body);
    assert_eq!(trace.steps.count(), all.len());
    let known = trace.steps.known.0 as usize;
    for (at, expected) in all[known..].iter().enumerate() {
        assert_eq!(trace.steps.parse(at).unwrap().thought.as_ref(), Some(expected));
    }
    assert_eq!(trace.settings.model.as_deref(), Some("m"));
    // The marks are those of reading everything.
    let whole = prefixes.read_whole(owner, body).unwrap();
    let (mark, whole_mark) = (trace.steps.marks(prefixes), whole.steps.marks(prefixes));
    assert_eq!(mark[..], whole_mark[known..]);
    assert_eq!(whole.settings, trace.settings);
    if let Some(last) = mark.last() {
        prefixes.keep(&blocks, &trace.steps, *last);
    }
    trace.steps.new_count()
}

#[test]
fn a_growing_trace_costs_its_new_steps() {
    let prefixes = Prefixes::new(10);
    let steps: Vec<Value> = (0..40).map(|at| step(at, 400)).collect();
    let new: Vec<usize> =
        (1..=40).map(|count| read(&prefixes, "o", &body(&steps[..count], None, false))).collect();
    assert!(new[10..].iter().all(|new| *new == 1), "{new:?}");
    assert_eq!(read(&prefixes, "other", &body(&steps, None, false)), 40, "another organisation's");
    let mut changed = steps.clone();
    changed[3] = step(99, 400);
    assert!(read(&prefixes, "o", &body(&changed, None, false)) >= 36);
    let weights = json!({"streak": 0.5});
    assert_eq!(read(&prefixes, "o", &body(&steps, Some(&weights), true)), 0, "settings may change");
}

#[test]
fn a_body_that_only_looks_alike_is_read_whole() {
    let prefixes = Prefixes::new(10);
    let steps: Vec<Value> = (0..4).map(|at| step(at, 2_000)).collect();
    let first = body(&steps, None, false);
    assert_eq!(read(&prefixes, "o", &first), 4);
    let text = std::str::from_utf8(&first).unwrap();
    // The same bytes, then something that is no further step.
    let twice = text.replace("]}", "],\"steps\":[]}");
    let blocks = prefixes.blocks("o", twice.as_bytes());
    assert!(
        prefixes.read("o", &blocks, &Bytes::from(twice)).is_err(),
        "a field that is there twice"
    );
    for broken in [text.replace("]}", ",]}"), text.replace("]}", "]"), text.replace("]}", "]}}")] {
        let broken = Bytes::from(broken);
        let blocks = prefixes.blocks("o", &broken);
        assert!(prefixes.read("o", &blocks, &broken).is_err());
    }
}

#[test]
fn faults_say_which_step() {
    let prefixes = Prefixes::new(10);
    let broken = Bytes::from_static(b"{\"steps\":[{},{\"thought\":5}]}");
    let blocks = prefixes.blocks("o", &broken);
    let trace = prefixes.read("o", &blocks, &broken).unwrap();
    let ApiError::Unprocessable(faults) = trace.steps.parse(1).unwrap_err() else { panic!() };
    let loc = serde_json::to_value(&faults[0].loc).unwrap();
    assert_eq!(loc, json!(["body", "steps", 1, "thought"]));
}

use crate::error::ApiError;

#[test]
fn states_and_replies_are_bounded() {
    let prefixes = Prefixes::new(3);
    let rules = crate::judge::rules(
        &crate::seconded::packed(),
        crate::judge::Suite::Both,
        rb_engine::config::weights::Weights::default(),
    );
    let marks: Vec<Mark> = (0..5_u8).map(|at| Mark::of(0, &[at])).collect();
    for mark in &marks {
        prefixes.keep_state(*mark, Watched::new(MonitorSet::new(&rules, "")));
    }
    assert!(marks[..2].iter().all(|mark| prefixes.take_state(*mark).is_none()), "the oldest go");
    assert!(marks[2..].iter().all(|mark| prefixes.take_state(*mark).is_some()));
    assert_eq!(prefixes.lock().states_bytes, 0);

    for at in 0..40_u8 {
        let blocks = prefixes.blocks("o", &[at]);
        prefixes.keep_reply(&blocks, vec![0; 1024 * 1024].into());
        assert!(prefixes.reply(&blocks).is_some());
    }
    let memory = prefixes.lock();
    let kept: usize = memory.replies.values().map(|(_, reply)| reply.len()).sum();
    assert!(kept == memory.replies_bytes && kept <= REPLIES_BYTES_MAX, "{kept}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever runs come in whatever order, each is read as it is.
    #[test]
    fn memory_never_changes_what_is_read(requests in prop::collection::vec((0..3_usize, 1..30_usize, 0..900_usize, any::<bool>()), 1..30)) {
        let prefixes = Prefixes::new(10);
        for (run, count, chars, spaced) in requests {
            let steps: Vec<Value> = (0..count).map(|at| step(at * (run + 1), chars / 300 * 300)).collect();
            read(&prefixes, ["a", "b", "b"][run], &body(&steps, None, spaced));
        }
    }
}
