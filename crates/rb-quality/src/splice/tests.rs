//! Plants keep the run before them, are fixed by their seed, and are where they say they are.

use super::*;
use crate::corpus::Task;

fn step(thought: &str, tool: &str, input: &str, observation: &str) -> OwnedStep {
    OwnedStep {
        thought: thought.into(),
        tool: tool.into(),
        input: input.into(),
        input_is_text: true,
        observation: observation.into(),
        ..OwnedStep::default()
    }
}

/// A run of `count` steps by an agent with that tool style.
fn run(style: &str, id: usize, count: usize) -> LabelledRun {
    let mut steps: Vec<OwnedStep> = (0..count)
        .map(|n| {
            let thought = format!("Let me check part {n} of task {id}.");
            match style {
                "shell" if n == count - 3 => {
                    step(&thought, "bash", &format!("sed -i 's/a/b/' src/part{n}.py"), "")
                }
                "shell" => {
                    step(&thought, "bash", &format!("cat src/part{n}.py"), &format!("content {n}"))
                }
                "calls" => step(
                    &thought,
                    if n % 2 == 0 { "update_order" } else { "get_order" },
                    &format!(r#"{{"order_id":"W10{n}","status":"open"}}"#),
                    &format!("order W10{n}: found, with three items and an address"),
                ),
                _ => step(&thought, "", "", &format!("I see, and what about {n}?")),
            }
        })
        .collect();
    steps.push(step("Finished.", "", "", ""));
    LabelledRun {
        id: format!("{style}-{id}"),
        set: style.into(),
        task: Task {
            key: format!("task {id}"),
            text: format!("Repair the PartLoader of case_{id}."),
        },
        outcome: Some(Outcome::Success),
        steps,
        ..LabelledRun::default()
    }
}

fn corpus() -> Vec<LabelledRun> {
    let styles = ["shell", "calls", "talk"];
    styles.iter().flat_map(|style| (0..40).map(|id| run(style, id, 6 + id % 9))).collect()
}

#[test]
fn the_steps_before_a_plant_are_those_of_the_run() {
    let runs = corpus();
    let spliced = splice_all(&runs, 1000, 3);
    assert!(spliced.len() > 400, "{}", spliced.len());
    for spliced in spliced {
        let source = runs.iter().find(|run| run.id == spliced.run.id).expect("a source");
        let (from, start) = (spliced.changed_from, spliced.start);
        let name = format!("{:?} {} {}", spliced.kind, spliced.variant, spliced.run.id);
        assert!(from >= MIN_PREFIX && from <= start, "{name}: {from} {start}");
        assert!(start < spliced.run.steps.len(), "{name}: the plant begins inside the run");
        assert_eq!(spliced.run.steps[..from], source.steps[..from], "{name}");
        assert_ne!(spliced.run.steps.get(from), source.steps.get(from), "{name}");
        assert_eq!((spliced.run.outcome, &spliced.run.task), (None, &source.task), "{name}");
    }
}

#[test]
fn a_plant_is_fixed_by_its_seed() {
    let runs = corpus();
    assert_eq!(splice_all(&runs, 10, 5), splice_all(&runs, 10, 5));
    assert_ne!(splice_all(&runs, 10, 5), splice_all(&runs, 10, 6));
}

#[test]
fn what_is_planted_has_the_form_of_the_agent() {
    let runs = corpus();
    for spliced in splice_all(&runs, 1000, 9) {
        let tools: Vec<&str> = match spliced.run.set.as_str() {
            "shell" => vec!["bash", ""],
            "calls" => vec!["update_order", "get_order", ""],
            _ => vec![""],
        };
        assert!(spliced.run.steps.iter().all(|step| tools.contains(&step.tool.as_str())));
    }
}

#[test]
fn every_way_of_planting_occurs_and_none_is_one_phrase() {
    let spliced = splice_all(&corpus(), 1000, 1);
    let mut ways: Vec<_> = spliced.iter().map(|s| format!("{:?}: {}", s.kind, s.variant)).collect();
    ways.sort();
    ways.dedup();
    insta::assert_snapshot!(ways.join("\n"), @r"
    Contradiction: file missing
    Contradiction: record missing
    Contradiction: says the opposite
    Contradiction: tests pass
    Drift: other task
    Loop: cycle
    Loop: exact
    Loop: reworded
    Loop: same error
    Revert: bare
    Revert: call
    Revert: with checks
    UnverifiedFinish: checks dropped
    UnverifiedFinish: late edit
    ");
    for kind in Kind::ALL {
        let of_kind = spliced.iter().filter(|s| s.kind == kind);
        let mut words: Vec<_> = of_kind.map(|s| &s.run.steps[s.start].thought).collect();
        words.sort();
        words.dedup();
        assert!(words.len() >= 8, "{kind:?}: {words:?}");
    }
}

#[test]
fn short_runs_and_unable_agents_get_no_plant() {
    let short = run("shell", 1, 4);
    assert!(Kind::ALL.iter().all(|kind| splice(&short, &[], *kind, 1).is_none()));
    let talk = run("talk", 1, 9);
    for (kind, able) in [
        (Kind::Loop, true),
        (Kind::Revert, false),
        (Kind::Contradiction, true),
        (Kind::UnverifiedFinish, false),
        (Kind::Drift, false),
    ] {
        assert_eq!(splice(&talk, &[&talk], kind, 1).is_some(), able, "{kind:?}");
    }
}
