//! Truncated, damaged and hostile files: no importer panics, and data before the damage is preserved.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rb_wire::model::{Run, RunInput, RunStep};
use rb_wire::transcripts::{IMPORTERS, Imported, sniff};

use crate::fixtures::{FIXTURES, Fixture, importer};

/// Thought, tool and input of a step, without its observation.
type Deed = (String, String, String);

fn deed(step: &RunStep<'_>) -> Deed {
    let input = match &step.input {
        RunInput::None => "",
        RunInput::Text(text) | RunInput::Structured(text) => text,
    };
    (step.thought.to_string(), step.tool.to_string(), input.to_owned())
}

/// Counts the occurrences of each step, and those with an observation.
fn deeds(runs: &[Run<'_>], may_be_open: bool) -> BTreeMap<Deed, (usize, usize)> {
    let mut all = BTreeMap::new();
    // The last step of a run may be an unfinished turn with reasoning only.
    let is_open = |run: &Run<'_>, step: &RunStep<'_>| {
        step.tool.is_empty() && run.steps.last().is_some_and(|last| std::ptr::eq(last, step))
    };
    let steps = runs.iter().flat_map(|run| run.steps.iter().map(move |step| (run, step)));
    for (_, step) in steps.filter(|(run, step)| !may_be_open || !is_open(run, step)) {
        let (times, answers): &mut (usize, usize) = all.entry(deed(step)).or_default();
        *times += 1;
        *answers += usize::from(!step.observation.is_empty());
    }
    all
}

/// Checks that no step is lost when more input arrives; a thought may gain a call, and a call its argument.
#[track_caller]
fn check_growth(fixture: &Fixture, at: usize, before: &Imported<'_>, after: &Imported<'_>) {
    let later = deeds(&after.0, false);
    for (deed, (times, answers)) in deeds(&before.0, true) {
        let (thought, tool, input) = &deed;
        let is_same = |it: &Deed| match (tool.is_empty(), input.is_empty()) {
            (true, _) => it.0.starts_with(thought),
            (false, true) => it.0.starts_with(thought) && it.1 == *tool,
            (false, false) => it.0.starts_with(thought) && it.1 == *tool && it.2 == *input,
        };
        let grown = later.iter().filter(|(it, _)| is_same(it)).map(|(_, counts)| *counts);
        let (times_later, answers_later) =
            grown.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        let is_there = times_later >= times && answers_later >= answers;
        assert!(is_there, "{} at {at}: {deed:?} is gone", fixture.name);
    }
}

#[test]
fn a_file_that_is_cut_anywhere_keeps_its_whole_steps() {
    for fixture in FIXTURES {
        let parse = importer(fixture.importer).parse;
        let mut before = Imported::default();
        for at in 0..=fixture.bytes.len() {
            let cut = &fixture.bytes[..at];
            let found = parse(cut);
            check_growth(fixture, at, &before, &found);
            let _ = sniff(cut);
            before = found;
        }
    }
}

#[test]
fn bytes_that_are_not_unicode_are_told_and_the_rest_is_read() {
    for fixture in FIXTURES {
        let place = fixture
            .bytes
            .windows(2)
            .rposition(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_lowercase());
        let mut bytes = fixture.bytes.to_vec();
        bytes[place.expect("letters")] = 0xff;
        let (runs, diagnostics) = (importer(fixture.importer).parse)(&bytes);
        assert!(!runs.is_empty(), "{}", fixture.name);
        assert!(
            diagnostics.iter().any(|it| it.to_string().contains("Unicode")),
            "{} {diagnostics:?}",
            fixture.name
        );
    }
}

#[test]
fn long_texts_and_hostile_ones_come_through() {
    let evil = "\u{1b}]0;owned\u{7}\u{202e}<script>\u{0}".to_owned() + &"x".repeat(10 << 20);
    let text = serde_json::json!([
        { "role": "user", "content": evil },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "1", "name": evil, "input": { "a": evil } }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "1", "content": evil }] },
    ]);
    let text = text.to_string();
    let (runs, diagnostics) = (importer("anthropic-messages").parse)(text.as_bytes());
    assert_eq!(diagnostics, []);
    let step = &runs[0].steps[0];
    assert_eq!([&step.user_input, &step.tool, &step.observation], [evil.as_str(); 3]);
}

#[test]
fn nesting_of_any_depth_is_survived() {
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    let objects = format!("{}1{}", "{\"content\":".repeat(10_000), "}".repeat(10_000));
    for nest in [deep, objects] {
        let texts = [
            nest.clone(),
            format!("{{\"messages\": {nest}}}"),
            format!("[{{\"role\": \"assistant\", \"content\": {nest}}}]"),
            format!("{{\"resourceSpans\": {nest}}}"),
            format!(
                "{{\"spans\": [{{\"child_spans\": {nest}, \"attributes\": {{\"llm\": {nest}}}}}]}}"
            ),
            format!(
                "{{\"traceId\": 1, \"type\": \"GENERATION\", \"input\": {nest}, \"output\": {nest}}}"
            ),
        ];
        for text in texts {
            for importer in &IMPORTERS {
                let _ = (importer.parse)(text.as_bytes());
            }
            let _ = sniff(text.as_bytes());
        }
    }
}

#[test]
fn complaints_about_a_hostile_file_are_bounded_and_quick() {
    let started = std::time::Instant::now();
    for text in ["{x\n".repeat(200_000), format!("[{}1]", "1,\n".repeat(200_000))] {
        for importer in IMPORTERS.iter().filter(|importer| importer.id != "runs") {
            let (_, diagnostics) = (importer.parse)(text.as_bytes());
            assert!(
                (1..=1000).contains(&diagnostics.len()),
                "{} {}",
                importer.id,
                diagnostics.len()
            );
        }
    }
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

/// Passes the bytes to the detection and to every importer.
fn every_door(bytes: &[u8]) {
    let _ = sniff(bytes);
    for importer in &IMPORTERS {
        let (runs, diagnostics) = (importer.parse)(bytes);
        for run in &runs {
            for step in &run.steps {
                let _ = step.step();
            }
        }
        for diagnostic in diagnostics {
            let lines = u64::try_from(bytes.split(|byte| *byte == b'\n').count()).expect("a count");
            assert!((1..=lines + 1).contains(&diagnostic.line), "{}: {diagnostic}", importer.id);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_break_any_importer(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        every_door(&bytes);
    }

    /// Damages and combines parts of fixtures; almost valid input reaches the most code.
    #[test]
    fn no_damage_breaks_any_importer(
        pieces in prop::collection::vec((0..FIXTURES.len(), any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![any::<u8>(), prop::sample::select(b"{}[]\",:\\\n0n".to_vec())]), 0..8),
    ) {
        let mut bytes = Vec::new();
        for (fixture, from, to) in pieces {
            let whole = FIXTURES[fixture].bytes;
            let (from, to) = (from.index(whole.len()), to.index(whole.len()));
            bytes.extend_from_slice(&whole[from.min(to)..from.max(to)]);
        }
        if !bytes.is_empty() {
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        every_door(&bytes);
    }

    /// Damages a few bytes of a fixture and reads it with every importer.
    #[test]
    fn a_damaged_fixture_is_read_as_far_as_it_goes(
        fixture in 0..FIXTURES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = FIXTURES[fixture].bytes.to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        every_door(&bytes);
    }
}
