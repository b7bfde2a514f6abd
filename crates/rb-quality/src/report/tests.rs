//! What a person sees, from a corpus small enough to count by hand.

use super::Report;
use super::html::html;
use super::json::json;
use super::per_monitor::{Count, per_monitor};
use super::table::{Detail, table};
use crate::corpus::{LabelledRun, LabelledStep, Outcome, OwnedStep, Split, Task};
use crate::judge::{Fired, Judge, StepCount, Trace, TracedStep};
use crate::measure::{Options, measure};

/// Fires wherever the thought says `oops`.
struct Oops;

impl Judge for Oops {
    fn name(&self) -> &'static str {
        "oops"
    }

    fn monitors(&self) -> Vec<&'static str> {
        vec!["claim_contradiction"]
    }

    fn trace(&self, run: &LabelledRun) -> Trace {
        let step = |step: &OwnedStep| {
            let says = step.thought.contains("oops");
            let score = if says { 1.0 } else { 0.0 };
            let sentence = format!("It said {:?}.", step.thought);
            let fired = Fired { monitor: 0, begins: true, sentence };
            let fired = if says { vec![fired] } else { Vec::new() };
            TracedStep { scores: vec![score], composite: score / 2.0, fired }
        };
        Trace { steps: run.steps.iter().map(step).collect() }
    }
}

/// Twelve successes, one with an alarm; twelve failures, nine with one, at the labelled step in eight.
fn corpus(set: &str, oops: &str) -> Vec<LabelledRun> {
    let run = |n: usize| {
        let failed = n >= 12;
        let says = if failed { n < 21 } else { n == 0 };
        let mut steps =
            vec![OwnedStep { thought: "Go on.".into(), ..OwnedStep::default() }; 7 + n % 2];
        if says {
            steps[3].thought = oops.into();
        }
        let index = if n == 20 { 6 } else { 3 };
        let label = LabelledStep { index, category: "slip".into() };
        LabelledRun {
            id: format!("run {n}"),
            set: set.into(),
            task: Task { key: format!("task {n}"), text: format!("Task {n} of {set}") },
            outcome: Some(if failed { Outcome::Failure } else { Outcome::Success }),
            steps,
            labelled_steps: if failed && says { vec![label] } else { Vec::new() },
            ..LabelledRun::default()
        }
    };
    (0..24).map(run).collect()
}

fn report(set: &str, oops: &str) -> Report {
    let options = Options { resamples: 200, plants_max: 3, ..Options::default() };
    measure(&corpus(set, oops), &[&Oops, &StepCount], &options, &())
}

#[test]
fn a_table_to_read() {
    let text = table(&report("small", "oops"), Detail::Short, &|_, text| text.to_owned());
    insta::assert_snapshot!(text);
}

#[test]
fn the_same_seed_gives_the_same_report() {
    assert_eq!(report("small", "oops"), report("small", "oops"));
}

#[test]
fn hostile_texts_stay_text() {
    let hostile = "oops <script>alert('x')</script> <img src=x onerror=\"y\"> \u{202e}\u{0} &amp;";
    let page = html(&report("<b>set</b>", hostile));
    for never in ["<script", "<img", "<b>set", "onerror=\"", "\u{202e}", "\u{0}"] {
        assert!(!page.contains(never), "{never:?}");
    }
    for always in
        ["&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;", "&lt;b&gt;set&lt;/b&gt;", "&amp;amp;"]
    {
        assert!(page.contains(always), "{always:?}");
    }
    assert!(!page.contains("http"), "the page needs no network");
    assert!(page.contains("prefers-color-scheme: dark"));
}

#[test]
fn held_out_texts_are_shown_only_on_request() {
    let runs = corpus("small", "oops");
    let held_out = |id: &str| runs.iter().any(|run| run.id == id && Split::HeldOut.holds(run));
    for (shown, expected) in [(Split::Dev, false), (Split::All, true)] {
        let options = Options { resamples: 10, shown, ..Options::default() };
        let report = measure(&runs, &[&Oops], &options, &());
        assert!(report.missed_plants.len() > 5);
        let any = report.missed_plants.iter().any(|plant| held_out(&plant.run));
        assert_eq!(any, expected, "{shown:?}");
        assert!(report.false_alarms.iter().all(|alarm| expected || !held_out(&alarm.run)));
    }
}

#[test]
fn the_sheet_adds_up_the_sets() {
    let mut runs = corpus("one", "oops");
    runs.extend(corpus("two", "oops"));
    let options = Options { resamples: 10, plants_max: 3, ..Options::default() };
    let report = measure(&runs, &[&Oops, &StepCount], &options, &());
    let sheet = per_monitor(&report);
    assert_eq!((sheet.sets, sheet.runs, sheet.steps_min, sheet.monitors.len()), (2, 48, 5, 1));
    let row = &sheet.monitors[0];
    assert_eq!(row.monitor, "claim_contradiction");
    assert_eq!(row.fires_on_successes, Count { hits: 2, of: 24 });
    assert_eq!(row.fires_on_failures, Count { hits: 18, of: 24 });
    let kinds: Vec<&str> = row.planted.iter().map(|row| row.planted).collect();
    assert_eq!(kinds, ["contradictions"]);
    let labels = row.near_labels.expect("labels");
    assert_eq!(labels.alarms, Count { hits: 16, of: 18 });
    assert!((0.2..0.6).contains(&labels.at_random), "{}", labels.at_random);
    let text = serde_json::to_string(&sheet).expect("JSON");
    assert!(!text.contains("Task") && !text.contains("oops"), "no text of a run: {text}");
}

#[test]
fn json_has_every_part() {
    let value: serde_json::Value =
        serde_json::from_str(&json(&report("small", "oops")).expect("JSON")).expect("JSON");
    let judge = &value["sets"][0]["judges"][0];
    assert_eq!(judge["fires_on_successes"]["hits"], 1);
    assert_eq!(judge["fires_on_failures"]["of"], 12);
    assert_eq!(judge["composite"][0]["statistic"], "mean");
    assert_eq!(judge["agreement"]["hits"]["hits"], 8);
    assert_eq!(value["sets"][1]["split"], "dev");
    assert_eq!(value["false_alarms"][0]["run"], "run 0");
    assert_eq!(value["plants"][0]["kind"], "loop");
    assert!(value["verdicts"].as_array().is_some_and(|verdicts| verdicts.len() == 27));
}
