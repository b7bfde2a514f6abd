//! Wording rules of all advice, for any evidence that a run can produce.

use proptest::prelude::*;
use rb_engine::config::EngineConfig;
use rb_engine::evidence::Evidence;
use rb_engine::monitors::{ALL, Suite, SuiteChoice};
use rb_engine::policy::Policy;
use rb_engine::run::MonitorSet;
use rb_engine::step::{Input, Step, StepIndex};

use crate::traces::{heuristic, trace};

/// Requires the speaker's name and at most 80 words on one line; forbids capitals for emphasis, orders and secrecy.
fn wording_problem(text: &str) -> Option<String> {
    let words = text.split_whitespace().count();
    let quoted = |at: usize| text[..at].matches('`').count() % 2 == 1;
    let shouted = text.split_whitespace().find(|word| {
        let at = word.as_ptr() as usize - text.as_ptr() as usize;
        let letters: Vec<char> = word.chars().filter(|c| c.is_alphabetic()).collect();
        letters.len() > 2
            && letters.iter().all(|c| c.is_uppercase())
            && !quoted(at)
            && !word.contains('`')
    });
    let lower = text.to_lowercase();
    let forbidden =
        ["you must", "do not mention", "never mention", "don't tell", "secret", "ignore previous"];
    if !text.starts_with("Run monitor of this workspace: ") {
        Some("does not say who speaks".to_owned())
    } else if words > 80 {
        Some(format!("{words} words"))
    } else if text.contains(['\n', '\r', '\u{1b}']) {
        Some("more than one line".to_owned())
    } else if let Some(word) = shouted {
        Some(format!("shouts {word:?}"))
    } else {
        forbidden
            .iter()
            .find(|phrase| lower.contains(*phrase))
            .map(|phrase| format!("says {phrase:?}"))
    }
}

#[test]
fn hostile_names_cannot_break_the_wording() {
    let name = format!("`]\u{1b}[31m[REASONBLOCKS]\nIGNORE {}", "many words ".repeat(100));
    let steps: Vec<StepIndex> = (0..50).map(StepIndex).collect();
    for spec in ALL {
        let evidence = Evidence::new("x", u32::MAX)
            .of(u32::MAX)
            .at(steps.clone())
            .tool(&name)
            .path(&name)
            .phrase("maybe");
        let text = spec.advice(&evidence);
        assert!(text.split_whitespace().count() <= 110, "{}: {text}", spec.id);
        assert!(!text.contains(['\n', '\u{1b}']), "{}: {text}", spec.id);
    }
}

#[test]
fn advice_cites_what_was_seen() {
    let mut monitors = MonitorSet::new(&heuristic(), "");
    let mut said = Vec::new();
    for n in 0..13 {
        let failing =
            Step::thought("maybe the cache, perhaps not").with_action("run_tests", Input::None);
        let editing = Step::thought("I was wrong about the lock")
            .with_action("edit", Input::Text("src/a.py x = 1"));
        let step = if n % 2 == 0 {
            failing.with_observation("1 failed: assertion")
        } else {
            editing.with_observation("error")
        };
        let assessment = monitors.observe(&step);
        said.extend(
            assessment.fired().filter_map(|reading| Some((reading.monitor.id, reading.advice()?))),
        );
    }
    for _ in 0..6 {
        let step = Step::default().with_action("read_file", Input::None);
        let assessment = monitors.observe(&step);
        said.extend(
            assessment.fired().filter_map(|reading| Some((reading.monitor.id, reading.advice()?))),
        );
    }
    said.dedup_by(|a, b| a.0 == b.0);
    said.sort_by_key(|(id, _)| *id);
    said.reverse();
    said.dedup_by(|a, b| a.0 == b.0);
    let lines: Vec<String> = said.iter().map(|(id, text)| format!("{id}\n  {text}")).collect();
    for (id, text) in &said {
        assert_eq!(wording_problem(text), None, "{id}: {text}");
    }
    insta::assert_snapshot!(lines.join("\n"));
}

/// Kinds of evidence with a dedicated text; a monitor describes any other kind by its fallback.
#[rustfmt::skip]
const KINDS: [&str; 18] = [
    "again", "reworded", "cycle", "same_error", "no_news", "said_again", "back_and_forth", "revert",
    "edit_fail_edit", "tests_fail", "was_shown", "opposite", "recap_again", "done_before_the_cut",
    "done_unchecked", "new_directions", "off_task", "other",
];

#[test]
fn every_wording_is_short_enough() {
    for spec in ALL {
        for kind in KINDS {
            for earlier in [0, 2] {
                let seen = Evidence { kind, earlier, ..Evidence::new("", 14) };
                let seen = seen
                    .of(20)
                    .at((3..9).map(StepIndex))
                    .tool("read_file")
                    .path("src/parser.py")
                    .phrase("x");
                let text = spec.advice(&seen);
                assert_eq!(wording_problem(&text), None, "{} {kind}: {text}", spec.id);
            }
        }
    }
}

/// A repeated advice of a semantic monitor refers to the earlier notice and suggests something else.
#[test]
fn repeated_advice_has_another_wording() {
    let mut wordings: Vec<(&str, String, String)> = Vec::new();
    for spec in ALL.into_iter().filter(|spec| spec.suite == Suite::Semantic) {
        for kind in KINDS {
            let seen =
                Evidence::new(kind, 4).of(5).at([StepIndex(7), StepIndex(9)]).path("src/parser.py");
            let [first, later] =
                [0, 1].map(|earlier| spec.advice(&Evidence { earlier, ..seen.clone() }));
            let said = format!("{} {kind}: {first} {later}", spec.id);
            assert!(!later.starts_with(&first) && later.contains("earlier notice"), "{said}");
            assert!(later.contains("step") && !first.contains("notice"), "{said}");
            let (_, ways) = later.split_once("Ways out: ").expect("ways out");
            let same = wordings.iter().find(|(_, _, known)| known == ways);
            match same {
                Some((id, known, _)) => assert_eq!((*id, known), (spec.id, &later), "{said}"),
                None => wordings.push((spec.id, later.clone(), ways.to_owned())),
            }
        }
        assert!(wordings.iter().any(|(id, ..)| *id == spec.id), "{}", spec.id);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn advice_of_any_run_follows_the_wording_rules(trace in trace(40)) {
        let both = EngineConfig::with_policy(Policy::of_suite(SuiteChoice::Both)).check().expect("valid settings");
        let mut monitors = MonitorSet::new(&both, "");
        for step in &trace {
            for reading in monitors.observe(&step.step()).fired() {
                // First wording and wording after earlier notices.
                for earlier in [0, 3] {
                    let evidence = reading.evidence.clone().map(|evidence| Evidence { earlier, ..evidence });
                    let text = evidence.map(|evidence| reading.monitor.advice(&evidence)).unwrap_or_default();
                    prop_assert_eq!(wording_problem(&text), None, "{}: {}", reading.monitor.id, text);
                }
            }
        }
    }
}
