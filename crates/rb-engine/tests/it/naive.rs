//! Reference implementation of the heuristic suite: recomputes every score from the whole prefix. The incremental
//! engine must give the same scores.
//!
//! Volatile parts and phrases are not implemented here: unit tests and the reference package
//! (`crates/rb/tests/it/reference.rs`) cover them.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rb_engine::config::weights::Weights;
use rb_engine::run::{MonitorSet, round4};

use crate::traces::{Owned, heuristic, trace};

fn ratio(part: usize, whole: usize) -> f64 {
    let of = |n: usize| f64::from(u32::try_from(n).expect("small"));
    of(part) / of(whole)
}

fn streak(steps: &[Owned]) -> f64 {
    let tools: Vec<&String> = steps.iter().filter_map(|step| step.tool.as_ref()).collect();
    let run = tools.iter().rev().take_while(|tool| Some(*tool) == tools.last()).count();
    if run <= 1 { 0.0 } else { ratio(run, 5).min(1.0) }
}

fn call_count(steps: &[Owned]) -> f64 {
    ratio(steps.iter().filter(|step| step.tool.is_some()).count(), 20).min(1.0)
}

fn diversity(steps: &[Owned]) -> f64 {
    let tools: Vec<&String> = steps.iter().filter_map(|step| step.tool.as_ref()).collect();
    if tools.len() < 8 {
        return 0.0;
    }
    let suffix = &tools[tools.len() - 5..];
    let alternating = suffix[0] != suffix[1] && (2..5).all(|at| suffix[at] == suffix[at - 2]);
    match suffix.iter().collect::<BTreeSet<_>>().len() {
        1 => 1.0,
        2 if !alternating => 0.7,
        _ => 0.0,
    }
}

fn failed(step: &Owned) -> bool {
    let lower = step.observation.to_lowercase();
    let signs = ["error", "exception", "traceback", "failed", "not found", "assertion", "invalid"];
    step.is_error || signs.iter().any(|sign| lower.contains(sign))
}

fn pieces(text: &str) -> BTreeSet<Vec<char>> {
    text.chars().collect::<Vec<_>>().windows(3).map(<[char]>::to_vec).collect()
}

fn overlap(a: &str, b: &str) -> f64 {
    let (a, b) = (pieces(a), pieces(b));
    if a.is_empty() || b.is_empty() {
        0.0
    } else {
        ratio(a.intersection(&b).count(), a.union(&b).count())
    }
}

/// The word list of the traces contains only these files.
fn file(input: &str) -> Option<&'static str> {
    let known = [("a.py", "a.py"), ("src/b.rs", "src/b.rs"), ("C:\\x\\c.txt", "\\x\\c.txt")];
    let mut found: Vec<_> =
        known.iter().filter_map(|(text, file)| Some((input.find(text)?, *file))).collect();
    found.sort_unstable();
    found.first().map(|(_, file)| *file)
}

fn edit_revert(steps: &[Owned]) -> f64 {
    #[rustfmt::skip]
    let tools = [
        "edit", "write", "str_replace", "str_replace_editor", "patch", "apply_patch", "create_file",
        "overwrite",
    ];
    let mut edits: Vec<(String, bool)> = Vec::new();
    for step in steps {
        if step.tool.as_ref().is_some_and(|tool| tools.contains(&tool.to_lowercase().as_str())) {
            edits.push((step.input.clone().unwrap_or_default(), false));
        }
        if failed(step)
            && let Some(edit) = edits.last_mut()
        {
            edit.1 = true;
        }
    }
    let mut cycles: BTreeMap<&str, usize> = BTreeMap::new();
    for pair in edits.windows(2) {
        if let (true, Some(before), Some(after)) = (pair[0].1, file(&pair[0].0), file(&pair[1].0))
            && before == after
        {
            *cycles.entry(before).or_default() += 1;
        }
    }
    let cycle = ratio(cycles.values().copied().max().unwrap_or(0), 2).min(1.0);
    let reverted = edits.windows(3).last().is_some_and(|last| {
        overlap(&last[2].0, &last[0].0) > overlap(&last[2].0, &last[1].0) + 0.10
    });
    if reverted { 1.0 } else { cycle }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// After every step, the incremental scores equal those of the whole prefix.
    #[test]
    fn incremental_equals_from_scratch(trace in trace(40)) {
        let new = || MonitorSet::new(&heuristic(), "");
        let mut monitors = new();
        for at in 0..trace.len() {
            let prefix = &trace[..=at];
            let live = monitors.observe(&trace[at].step());
            let mut fresh = new();
            let scratch = prefix.iter().map(|step| fresh.observe(&step.step())).last().expect("not empty");
            prop_assert_eq!(&live, &scratch);

            let score = |id: &str| live.readings.iter().find(|reading| reading.monitor.id == id).map(|r| r.score);
            prop_assert_eq!(score("streak"), Some(streak(prefix)));
            prop_assert_eq!(score("call_count"), Some(call_count(prefix)));
            prop_assert_eq!(score("diversity"), Some(diversity(prefix)));
            prop_assert_eq!(score("edit_revert"), Some(edit_revert(prefix)));

            let sum: f64 = live.readings.iter().zip(Weights::default().iter()).map(|(r, weight)| weight * r.score).sum();
            prop_assert_eq!(live.composite, round4(sum));
            for reading in &live.readings {
                prop_assert!((0.0..=1.0).contains(&reading.score));
                prop_assert_eq!(reading.fired, reading.score >= 0.6);
                prop_assert_eq!(reading.evidence.is_some(), reading.score > 0.0);
            }
        }
    }
}
