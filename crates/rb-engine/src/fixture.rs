//! The trajectory fixture of the tests: one line a step, the expected reading at its end.
//!
//! ```text
//! <tool> <input> => <observation>   | <reading> [FIRED]
//! think <thought>                   | <reading> [FIRED]
//! ```

use std::fmt::Write as _;

use crate::facts::Facts;
use crate::monitors::{self, MonitorSettings};
use crate::step::{Input, Step, StepIndex};

/// Runs one monitor over the fixture and compares every line's reading.
#[track_caller]
pub(crate) fn check(monitor: &str, fixture: &str) {
    let spec = monitors::find(monitor).expect("a registered monitor");
    let mut subject = (spec.build.expect("an available monitor"))(&MonitorSettings::default());
    let (mut want, mut got) = (String::new(), String::new());
    for (index, line) in fixture.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate()
    {
        let (text, expected) = line.rsplit_once('|').expect("`| reading` at the end");
        let at = StepIndex(u32::try_from(index).expect("a short fixture"));
        let sign = subject.observe(at, &Facts::of(parse(text.trim())));
        assert_eq!(sign.evidence.is_some(), sign.score > 0.0, "evidence with every score: {line}");
        let fired = if sign.score >= spec.fire_at { " FIRED" } else { "" };
        let _ = writeln!(want, "{} | {}", text.trim(), expected.trim());
        let _ = writeln!(got, "{} | {:.2}{fired}", text.trim(), sign.score);
    }
    assert_eq!(want, got);
}

/// Lines that repeat, numbered from 0.
pub(crate) fn repeat(times: u32, line: impl Fn(u32) -> String) -> String {
    (0..times).map(line).collect::<Vec<_>>().join("\n")
}

fn parse(line: &str) -> Step<'_> {
    if let Some(thought) = line.strip_prefix("think ") {
        return Step::thought(thought);
    }
    let (call, observation) = line.split_once("=>").expect("`call => observation`");
    let (tool, input) = call.trim().split_once(' ').unwrap_or((call.trim(), ""));
    Step::default()
        .with_action(tool, Input::Text(input.trim()))
        .with_observation(observation.trim())
}
