//! Screens drawn from responses and events of a server.

use anstream::adapter::strip_str;
use serde_json::json;

use rb_runtime::clock::parse_rfc3339;

use super::*;

const NOW: &str = "2026-11-16T12:00:00.000Z";

fn empty() -> Watch {
    let api = Api { url: "http://127.0.0.1:9000".to_owned(), key: None };
    Watch::new(api, channel(1).0)
}

/// Returns a view of four runs: a looping one, a silent one, an ended one, and one with hostile texts.
fn watch() -> Watch {
    let evil = "\u{1b}[2J<script>\u{202e}\r\nx";
    let runs = json!([
        {"run_id": "r-1", "org_id": "o", "agent_name": "coder", "model": "claude-sonnet-4-5", "started_at": "2026-11-16T11:50:00.000Z",
         "last_seen_at": "2026-11-16T11:59:58.000Z", "step_count": 3, "cost_usd": 0.1234, "fires_by_monitor": {}},
        {"run_id": "r-2", "org_id": "o", "agent_name": "レビュー係", "model": "gpt-5", "started_at": "2026-11-16T09:00:00.000Z",
         "last_seen_at": "2026-11-16T09:10:00.000Z", "step_count": 1200, "cost_usd": 12.5, "fires_by_monitor": {"hedge": 2}},
        {"run_id": "r-3", "org_id": "o", "agent_name": "tester", "model": "gpt-5", "started_at": "2026-11-16T10:00:00.000Z",
         "last_seen_at": "2026-11-16T10:10:00.000Z", "step_count": 9, "outcome": "success"},
        {"run_id": evil, "org_id": "o", "agent_name": evil, "model": evil, "task": evil, "outcome": evil,
         "started_at": "x", "last_seen_at": "x", "step_count": 1, "fires_by_monitor": {evil: 1}},
    ]);
    let mut watch = empty();
    let now_ms = parse_rfc3339(NOW).unwrap();
    watch.runs.merge(serde_json::from_value(runs).unwrap(), now_ms);
    for at in 3..40_u32 {
        let step = RunStep {
            run_id: "r-1".to_owned(),
            org_id: "o".to_owned(),
            index: u64::from(at),
            total_score: f64::from(at) / 40.0,
            fired: if at > 36 { vec!["streak".to_owned()] } else { vec![] },
            ..RunStep::default()
        };
        watch.runs.add(&step, now_ms);
        watch.runs.add(&step, now_ms); // repeated events have no effect
    }
    watch
}

/// Draws the screen without colours, each line between bars.
fn drawn(watch: &mut Watch, columns: usize, lines: usize) -> String {
    let drawn = watch.lines(columns, lines, parse_rfc3339(NOW).unwrap());
    assert!(drawn.len() <= lines, "{} lines", drawn.len());
    let mut text = String::new();
    for line in drawn {
        let line = strip_str(&line).to_string();
        assert!(!line.chars().any(rb_view::text::is_invisible), "{line:?}");
        assert!(
            unicode_width::UnicodeWidthStr::width(line.as_str()) <= columns.max(98),
            "{line:?}"
        );
        text.extend(["|", &line, "|\n"]);
    }
    text
}

#[test]
fn every_run_has_a_line() {
    insta::assert_snapshot!(drawn(&mut watch(), 120, 9));
}

#[test]
fn only_the_runs_in_which_something_fired() {
    let mut watch = watch();
    watch.runs.is_fired_only = true;
    watch.move_by(1);
    watch.error = Some("connection closed\u{1b}[31m; reconnecting".to_owned());
    insta::assert_snapshot!(drawn(&mut watch, 120, 8));
}

#[test]
fn a_run_in_full() {
    let evil = "\u{1b}]0;title\u{7}</pre>\u{202e}";
    let steps: Vec<_> = (0..30)
        .map(|at| {
            json!({"step_index": at, "total_score": 0.03 * f64::from(at), "thought": format!("Let me try it {at} times."),
                   "action": if at == 29 { evil } else { "bash" }, "is_error": at == 28})
        })
        .collect();
    let mut detail = json!({"run_id": "r-1", "org_id": "o", "agent_name": "coder", "model": "claude-sonnet-4-5", "task": evil, "last_seen_at": NOW,
        "step_count": 30, "tokens": 12_345, "cost_usd": 0.5, "injected_steps": 1, "steps": steps});
    detail["steps"][28]["fired"] = json!(["streak"]);
    detail["steps"][28]["evidence"] = json!([{"monitor": "streak", "text": "The same command five times.", "score": 0.9, "steps": [1]}]);
    detail["steps"][28]["intervention_texts"] = json!(["Look again."]);
    let detail: RunDetail = serde_json::from_value(detail).unwrap();
    let mut watch = watch();
    watch.open = Some(OpenRun { detail, ..OpenRun::default() });
    let newest = drawn(&mut watch, 100, 12);
    watch.move_by(-5);
    insta::assert_snapshot!(format!("{newest}\n{}", drawn(&mut watch, 100, 12)));
}

#[test]
fn a_small_terminal_is_no_trouble() {
    let mut watch = watch();
    for (columns, lines) in [(0, 0), (1, 1), (20, 3), (5, 200)] {
        drawn(&mut watch, columns, lines);
    }
    let mut nothing = empty();
    assert!(drawn(&mut nothing, 100, 10).contains("no run yet"));
}

#[test]
fn a_step_is_a_plain_line() {
    let mut step =
        RunStep { org_id: "o".to_owned(), run_id: "r-1".to_owned(), ..RunStep::default() };
    let watch = watch();
    let line = strip_str(&watch.plain_line(&step)).to_string();
    assert_eq!(line, "r-1  coder  claude-sonnet-4-5  step 0  0.00\n");
    step.run_id = "\u{1b}[2J\n".to_owned();
    step.fired = vec!["\u{202e}".to_owned()];
    let line = strip_str(&watch.plain_line(&step)).to_string();
    assert_eq!(line, "\\u{1b}[2J\\n  -  -  step 0  0.00  fired: \\u{202e}\n");
}
