//! Text output of one run: a headline and, if a monitor fired, a sparkline per monitor.

use std::fmt::Write as _;
use std::ops::Range;

use anstyle::Style;
use rb_engine::evidence::Evidence;
use rb_engine::monitors::MonitorSpec;
use rb_engine::policy::fsm::State;

use super::Subject;
use super::assess::{Fire, Verdict};
use crate::ui::{BOLD, DIM, GREEN, RED, YELLOW, bar, counted, escape_control, short, wrapped};

/// Number of steps from which several steps share a column.
const MAX_SINGLE_STEPS: usize = 400;
const MAX_RUN_ID_CHARS: usize = 80;
const MAX_OUTCOME_CHARS: usize = 24;
const COMPOSITE: &str = "composite";
const STATE: &str = "state";
const SIGNALS: &str = "signals";

/// Formats one run for lines of `width` columns.
pub(super) fn page(subject: &Subject<'_>, verdict: &Verdict, width: usize) -> String {
    let mut page = headline(subject, verdict);
    if verdict.fires.is_empty() {
        return page;
    }
    let monitors = verdict.monitors.iter().filter(|monitor| verdict.policy.fires(monitor.suite));
    let names = monitors.map(|monitor| monitor.id).chain([COMPOSITE, STATE]);
    let margin = names.map(str::len).max().unwrap_or(0);
    let layout = Layout::of(verdict.steps.len(), margin, width);
    if layout.steps_per_column > 1 {
        let squeezed = layout.steps_per_column;
        let _ =
            writeln!(page, "  {DIM}{squeezed} steps per column, showing the highest score{DIM:#}");
    }
    let columns: Vec<Range<usize>> = layout.columns(verdict.steps.len()).collect();
    for columns in columns.chunks(layout.columns_per_line) {
        block(&mut page, verdict, columns, margin);
    }
    for fire in &verdict.fires {
        let indent = format!("\n{:1$}", "", margin + 4);
        let words = wrapped(&describe(fire), width.saturating_sub(margin + 4)).join(&indent);
        let _ = writeln!(page, "  {RED}{:<margin$}{RED:#}  {words}", fire.monitor.id);
    }
    if !verdict.signals.is_empty() {
        let indent = format!("\n{:1$}", "", margin + 4);
        let room = width.saturating_sub(margin + 4);
        let words = wrapped(&signals(verdict), room).join(&indent);
        let _ = writeln!(page, "  {DIM}{SIGNALS:<margin$}  {words}{DIM:#}");
    }
    page.push('\n');
    page
}

/// Explains the letters and bars; printed once, at the end.
pub(super) fn legend(colored: bool) -> String {
    let letters: Vec<String> =
        State::ALL.iter().map(|state| format!("{} {state}", letter(*state))).collect();
    let fired =
        if colored { format!(", {RED}red{RED:#} where a monitor fired") } else { String::new() };
    format!("· zero, ▁ to █ score{fired}; state: {}\n", letters.join("  "))
}

fn headline(subject: &Subject<'_>, verdict: &Verdict) -> String {
    let (mark, style) = if verdict.fires.is_empty() { ('○', DIM) } else { ('●', RED) };
    let id = short(subject.run_id, MAX_RUN_ID_CHARS);
    let mut line = format!("{style}{mark}{style:#} {BOLD}{id}{BOLD:#}");
    if let Some(outcome) = subject.outcome {
        let style = match outcome {
            "success" => GREEN,
            "failure" => YELLOW,
            _ => Style::new(),
        };
        let outcome = short(outcome, MAX_OUTCOME_CHARS);
        let _ = write!(line, "  {style}{outcome}{style:#}");
    }
    let steps = u64::try_from(verdict.steps.len()).unwrap_or(u64::MAX);
    let _ = write!(line, "  {}", counted(steps, "step"));
    if let Some((step, composite)) = verdict.peak().filter(|(_, composite)| *composite > 0.0) {
        let _ = write!(line, "  peak {composite:.2} at step {step}");
    }
    let fired: Vec<&str> = verdict.fires.iter().map(|fire| fire.monitor.id).collect();
    if fired.is_empty() && !verdict.signals.is_empty() {
        let signals: Vec<&str> = verdict.signals.iter().map(|signal| signal.monitor.id).collect();
        let _ = writeln!(line, "  {DIM}quiet; {SIGNALS}: {}{DIM:#}", signals.join(", "));
    } else if fired.is_empty() {
        let _ = writeln!(line, "  {DIM}quiet{DIM:#}");
    } else {
        let _ = writeln!(line, "  fired: {RED}{}{RED:#}", fired.join(", "));
    }
    line
}

/// Layout of steps on lines.
struct Layout {
    steps_per_column: usize,
    columns_per_line: usize,
}

impl Layout {
    fn of(steps: usize, margin: usize, width: usize) -> Self {
        // A multiple of ten, so that the ruler of every line starts at a round number.
        let columns_per_line = (width.saturating_sub(margin + 4) / 10 * 10).max(10);
        let steps_per_column =
            if steps > MAX_SINGLE_STEPS { steps.div_ceil(columns_per_line) } else { 1 };
        Self { steps_per_column, columns_per_line }
    }

    fn columns(&self, steps: usize) -> impl Iterator<Item = Range<usize>> {
        let size = self.steps_per_column;
        (0..steps.div_ceil(size)).map(move |at| at * size..((at + 1) * size).min(steps))
    }
}

/// Appends a block: the ruler, a row per monitor, the composite and the state.
fn block(page: &mut String, verdict: &Verdict, columns: &[Range<usize>], margin: usize) {
    let _ = writeln!(page, "  {:<margin$}  {DIM}{}{DIM:#}", "", ruler(columns));
    let monitors = verdict.monitors.iter().enumerate();
    for (at, monitor) in monitors.filter(|(_, monitor)| verdict.policy.fires(monitor.suite)) {
        let cells = columns.iter().map(|steps| {
            let score = highest(steps, |step| verdict.scores(step)[at]);
            let fired = steps.clone().any(|step| verdict.steps[step].fired(at));
            (bar(score), if fired { RED } else { shade(score) })
        });
        row(page, monitor.id, margin, cells);
    }
    let composites = columns.iter().map(|steps| {
        let score = highest(steps, |step| verdict.steps[step].composite);
        (bar(score), shade(score))
    });
    row(page, COMPOSITE, margin, composites);
    let states = columns.iter().map(|steps| {
        let hardest = steps.clone().map(|step| verdict.steps[step].state).max();
        let state = hardest.unwrap_or_default();
        (letter(state), colour(state))
    });
    row(page, STATE, margin, states);
}

fn highest(steps: &Range<usize>, score: impl Fn(usize) -> f64) -> f64 {
    steps.clone().map(score).fold(0.0, f64::max)
}

/// Appends a name and its cells; adjacent cells of one style share it.
fn row(page: &mut String, name: &str, margin: usize, cells: impl Iterator<Item = (char, Style)>) {
    let _ = write!(page, "  {name:<margin$}  ");
    let mut current = Style::new();
    for (cell, style) in cells {
        if style != current {
            let _ = write!(page, "{current:#}{style}");
            current = style;
        }
        page.push(cell);
    }
    let _ = writeln!(page, "{current:#}");
}

/// Numbers the first step of every tenth column.
fn ruler(columns: &[Range<usize>]) -> String {
    let mut ruler = String::new();
    for (at, steps) in columns.iter().enumerate().step_by(10) {
        let used = ruler.len();
        if used > 0 && used >= at {
            continue; // The previous number is longer than ten columns.
        }
        let _ = write!(ruler, "{:gap$}{}", "", steps.start, gap = at - used);
    }
    ruler
}

fn shade(score: f64) -> Style {
    if score > 0.0 { Style::new() } else { DIM }
}

fn letter(state: State) -> char {
    match state {
        State::Init => 'I',
        State::Fast => 'F',
        State::Normal => 'N',
        State::Slow => 'S',
        State::Skip => 'K',
        State::End => 'E',
    }
}

fn colour(state: State) -> Style {
    match state {
        State::Init | State::End => DIM,
        State::Fast => GREEN,
        State::Normal => Style::new(),
        State::Slow => YELLOW,
        State::Skip => RED,
    }
}

/// Lists the quiet signals with their steps.
fn signals(verdict: &Verdict) -> String {
    let signals = verdict.signals.iter();
    let signals = signals.map(|signal| format!("{} ({})", signal.monitor.id, steps(signal)));
    signals.collect::<Vec<_>>().join(", ")
}

fn steps(fire: &Fire) -> String {
    let Fire { first_step: first, last_step: last, steps, .. } = fire;
    match usize::try_from(*steps) {
        Ok(1) => format!("step {first}"),
        Ok(steps) if steps == last - first + 1 => format!("steps {first} to {last}"),
        _ => format!("{} between {first} and {last}", counted(*steps, "step")),
    }
}

fn describe(fire: &Fire) -> String {
    let mut words = steps(fire);
    if let Some(evidence) = &fire.evidence {
        let _ = write!(words, ": {}", escape_control(&observation(fire.monitor, evidence)));
    }
    words
}

/// Returns the first sentence of the monitor's advice, which states the observation.
fn observation(monitor: &MonitorSpec, evidence: &Evidence) -> String {
    let advice = monitor.advice(evidence);
    let words = advice.split_once(": ").map_or("", |(_speaker, words)| words);
    let ends = words.match_indices(". ").map(|(at, _)| at);
    let next_begins = |at: &usize| words[at + 2..].starts_with(char::is_uppercase);
    let seen = ends.into_iter().find(next_begins).map_or(words, |end| &words[..end]);
    if seen.is_empty() { evidence.kind.replace('_', " ") } else { seen.to_owned() }
}

#[cfg(test)]
mod tests;
