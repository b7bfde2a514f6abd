//! What a person sees, from a corpus small enough to count by hand.

use super::Report;
use super::html::html;
use super::json::json;
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
    measure(&corpus(set, oops), &[&Oops, &StepCount], &options)
}

#[test]
fn a_table_to_read() {
    insta::assert_snapshot!(table(&report("small", "oops"), Detail::Short), @r"
    Runs of at least 5 steps; 95 % intervals from 200 draws of tasks; seed 1.
    S and F: successes and failures; a run fires when any monitor fires at any step.
    AUC: chance that a failed run scores above a successful one; matched: of nearly equal length
    (10 % or one step). Mean and peak: of the composite over the run. First 5 and 10: AUC of the
    mean over these steps, between runs that have as many.

    Targets (oops)
    target                                                       split     value  verdict       rests on
    fires on at most 10 % of the successful runs in every set    all       0.083  met           loudest in small: 1 of 12
    fires on at most 10 % of the successful runs in every set    dev       0.111  MISSED        loudest in small: 1 of 9
    fires on at most 10 % of the successful runs in every set    held out  0.000  met           loudest in small: 0 of 3
    matched area of the composite's mean is at least 0.62        all       0.819  met           0.66 to 0.95, sets averaged: 1
    matched area of the composite's mean is at least 0.62        dev       –      not measured
    matched area of the composite's mean is at least 0.62        held out  –      not measured
    matched area of the composite's peak is at least 0.62        all       0.833  met           0.68 to 0.96, sets averaged: 1
    matched area of the composite's peak is at least 0.62        dev       –      not measured
    matched area of the composite's peak is at least 0.62        held out  –      not measured
    finds at least 85 % of planted loops                         all       0.333  MISSED        1 of 3
    finds at least 85 % of planted loops                         dev       0.333  MISSED        1 of 3
    finds at least 85 % of planted loops                         held out  –      not measured
    finds at least 60 % of planted reverts                       all       –      not measured
    finds at least 60 % of planted reverts                       dev       –      not measured
    finds at least 60 % of planted reverts                       held out  –      not measured
    finds at least 60 % of planted contradictions                all       0.000  MISSED        0 of 3
    finds at least 60 % of planted contradictions                dev       0.000  MISSED        0 of 2
    finds at least 60 % of planted contradictions                held out  0.000  MISSED        0 of 1
    finds at least 85 % of planted unverified finishes           all       –      not measured
    finds at least 85 % of planted unverified finishes           dev       –      not measured
    finds at least 85 % of planted unverified finishes           held out  –      not measured
    finds at least 60 % of planted drifts                        all       0.000  MISSED        0 of 3
    finds at least 60 % of planted drifts                        dev       0.000  MISSED        0 of 2
    finds at least 60 % of planted drifts                        held out  0.000  MISSED        0 of 1
    raises an alarm before the plant in at most 5 % of the runs  all       0.333  MISSED        most before drifts: 1 of 3; of all plants 2 of 9
    raises an alarm before the plant in at most 5 % of the runs  dev       0.500  MISSED        most before drifts: 1 of 2; of all plants 2 of 7
    raises an alarm before the plant in at most 5 % of the runs  held out  0.000  met           most before drifts: 0 of 1; of all plants 0 of 2

    Outcome by set
    set    split     S/F    judge       fires on S   fires on F     AUC mean  AUC peak  matched mean      matched peak      pairs  first 5  first 10
    small  all       12/12  oops        8 % [0–35]   75 % [47–100]  0.82      0.83      0.82 [0.66–0.95]  0.83 [0.68–0.96]  144    0.83     –
    small  all       12/12  step count  0 % [0–24]   0 % [0–24]     0.50      0.50      0.50 [0.31–0.67]  0.50 [0.31–0.67]  144    0.50     –
    small  dev       9/6    oops        11 % [0–43]  83 % [44–100]  0.84      0.86      0.84 [0.61–1.00]  0.86 [0.67–1.00]  54     0.86     –
    small  dev       9/6    step count  0 % [0–30]   0 % [0–39]     0.44      0.44      0.44 [0.20–0.72]  0.44 [0.20–0.72]  54     0.50     –
    small  held out  3/6    oops        0 % [0–56]   67 % [25–100]  0.83      0.83      0.83 [0.62–1.00]  0.83 [0.62–1.00]  18     0.83     –
    small  held out  3/6    step count  0 % [0–56]   0 % [0–39]     0.50      0.50      0.50 [0.20–0.92]  0.50 [0.20–0.92]  18     0.50     –

    Average over sets
    judge       split  statistic  raw AUC  matched AUC       sets
    oops        all    mean       0.819    0.82 [0.66–0.95]  small
    oops        all    peak       0.833    0.83 [0.68–0.96]  small
    oops        all    last       0.500    0.50 [0.50–0.50]  small
    step count  all    mean       0.500    0.50 [0.31–0.67]  small
    step count  all    peak       0.500    0.50 [0.31–0.67]  small
    step count  all    last       0.500    0.50 [0.31–0.67]  small

    Agreement with human step labels
    set    split     judge  monitor              labels hit           at random  lift              precision of alarms  at random
    small  all       oops   any                  89 % [57–98] of 9    39 %       0.50 [0.28–0.61]  89 % [57–98] of 9    39 %
    small  all       oops   claim_contradiction  89 % [57–98] of 9    39 %       0.50 [0.28–0.61]  89 % [57–98] of 9    39 %
    small  dev       oops   any                  80 % [38–96] of 5    38 %       0.42 [0.02–0.62]  80 % [38–96] of 5    38 %
    small  dev       oops   claim_contradiction  80 % [38–96] of 5    38 %       0.42 [0.02–0.62]  80 % [38–96] of 5    38 %
    small  held out  oops   any                  100 % [51–100] of 4  40 %       0.60 [0.57–0.62]  100 % [51–100] of 4  40 %
    small  held out  oops   claim_contradiction  100 % [51–100] of 4  40 %       0.60 [0.57–0.62]  100 % [51–100] of 4  40 %

    Planted faults
    judge  planted         way  set    split     plants  recall in 5 steps  by a monitor meant for it  alarms before  median delay
    oops   loops           any  all    all       3       33 % [0–100]       0 % [0–56]                 33 % [0–100]   1
    oops   loops           any  all    dev       3       33 % [0–100]       0 % [0–56]                 33 % [0–100]   1
    oops   loops           any  small  all       3       33 % [0–100]       0 % [0–56]                 33 % [0–100]   1
    oops   contradictions  any  all    all       3       0 % [0–56]         0 % [0–56]                 0 % [0–56]     –
    oops   contradictions  any  all    dev       2       0 % [0–66]         0 % [0–66]                 0 % [0–66]     –
    oops   contradictions  any  all    held out  1       0 % [0–79]         0 % [0–79]                 0 % [0–79]     –
    oops   contradictions  any  small  all       3       0 % [0–56]         0 % [0–56]                 0 % [0–56]     –
    oops   drifts          any  all    all       3       0 % [0–56]         0 % [0–56]                 33 % [0–100]   –
    oops   drifts          any  all    dev       2       0 % [0–66]         0 % [0–66]                 50 % [0–100]   –
    oops   drifts          any  all    held out  1       0 % [0–79]         0 % [0–79]                 0 % [0–79]     –
    oops   drifts          any  small  all       3       0 % [0–56]         0 % [0–56]                 33 % [0–100]   –
    ");
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
        let report = measure(&runs, &[&Oops], &options);
        assert!(report.missed_plants.len() > 5);
        let any = report.missed_plants.iter().any(|plant| held_out(&plant.run));
        assert_eq!(any, expected, "{shown:?}");
        assert!(report.false_alarms.iter().all(|alarm| expected || !held_out(&alarm.run)));
    }
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
