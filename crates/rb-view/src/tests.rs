//! Tests of rendered runs, including hostile ones.

use std::collections::HashSet;
use std::sync::Arc;

use rb_engine::config::Engine;
use rb_engine::policy::fsm::State;
use rb_store::{Evidence, RunKey, RunRow, StepRow, Tokens};
use rb_wire::model::{Run, RunStep};

use crate::*;

/// Returns a run with equal steps.
fn repeating_run(steps: usize, text: &str) -> Run<'static> {
    let step = RunStep {
        thought: text.to_owned().into(),
        tool: "bash".into(),
        observation: text.to_owned().into(),
        is_error: true,
        ..RunStep::default()
    };
    Run {
        run_id: Some(text.to_owned().into()),
        task: Some(text.to_owned().into()),
        agent: Some(text.to_owned().into()),
        model: Some(text.to_owned().into()),
        outcome: Some(text.to_owned().into()),
        steps: vec![step; steps],
        ..Run::default()
    }
}

fn rendered(recorded: &Run<'_>) -> String {
    let view = from_transcript(recorded, "place", "file", &Arc::new(Engine::default()));
    let listed = Listed { anchor: Some("a-run".to_owned()), ..Listed::from(&view) };
    page(&title(&view), &run_list("folder", &[listed], &[run(&view, "a-")]))
}

#[test]
fn run_texts_never_become_markup() {
    let hostile = [
        "</pre></style><script>alert(1)</script><img src=x onerror=alert(1)>",
        "\" onmouseover=\"alert(1)\" x=\"",
        "'><svg/onload=alert(1)>",
        "\u{202e}reversed\u{2066}\u{200f}\u{1b}[31m\u{0}\u{feff}",
    ];
    for text in hostile {
        let page = rendered(&repeating_run(3, text));
        for forbidden in [
            "<script",
            "<img",
            "<svg/",
            "\" onmouseover",
            "\u{202e}",
            "\u{2066}",
            "\u{200f}",
            "\u{1b}",
            "\u{0}",
            "\u{feff}",
        ] {
            assert!(!page.contains(forbidden), "{forbidden:?} of {text:?}");
        }
        assert_eq!(page.matches("<style>").count(), 1);
        assert_eq!(page.matches("style=\"").count(), 0, "the policy refuses inline styles");
    }
}

#[test]
fn the_page_loads_no_resource() {
    let page = rendered(&repeating_run(3, "x"));
    for outside in ["src=", "@import", "url(", "http://", "https://", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src &#39;none&#39;") || page.contains("default-src 'none'"));
}

#[test]
fn the_size_of_a_page_is_bounded() {
    let page = rendered(&repeating_run(2, &"a".repeat(10_000_000)));
    assert!(page.len() < 200_000, "{} bytes", page.len());
    assert!(page.contains("9988 kB more not shown"));
    let page = rendered(&repeating_run(5_000, "Again."));
    assert!(page.len() < 4_000_000, "{} bytes", page.len());
    assert!(page.contains("3,500 steps of this long run"));
}

#[test]
fn every_link_within_a_page_has_a_target() {
    for steps in [0, 1, 12, 1_800] {
        let page = rendered(&repeating_run(steps, "I run the tests again."));
        let attributes =
            |mark: &'static str| page.split(mark).skip(1).filter_map(|rest| rest.split('"').next());
        let anchors: HashSet<&str> = attributes("id=\"").collect();
        for to in attributes("href=\"#") {
            assert!(anchors.contains(to), "{to} of {steps} steps");
        }
    }
}

#[test]
fn a_stored_run_shows_its_guidance() {
    let row = RunRow {
        run: RunKey { org: "o".to_owned(), run_id: "r-1".to_owned() },
        task: "Mend the parser.".to_owned(),
        outcome: Some("failure: timeout".to_owned()),
        started_ms: 1_000,
        finished_ms: Some(62_000),
        tokens: Tokens { total: 12_345, ..Tokens::default() },
        cost_usd: 0.5,
        ..RunRow::default()
    };
    let evidence = Evidence {
        monitor: "streak".to_owned(),
        score: 0.9,
        text: "Four calls alike.".to_owned(),
        steps: vec![0],
    };
    let steps = [
        StepRow {
            thought: "Look.".to_owned(),
            scores: [("streak".into(), 0.3)].into(),
            ..StepRow::default()
        },
        StepRow {
            step_index: 1,
            scores: [("streak".into(), 0.9)].into(),
            fired: vec!["streak".to_owned()],
            evidence: vec![evidence],
            injections: vec!["Try another way".to_owned(), "Cite the file".to_owned()],
            injection_sources: vec!["monitor".to_owned(), "e3".to_owned()],
            intervention_texts: vec!["Try another way, for once.".to_owned()],
            ..StepRow::default()
        },
    ];
    let html = run(&from_store(&row, &steps, StateReplay::default()), "").into_string();
    for part in [
        "Mend the parser.",
        "failure: timeout",
        "12,345",
        "$0.50",
        "1 min 01 s",
        "Four calls alike.",
        "Try another way, for once.",
        "Cite the file",
        "guidance given",
        "class=\"outcome bad\"",
        "heat-5",
        "polygon class=\"said\"",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert_eq!(html.matches("Try another way").count(), 1);
}

#[test]
fn the_worst_run_comes_first() {
    let listed = |name: &str, peak, fired_steps| Listed {
        name: name.to_owned(),
        peak,
        fired_steps,
        ..Listed::default()
    };
    let mut runs =
        [listed("calm", 0.1, 0), listed("b", 0.9, 1), listed("worst", 0.9, 4), listed("a", 0.9, 1)];
    runs.sort_by(Listed::worst_first);
    assert_eq!(runs.map(|run| run.name), ["worst", "a", "b", "calm"]);
}

/// Returns the rows of a run whose thoughts are hard at the start and neutral later, so that the state on a later page
/// depends on the first steps.
fn long_run(count: u32) -> Vec<StepRow> {
    let hard = "I am confused. Maybe wrong, perhaps not, I am not sure why it fails again. Error? Unclear.";
    let rows = (0..count).map(|step_index| StepRow {
        step_index,
        thought: if step_index < 10 { hard } else { "" }.to_owned(),
        ..StepRow::default()
    });
    rows.collect()
}

#[test]
fn states_on_later_pages_continue_the_run() {
    const PAGE: usize = 400;
    let run = RunRow::default();
    let mut rows = long_run(1_000);
    let whole = from_store(&run, &rows, StateReplay::default());
    let states: Vec<_> = whole.steps.iter().map(|step| step.state).collect();
    assert_ne!(states[999], State::Init, "the run leaves INIT");
    let check = |rows: &[StepRow], earlier: &[StepRow], expected: &[_]| {
        let mut replay = StateReplay::default();
        for row in earlier {
            replay.observe(row);
        }
        let page = from_store(&run, rows, replay);
        assert_eq!(page.steps.iter().map(|step| step.state).collect::<Vec<_>>(), expected);
    };
    for from in [0, PAGE, 2 * PAGE, 600] {
        let (earlier, page) = rows.split_at(from);
        let page = &page[..page.len().min(PAGE)];
        assert_eq!(StateReplay::is_needed(page), from > 0);
        check(page, earlier, &states[from..from + page.len()]);
    }
    for (row, state) in rows.iter_mut().zip(&states) {
        row.state = state.name().to_owned();
    }
    let page = &rows[PAGE..2 * PAGE];
    assert!(!StateReplay::is_needed(page), "stored states need no earlier rows");
    check(page, &[], &states[PAGE..2 * PAGE]);
}

#[test]
fn a_run_without_outcome_is_running_or_unknown() {
    for (outcome, is_running, shown) in [
        (None, true, "<span class=\"outcome running\">running</span>"),
        (None, false, "<span class=\"outcome open\">unknown</span>"),
        (Some("success".into()), false, "<span class=\"outcome good\">success</span>"),
    ] {
        let view = RunView { outcome, is_running, ..RunView::default() };
        let page = run(&view, "").into_string();
        assert!(page.contains(shown), "{shown} in {page}");
    }
}
