//! The trajectory fixture of the tests: one line a step, the expected reading at its end.
//!
//! ```text
//! <tool> <input> => <observation>   | <reading> [FIRED]
//! think <thought>                   | <reading> [FIRED]
//! user <what a person says>         | <reading> [FIRED]
//! ```
//!
//! A reading may be `quiet`, `FIRED` or `any` where the score does not matter. `\n` and `\t` in an observation stand for
//! a new line and a tab.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::analysis::embedding::Vector;
use crate::config::Engine;
use crate::run::MonitorSet;
use crate::step::{Input, Step};

/// Runs one monitor over the fixture and compares every line's reading.
#[track_caller]
pub(crate) fn check(monitor: &str, fixture: &str) {
    check_task(monitor, "", fixture);
}

/// The same for a run with a task.
#[track_caller]
pub(crate) fn check_task(monitor: &str, task: &str, fixture: &str) {
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
        let fired = if reading.fired { " FIRED" } else { "" };
        let _ = writeln!(want, "{} | {}", text.trim(), expected.trim());
        // Where only the alarm matters, the fixture says `quiet`.
        let quiet = expected.trim() == "quiet" && !reading.fired;
        let shown = if quiet { "quiet".to_owned() } else { format!("{:.2}{fired}", reading.score) };
        let shown = match expected.trim() {
            "FIRED" if reading.fired => "FIRED".to_owned(),
            "any" => "any".to_owned(),
            _ => shown,
        };
        let _ = writeln!(got, "{} | {shown}", text.trim());
    }
    assert_eq!(want, got);
}

/// Lines that repeat, numbered from 0.
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
