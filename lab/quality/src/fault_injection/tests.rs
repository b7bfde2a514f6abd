//! Invariants of fault injection.

use super::*;
use rb_quality::corpus::Task;

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

/// A run of `count` steps by an agent with these tools.
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
fn steps_before_the_fault_are_unchanged() {
    let runs = corpus();
    let faulty = inject_all(&runs, 1000, 3);
    assert!(faulty.len() > 400, "{}", faulty.len());
    for faulty in faulty {
        let source = runs.iter().find(|run| run.id == faulty.run.id).expect("a source");
        let (from, start) = (faulty.changed_from, faulty.start);
        let name = format!("{:?} {} {}", faulty.kind, faulty.variant, faulty.run.id);
        assert!(from >= MIN_PREFIX && from <= start, "{name}: {from} {start}");
        assert!(start < faulty.run.steps.len(), "{name}: the fault begins inside the run");
        assert_eq!(faulty.run.steps[..from], source.steps[..from], "{name}");
        assert_ne!(faulty.run.steps.get(from), source.steps.get(from), "{name}");
        assert_eq!((faulty.run.outcome, &faulty.run.task), (None, &source.task), "{name}");
    }
}

#[test]
fn the_seed_determines_the_faults() {
    let runs = corpus();
    assert_eq!(inject_all(&runs, 10, 5), inject_all(&runs, 10, 5));
    assert_ne!(inject_all(&runs, 10, 5), inject_all(&runs, 10, 6));
}

#[test]
fn injected_steps_use_the_tools_of_the_agent() {
    let runs = corpus();
    for faulty in inject_all(&runs, 1000, 9) {
        let tools: Vec<&str> = match faulty.run.set.as_str() {
            "shell" => vec!["bash", ""],
            "calls" => vec!["update_order", "get_order", ""],
            _ => vec![""],
        };
        assert!(faulty.run.steps.iter().all(|step| tools.contains(&step.tool.as_str())));
    }
}

#[test]
fn every_variant_occurs_with_varied_texts() {
    let faulty = inject_all(&corpus(), 1000, 1);
    let mut variants: Vec<_> =
        faulty.iter().map(|s| format!("{:?}: {}", s.kind, s.variant)).collect();
    variants.sort();
    variants.dedup();
    insta::assert_snapshot!(variants.join("\n"), @r"
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
    for kind in FaultKind::ALL {
        let of_kind = faulty.iter().filter(|s| s.kind == kind);
        let mut words: Vec<_> = of_kind.map(|s| &s.run.steps[s.start].thought).collect();
        words.sort();
        words.dedup();
        assert!(words.len() >= 8, "{kind:?}: {words:?}");
    }
}

#[test]
fn short_runs_and_agents_without_tools_get_no_fault() {
    let short = run("shell", 1, 4);
    assert!(FaultKind::ALL.iter().all(|kind| inject(&short, &[], *kind, 1).is_none()));
    let talk = run("talk", 1, 9);
    for (kind, able) in [
        (FaultKind::Loop, true),
        (FaultKind::Revert, false),
        (FaultKind::Contradiction, true),
        (FaultKind::UnverifiedFinish, false),
        (FaultKind::Drift, false),
    ] {
        assert_eq!(inject(&talk, &[&talk], kind, 1).is_some(), able, "{kind:?}");
    }
}
