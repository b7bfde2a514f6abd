//! Fixtures for monitor tests: one step per line, with the expected score at the end.
//!
//! ```text
//! <tool> <input> => <observation>   | <reading> [FIRED]
//! think <thought>                   | <reading> [FIRED]
//! user <message of the user>         | <reading> [FIRED]
//! ```
//!
//! The expectation may be `quiet`, `FIRED` or `any` if the exact score does not matter. `\n` and `\t` in an observation
//! are a line break and a tab.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::analysis::embedding::Vector;
use crate::config::Engine;
use crate::run::MonitorSet;
use crate::step::{Input, Step};

/// Runs all cases of a file. A case is `## <name>`, then `task: <task>` if the run has one, then its steps. Steps that
/// several cases start with are a `## setup <name>`, to which `after: <name>` refers. Lines with `# ` are comments.
pub(crate) fn check_cases(monitor: &str, cases: &str) {
    let mut setups: Vec<(&str, Vec<&str>)> = Vec::new();
    for case in cases.split("\n## ").skip(1) {
        let (name, body) = case.split_once('\n').expect("a case has steps");
        let (mut task, mut steps) = ("", Vec::new());
        for line in body.lines().filter(|line| !line.starts_with("# ")) {
            if let Some(text) = line.strip_prefix("task: ") {
                task = text;
            } else if let Some(setup) = line.strip_prefix("after: ") {
                let known = setups.iter().find(|(name, _)| *name == setup);
                steps.extend(&known.expect("a setup").1);
            } else {
                steps.push(line);
            }
        }
        match name.strip_prefix("setup ") {
            Some(setup) => setups.push((setup, steps)),
            None => check_run(monitor, name, task, &steps.join("\n")),
        }
    }
}

/// Runs one monitor over the fixture and compares the score of every line.
#[track_caller]
pub(crate) fn check(monitor: &str, fixture: &str) {
    check_run(monitor, "", "", fixture);
}

#[track_caller]
fn check_run(monitor: &str, name: &str, task: &str, fixture: &str) {
    let rules = Engine::default()
        .with_embedder(Arc::new(|text: &str| Vector::of(rb_embed::embed(text).values())));
    let mut monitors = MonitorSet::new(&rules, task);
    let (mut want, mut got) = (String::new(), String::new());
    for line in fixture.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (text, expected) = line.rsplit_once('|').expect("`| reading` at the end");
        let answer = text.split_once("=>").map_or("", |(_, answer)| answer.trim());
        let answer = answer.replace("\\n", "\n").replace("\\t", "\t");
        let assessment = monitors.observe(&parse(text.trim(), &answer));
        let reading = assessment
            .readings
            .iter()
            .find(|reading| reading.monitor.id == monitor)
            .expect("a monitor");
        assert_eq!(
            reading.evidence.is_some(),
            reading.score > 0.0,
            "evidence with every score: {line}"
        );
        let is_over = reading.fired || reading.signal;
        let fired = if is_over { " FIRED" } else { "" };
        let _ = writeln!(want, "{} | {}", text.trim(), expected.trim());
        // `quiet` accepts any score that does not fire.
        let quiet = expected.trim() == "quiet" && !is_over;
        let shown = if quiet { "quiet".to_owned() } else { format!("{:.2}{fired}", reading.score) };
        let shown = match expected.trim() {
            "FIRED" if is_over => "FIRED".to_owned(),
            "any" => "any".to_owned(),
            _ => shown,
        };
        let _ = writeln!(got, "{} | {shown}", text.trim());
    }
    assert_eq!(want, got, "{name}");
}

/// Repeats a numbered line, starting at 0.
pub(crate) fn repeat(times: u32, line: impl Fn(u32) -> String) -> String {
    (0..times).map(line).collect::<Vec<_>>().join("\n")
}

fn parse<'a>(line: &'a str, answer: &'a str) -> Step<'a> {
    if let Some(thought) = line.strip_prefix("think ") {
        return Step::thought(thought);
    }
    if let Some(user_input) = line.strip_prefix("user ") {
        return Step { user_input, ..Step::default() };
    }
    let (call, _) = line.split_once("=>").expect("`call => observation`");
    let (thought, call) = call.split_once("::").unwrap_or(("", call));
    let (tool, input) = call.trim().split_once(' ').unwrap_or((call.trim(), ""));
    Step::thought(thought.trim())
        .with_action(tool, Input::Text(input.trim()))
        .with_observation(answer)
}
