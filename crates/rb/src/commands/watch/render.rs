//! Screens as lines of text.

use anstyle::Style;
use rb_runtime::clock::parse_rfc3339;
use rb_store::{Health, OutcomeClass, run_status};

use super::model::{MAX_SCORES, Run, Runs};
use crate::api::{RunDetail, RunStep};
use crate::ui::{BOLD, DIM, GREEN, RED, YELLOW, bar, counted, escape_control, fitted, grouped};

const NAME_COLUMNS: usize = 18;
const STATUS_COLUMNS: usize = 10;
/// Columns of a row up to the fired monitors.
const FIXED_COLUMNS: usize = 2 * NAME_COLUMNS + STATUS_COLUMNS + MAX_SCORES + 24;
const SELECTED: Style = Style::new().invert();

/// Size and surroundings of a screen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) url: &'a str,
    pub(super) error: Option<&'a str>,
    pub(super) columns: usize,
    pub(super) lines: usize,
    pub(super) now_ms: i64,
}

impl Frame<'_> {
    /// Styles a text and truncates it to the columns after the first `used` ones.
    fn styled(&self, style: Style, text: &str, used: usize) -> String {
        format!("{style}{}{style:#}", fitted(text, self.columns.saturating_sub(used)))
    }

    fn heading(&self, title: &str) -> String {
        let title = format!("rb watch  {}  {title}", escape_control(self.url));
        let used = title.chars().count().min(self.columns);
        let error = self.error.map(|error| format!("  {error}")).unwrap_or_default();
        format!("{BOLD}{}{BOLD:#}{}", fitted(&title, used), self.styled(RED, &error, used))
    }

    /// Pads to the height of the screen; the keys are on the last line.
    fn finish(&self, mut lines: Vec<String>, keys: &str) -> Vec<String> {
        lines.resize(self.lines.saturating_sub(1), String::new());
        lines.push(self.styled(DIM, keys, 0));
        lines.truncate(self.lines);
        lines
    }
}

/// Renders one row per run.
pub(super) fn list(runs: &Runs, frame: &Frame<'_>) -> Vec<String> {
    let shown = runs.shown().count();
    let running = runs.shown().filter(|run| run.is_running(frame.now_ms)).count();
    let names = format!(
        "  {:<NAME_COLUMNS$} {:<NAME_COLUMNS$} {:>6} {:<STATUS_COLUMNS$} {:<MAX_SCORES$} {:>9}  fired",
        "agent", "model", "steps", "status", "scores", "cost"
    );
    let title = format!("{}, {running} running", counted(shown, "run"));
    let mut lines = vec![frame.heading(&title), frame.styled(DIM, &names, 0)];
    let room = frame.lines.saturating_sub(lines.len() + 1).max(1);
    let selected = runs.position();
    let first = (selected + 1).saturating_sub(room);
    let rows = runs.shown().enumerate().skip(first).take(room);
    lines.extend(rows.map(|(at, run)| row(run, at == selected, frame)));
    if shown == 0 {
        let text = if runs.is_fired_only {
            "  no run with alarms; `f` shows all"
        } else {
            "  no run yet; agents that the server watches appear here"
        };
        lines.push(frame.styled(DIM, text, 0));
    }
    let filter = if runs.is_fired_only { "all" } else { "only fired" };
    frame.finish(lines, &format!("↑↓ select  ⏎ details  f {filter}  q quit"))
}

fn row(run: &Run, is_selected: bool, frame: &Frame<'_>) -> String {
    let summary = &run.summary;
    let (mark, selected) = if is_selected { ("▸", SELECTED) } else { (" ", Style::new()) };
    let style = match OutcomeClass::of(summary.outcome.as_deref()) {
        OutcomeClass::Success => GREEN,
        OutcomeClass::Failure => RED,
        OutcomeClass::Unfinished if run.is_running(frame.now_ms) => BOLD,
        OutcomeClass::Unfinished => DIM,
        OutcomeClass::Other => Style::new(),
    };
    let fires =
        summary.fires_by_monitor.iter().map(|(monitor, steps)| format!("{monitor} {steps}"));
    let fires = fires.collect::<Vec<_>>().join(", ");
    format!(
        "{selected}{mark} {} {} {:>6}{selected:#} {style}{}{style:#} {} {:>9}  {}",
        fitted(&summary.agent_name, NAME_COLUMNS),
        fitted(&summary.model, NAME_COLUMNS),
        grouped(summary.step_count),
        fitted(run.status(frame.now_ms), STATUS_COLUMNS),
        scores(run),
        format!("${:.4}", summary.cost_usd),
        frame.styled(YELLOW, &fires, FIXED_COLUMNS),
    )
}

/// Renders the newest scores as bars, the newest on the right.
fn scores(run: &Run) -> String {
    let bars = run.scores.iter().map(|(score, is_fired)| {
        let style = match score {
            _ if *is_fired => RED,
            score if *score >= Health::CLEAN_BELOW => YELLOW,
            _ => DIM,
        };
        format!("{style}{}{style:#}", bar(*score))
    });
    " ".repeat(MAX_SCORES - run.scores.len()) + &bars.collect::<String>()
}

/// Renders a run, `scroll` lines above its end. Limits `scroll` to the height of the text.
pub(super) fn detail(detail: &RunDetail, scroll: &mut usize, frame: &Frame<'_>) -> Vec<String> {
    let run = &detail.summary;
    let seen_ms = parse_rfc3339(&run.last_seen_at).unwrap_or_default();
    let guided = match run.injected_steps {
        0 => String::new(),
        steps => format!("  guidance on {}", counted(steps, "step")),
    };
    let about = format!(
        "{}  {}  {}  {} tokens  ${:.4}{guided}",
        run.run_id,
        run_status(run.outcome.as_deref(), seen_ms, frame.now_ms),
        counted(run.step_count, "step"),
        grouped(run.tokens),
        run.cost_usd,
    );
    let mut lines = vec![
        frame.heading(&format!("{}  {}", run.agent_name, run.model)),
        frame.styled(BOLD, &about, 0),
        frame.styled(DIM, &run.task, 0),
    ];
    let steps: Vec<String> = detail.steps.iter().flat_map(|step| step_lines(step, frame)).collect();
    let room = frame.lines.saturating_sub(lines.len() + 1).max(1);
    *scroll = (*scroll).min(steps.len().saturating_sub(room));
    let end = steps.len() - *scroll;
    lines.extend(steps.into_iter().take(end).skip(end.saturating_sub(room)));
    frame.finish(lines, "↑↓ scroll  Esc back  q quit")
}

fn step_lines(step: &RunStep, frame: &Frame<'_>) -> Vec<String> {
    let style = if step.fired.is_empty() { DIM } else { RED };
    let error = if step.is_error { "error " } else { "" };
    let text = match (step.thought.trim(), step.action_input.as_deref()) {
        ("", Some(input)) => input,
        (thought, _) => thought,
    };
    let mut lines = vec![format!(
        "{DIM}{:>5}{DIM:#} {style}{} {:.2}{style:#} {BOLD}{}{BOLD:#} {RED}{error}{RED:#}{}",
        step.index,
        bar(step.total_score),
        step.total_score,
        fitted(step.action.as_deref().unwrap_or("–"), NAME_COLUMNS),
        frame.styled(Style::new(), text, 14 + NAME_COLUMNS + error.len()),
    )];
    let evidence = step
        .evidence
        .iter()
        .map(|evidence| (YELLOW, format!("{}: {}", evidence.monitor, evidence.text)));
    let guidance = [&step.intervention_texts, &step.injections];
    let guidance = guidance.into_iter().find(|texts| !texts.is_empty()).into_iter().flatten();
    let guidance = guidance.map(|text| (GREEN, format!("guidance: {text}")));
    let notes = evidence.chain(guidance);
    lines.extend(notes.map(|(style, text)| format!("      {}", frame.styled(style, &text, 6))));
    lines
}
