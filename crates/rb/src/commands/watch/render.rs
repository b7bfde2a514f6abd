//! The screen as lines of text: what is drawn depends on nothing but what goes in.

use std::fmt::Write as _;

use anstyle::Style;
use rb_store::{Health, OutcomeClass};
use serde::Deserialize;

use super::model::{Board, Doing, Listed, Watched};
use crate::ui::{BOLD, DIM, GREEN, RED, YELLOW, counted, escape_control, fitted, grouped};

/// From nothing to the worst.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const STRIP_COLUMNS: usize = 24;
const AGENT_COLUMNS: usize = 18;
const MODEL_COLUMNS: usize = 18;
const STATE_COLUMNS: usize = 10;
/// Lines that are not runs: the heading, the names of the columns, the keys.
const FRAME_LINES: usize = 3;
const MARKED: Style = Style::new().invert();

/// Everything around the runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) url: &'a str,
    /// Why nothing new comes, if nothing does.
    pub(super) trouble: Option<&'a str>,
    pub(super) columns: usize,
    pub(super) lines: usize,
    pub(super) now_ms: i64,
}

/// A run in full, as the server shows it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Detail {
    #[serde(flatten)]
    pub(super) run: Listed,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Step {
    #[serde(rename = "step_index")]
    pub(super) index: u64,
    pub(super) total_score: f64,
    pub(super) thought: String,
    pub(super) action: Option<String>,
    pub(super) action_input: Option<String>,
    pub(super) is_error: bool,
    pub(super) fired: Vec<String>,
    pub(super) evidence: Vec<Reason>,
    pub(super) intervention_texts: Vec<String>,
    pub(super) injections: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Reason {
    monitor: String,
    text: String,
}

/// All runs, one a line.
pub(super) fn list(board: &Board, frame: &Frame<'_>) -> Vec<String> {
    let shown = board.shown().count();
    let running = board.shown().filter(|run| run.doing(frame.now_ms) == Doing::Running).count();
    let mut lines = vec![heading(&format!("{}, {running} running", runs(shown)), frame)];
    let names = format!(
        "  {:<AGENT_COLUMNS$} {:<MODEL_COLUMNS$} {:>6} {:<STATE_COLUMNS$} {:<STRIP_COLUMNS$} {:>9}  fired",
        "agent", "model", "steps", "state", "scores", "cost"
    );
    lines.push(format!("{DIM}{}{DIM:#}", fitted(&names, frame.columns)));
    let room = frame.lines.saturating_sub(FRAME_LINES).max(1);
    let place = board.place();
    let first = place.saturating_sub(room - 1);
    for (at, run) in board.shown().enumerate().skip(first).take(room) {
        lines.push(line(run, at == place, frame));
    }
    if shown == 0 {
        let words = if board.only_fired {
            "  nothing fired in any run; `f` shows all"
        } else {
            "  no run yet; agents that the server watches appear here"
        };
        lines.push(format!("{DIM}{}{DIM:#}", fitted(words, frame.columns)));
    }
    let fired = if board.only_fired { "f all" } else { "f only fired" };
    finish(lines, &format!("↑↓ choose  ⏎ details  {fired}  q quit"), frame)
}

fn runs(count: usize) -> String {
    counted(u64::try_from(count).unwrap_or(u64::MAX), "run")
}

fn heading(what: &str, frame: &Frame<'_>) -> String {
    let trouble = frame.trouble.map(|why| format!("  {}", escape_control(why))).unwrap_or_default();
    let whole = format!("rb watch  {}  {what}", escape_control(frame.url));
    let left = fitted(&whole, frame.columns.min(whole.chars().count()));
    let rest = frame.columns.saturating_sub(left.chars().count());
    format!("{BOLD}{left}{BOLD:#}{RED}{}{RED:#}", fitted(&trouble, rest))
}

/// One run on one line.
fn line(run: &Watched, is_marked: bool, frame: &Frame<'_>) -> String {
    let listed = &run.listed;
    let mark = if is_marked { "▸" } else { " " };
    let before = format!(
        "{mark} {} {} {:>6}",
        fitted(&listed.agent_name, AGENT_COLUMNS),
        fitted(&listed.model, MODEL_COLUMNS),
        grouped(listed.step_count),
    );
    let (style, state) = state(listed, run.doing(frame.now_ms));
    let fires: Vec<String> = listed
        .fires_by_monitor
        .iter()
        .map(|(monitor, steps)| format!("{monitor} {steps}"))
        .collect();
    let cost = format!("${:.4}", listed.cost_usd);
    let taken = 2
        + AGENT_COLUMNS
        + 1
        + MODEL_COLUMNS
        + 1
        + 6
        + 1
        + STATE_COLUMNS
        + 1
        + STRIP_COLUMNS
        + 1
        + 9
        + 2;
    let room = frame.columns.saturating_sub(taken);
    let after = format!("{YELLOW}{}{YELLOW:#}", fitted(&fires.join(", "), room));
    let before = if is_marked { format!("{MARKED}{before}{MARKED:#}") } else { before };
    format!(
        "{before} {style}{}{style:#} {} {cost:>9}  {after}",
        fitted(&state, STATE_COLUMNS),
        strip(run)
    )
}

fn state(run: &Listed, doing: Doing) -> (Style, String) {
    let said = || run.outcome.clone().unwrap_or_default();
    match doing {
        Doing::Running => (BOLD, "running".to_owned()),
        Doing::Silent => (DIM, "silent".to_owned()),
        Doing::Ended(OutcomeClass::Success) => (GREEN, said()),
        Doing::Ended(OutcomeClass::Failure) => (RED, said()),
        Doing::Ended(OutcomeClass::Other | OutcomeClass::Unfinished) => (Style::new(), said()),
    }
}

/// The newest scores as bars, the newest on the right.
fn strip(run: &Watched) -> String {
    let empty = STRIP_COLUMNS.saturating_sub(run.strip.len());
    let mut bars = " ".repeat(empty);
    for (score, is_fired) in run.strip.iter().skip(run.strip.len().saturating_sub(STRIP_COLUMNS)) {
        let style = match score {
            _ if *is_fired => RED,
            score if *score >= Health::CLEAN_BELOW => YELLOW,
            _ => DIM,
        };
        let _ = write!(bars, "{style}{}{style:#}", bar(*score)); // a string takes everything
    }
    bars
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a score is between 0 and 1, and anything else saturates"
)]
fn bar(score: f64) -> char {
    let level = (score.clamp(0.0, 1.0) * 7.0).round() as usize;
    BARS.get(level).copied().unwrap_or('?')
}

/// One run in full, `back` lines above its newest step. Answers how far back there is anything.
pub(super) fn detail(detail: &Detail, back: usize, frame: &Frame<'_>) -> (Vec<String>, usize) {
    let run = &detail.run;
    let what = format!("{}  {}", run.agent_name, run.model);
    let mut lines = vec![heading(&what, frame)];
    let outcome = run.outcome.as_deref().unwrap_or("not ended");
    let about = format!(
        "{}  {}  {}  {} tokens  ${:.4}  {}",
        run.run_id,
        outcome,
        counted(run.step_count, "step"),
        grouped(run.tokens),
        run.cost_usd,
        match run.injected_steps {
            0 => String::new(),
            steps => format!("guided on {}", counted(steps, "step")),
        },
    );
    lines.push(format!("{BOLD}{}{BOLD:#}", fitted(&about, frame.columns)));
    lines.push(format!("{DIM}{}{DIM:#}", fitted(&run.task, frame.columns)));
    let steps: Vec<String> = detail.steps.iter().flat_map(|step| step_lines(step, frame)).collect();
    let room = frame.lines.saturating_sub(FRAME_LINES + 1).max(1);
    let back_max = steps.len().saturating_sub(room);
    let end = steps.len() - back.min(back_max);
    lines.extend(steps.into_iter().take(end).skip(end.saturating_sub(room)));
    (finish(lines, "↑↓ scroll  Esc back  q quit", frame), back_max)
}

fn step_lines(step: &Step, frame: &Frame<'_>) -> Vec<String> {
    let columns = |used: usize| frame.columns.saturating_sub(used);
    let style = if step.fired.is_empty() { DIM } else { RED };
    let error = if step.is_error { "error " } else { "" };
    let words = match (step.thought.trim(), step.action_input.as_deref()) {
        ("", Some(input)) => input,
        (thought, _) => thought,
    };
    let mut lines = vec![format!(
        "{DIM}{:>5}{DIM:#} {style}{} {:.2}{style:#} {BOLD}{}{BOLD:#} {RED}{error}{RED:#}{}",
        step.index,
        bar(step.total_score),
        step.total_score,
        fitted(step.action.as_deref().unwrap_or("–"), AGENT_COLUMNS),
        fitted(words, columns(13 + AGENT_COLUMNS + 1 + error.len())),
    )];
    for seen in &step.evidence {
        let text = format!("{}: {}", seen.monitor, seen.text);
        lines.push(format!("      {YELLOW}{}{YELLOW:#}", fitted(&text, columns(6))));
    }
    let said = if step.intervention_texts.is_empty() {
        &step.injections
    } else {
        &step.intervention_texts
    };
    for text in said {
        lines.push(format!("      {GREEN}said {}{GREEN:#}", fitted(text, columns(11))));
    }
    lines
}

/// Fills the screen up to its last line, which tells the keys.
fn finish(mut lines: Vec<String>, keys: &str, frame: &Frame<'_>) -> Vec<String> {
    lines.truncate(frame.lines.saturating_sub(1));
    lines.resize(frame.lines.saturating_sub(1), String::new());
    lines.push(format!("{DIM}{}{DIM:#}", fitted(keys, frame.columns)));
    lines.truncate(frame.lines);
    lines
}
