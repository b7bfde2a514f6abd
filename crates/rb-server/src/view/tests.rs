//! What people see of a run, and what a hostile run cannot do to them.

use std::collections::HashSet;
use std::sync::Arc;

use rb_engine::config::Engine;
use rb_store::{Evidence, RunKey, RunRow, StepRow, Tokens};
use rb_wire::transcripts::{Run, RunStep};

use super::*;

/// An agent that repeats itself.
fn stuck(steps: usize, text: &str) -> Run<'static> {
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

fn drawn(recorded: &Run<'_>) -> String {
    let view = judged(recorded, "place", "file", &Arc::new(Engine::default()));
    let listed = Listed { anchor: Some("a-run".to_owned()), ..Listed::from(&view) };
    page(&title(&view), &index("folder", &[listed], &[run(&view, "a-")]))
}

#[test]
fn nothing_in_a_run_reaches_the_page_as_markup() {
    let hostile = [
        "</pre></style><script>alert(1)</script><img src=x onerror=alert(1)>",
        "\" onmouseover=\"alert(1)\" x=\"",
        "'><svg/onload=alert(1)>",
        "\u{202e}reversed\u{2066}\u{200f}\u{1b}[31m\u{0}\u{feff}",
    ];
    for text in hostile {
        let page = drawn(&stuck(3, text));
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
        assert_eq!(page.matches("style=\"").count(), 0, "the policy would refuse it");
    }
}

#[test]
fn the_page_loads_nothing() {
    let page = drawn(&stuck(3, "x"));
    for outside in ["src=", "@import", "url(", "http://", "https://", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src &#39;none&#39;") || page.contains("default-src 'none'"));
}

#[test]
fn a_page_has_a_size_whatever_the_run() {
    let page = drawn(&stuck(2, &"a".repeat(10_000_000)));
    assert!(page.len() < 200_000, "{} bytes", page.len());
    assert!(page.contains("9988 kB more not shown"));
    let page = drawn(&stuck(5_000, "Again."));
    assert!(page.len() < 4_000_000, "{} bytes", page.len());
    assert!(page.contains("3,500 steps of this long run"));
}

#[test]
fn every_link_within_a_page_leads_somewhere() {
    for steps in [0, 1, 12, 1_800] {
        let page = drawn(&stuck(steps, "I run the tests again."));
        let after =
            |mark: &'static str| page.split(mark).skip(1).filter_map(|rest| rest.split('"').next());
        let places: HashSet<&str> = after("id=\"").collect();
        for to in after("href=\"#") {
            assert!(places.contains(to), "{to} of {steps} steps");
        }
    }
}

#[test]
fn a_stored_run_shows_what_was_said() {
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
    let shown = run(&stored(&row, &steps), "").into_string();
    for words in [
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
        assert!(shown.contains(words), "{words}");
    }
    assert_eq!(shown.matches("Try another way").count(), 1, "said once");
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
    runs.sort_by(Listed::worse_first);
    assert_eq!(runs.map(|run| run.name), ["worst", "a", "b", "calm"]);
}
