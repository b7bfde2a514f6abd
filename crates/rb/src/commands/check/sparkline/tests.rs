//! Output of runs of different lengths.

use rb_engine::config::EngineConfig;
use rb_engine::monitors::SuiteChoice;
use rb_engine::policy::Policy;
use rb_wire::model::{Run, RunStep};

use super::super::assess::assess;
use super::*;

/// Formats a run that calls one tool, then two alternately.
fn shown(steps: usize, width: usize) -> String {
    let step = |at: usize| RunStep {
        thought: if at.is_multiple_of(3) { "Go on.".into() } else { "".into() },
        tool: if at < 6 || at.is_multiple_of(2) { "bash".into() } else { "read".into() },
        ..RunStep::default()
    };
    let run = Run { steps: (0..steps).map(step).collect(), ..Run::default() };
    let config = EngineConfig::with_policy(Policy::only(SuiteChoice::Heuristic));
    let engine = config.check().expect("valid settings");
    let subject = Subject { run_id: "r", file: "f", line: 1, outcome: None };
    anstream::adapter::strip_str(&page(&subject, &assess(&run, &engine), width)).to_string()
}

#[test]
fn quiet_and_empty_runs_are_one_line() {
    assert_eq!(shown(0, 80), "○ r  0 steps  quiet\n");
    assert_eq!(shown(2, 80), "○ r  2 steps  peak 0.15 at step 1  quiet\n");
}

#[test]
fn lines_are_wrapped_at_tens() {
    insta::assert_snapshot!(shown(57, 50));
}

#[test]
fn long_runs_are_squeezed_into_one_line() {
    insta::assert_snapshot!(shown(12_345, 80));
    for (steps, width) in [(400, 40), (401, 40), (100_000, 100), (1_000, 10)] {
        let page = shown(steps, width);
        let cells = page.lines().filter(|line| line.starts_with("  state")).map(str::len);
        assert!(cells.clone().all(|len| len <= width.max(25)), "{page}");
        assert_eq!(cells.count() > 1, steps <= 400, "{page}");
    }
}

#[test]
fn long_numbers_leave_gaps_in_the_ruler() {
    let columns: Vec<Range<usize>> = (0..30).map(|at| at * 1_000_000_000_000..0).collect();
    assert_eq!(ruler(&columns), "0         10000000000000");
}
