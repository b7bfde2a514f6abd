//! Timeline of a run as SVG, one column per step: state, difficulty, composite, monitors, guidance, tokens, cost.
//!
//! Colours come from CSS classes, so that light, dark and print share one SVG. Equal neighbours are merged and long runs
//! put several steps into a column, which bounds the size.

use maud::{Markup, Render, html};
use rb_engine::policy::fsm::State;

use crate::model::{RunView, StepView};
use crate::text::{counted, dollars, grouped, name};

/// Width of the row labels, and of all columns.
const LABELS: f64 = 168.0;
const COLUMNS: f64 = 820.0;
const MAX_COLUMN_WIDTH: f64 = 64.0;
/// Maximum number of columns; a column of a longer run shows the worst of several steps.
const MAX_COLUMNS: usize = 1_000;
const LANE: f64 = 16.0;
const CURVE: f64 = 44.0;
const GAP: f64 = 10.0;
const AXIS: f64 = 18.0;
/// Monitors that never score more get no row.
const QUIET_BELOW: f64 = 0.05;

/// Coordinate or length in an SVG attribute, with one decimal.
struct SvgNumber(f64);

impl Render for SvgNumber {
    fn render_to(&self, buffer: &mut String) {
        let text = format!("{:.1}", self.0);
        buffer.push_str(text.strip_suffix(".0").unwrap_or(&text));
    }
}

fn real(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

/// Columns of a run, each with consecutive steps.
struct Columns<'a> {
    chunks: Vec<&'a [StepView<'a>]>,
    width: f64,
}

impl<'a> Columns<'a> {
    fn of(run: &'a RunView<'a>) -> Self {
        let each = run.steps.len().div_ceil(MAX_COLUMNS).max(1);
        let chunks: Vec<_> = run.steps.chunks(each).collect();
        let width = (COLUMNS / real(chunks.len().max(1))).min(MAX_COLUMN_WIDTH);
        Self { chunks, width }
    }

    fn x(&self, column: usize) -> f64 {
        LABELS + real(column) * self.width
    }

    fn end(&self) -> f64 {
        self.x(self.chunks.len())
    }

    /// Returns the maximum of a value over the steps of each column.
    fn highest(&self, of: impl Fn(&StepView<'_>) -> Option<f64>) -> Vec<Option<f64>> {
        let highest = |chunk: &&[StepView<'_>]| chunk.iter().filter_map(&of).reduce(f64::max);
        self.chunks.iter().map(highest).collect()
    }

    /// Merges equal neighbours: (first column, number of columns, value).
    fn stretches<T: PartialEq + Copy>(
        &self,
        value: impl Fn(&[StepView<'_>]) -> T,
    ) -> Vec<(usize, usize, T)> {
        let mut stretches: Vec<(usize, usize, T)> = Vec::new();
        for (column, chunk) in self.chunks.iter().enumerate() {
            let value = value(chunk);
            match stretches.last_mut() {
                Some((_, columns, same)) if *same == value => *columns += 1,
                Some(_) | None => stretches.push((column, 1, value)),
            }
        }
        stretches
    }
}

/// Renders the timeline. `link` returns the address of a step, if the page lists it.
pub(crate) fn timeline(
    run: &RunView<'_>,
    link: &dyn Fn(&StepView<'_>) -> Option<String>,
) -> Markup {
    let columns = Columns::of(run);
    let mut y = 0.0;
    let mut rows: Vec<Markup> = Vec::new();
    rows.push(states(&columns, &mut y));
    let difficulty = columns.highest(|step| step.difficulty);
    rows.push(curve(&columns, &mut y, "difficulty", &difficulty, "line"));
    let composite = columns.highest(|step| Some(step.composite));
    rows.push(curve(&columns, &mut y, "composite", &composite, "area"));
    for (at, monitor) in run.monitors.iter().enumerate() {
        if !is_quiet(run, at) {
            rows.push(lane(&columns, &mut y, monitor, at));
        }
    }
    y += GAP;
    if run.steps.iter().any(StepView::is_advised) {
        rows.push(guidance(&columns, &mut y));
    }
    let tokens = columns.highest(|step| {
        step.tokens.map(|count| f64::from(u32::try_from(count).unwrap_or(u32::MAX)))
    });
    rows.push(bars(&columns, &mut y, "tokens", &tokens, &|most| grouped_real(most)));
    rows.push(bars(&columns, &mut y, "cost", &columns.highest(|step| step.cost_usd), &dollars));
    rows.push(axis(&columns, y, run));
    let height = y + AXIS;
    let width = columns.end().max(LABELS + 160.0) + 8.0;
    html! {
        svg.chart viewBox={ "0 0 " (SvgNumber(width)) " " (SvgNumber(height)) } width=(SvgNumber(width)) height=(SvgNumber(height)) role="group"
            aria-label=(description(run)) {
            @for row in &rows { (row) }
            (links(&columns, height, link))
        }
    }
}

fn is_quiet(run: &RunView<'_>, monitor: usize) -> bool {
    let highest =
        run.steps.iter().filter_map(|step| step.scores.get(monitor)).copied().fold(0.0, f64::max);
    highest < QUIET_BELOW
}

/// Returns the monitors without a row.
pub(crate) fn quiet<'a>(run: &'a RunView<'_>) -> Vec<&'a str> {
    let quiet = run.monitors.iter().enumerate().filter(|(at, _)| is_quiet(run, *at));
    quiet.map(|(_, monitor)| monitor.as_ref()).collect()
}

/// Describes the timeline for screen readers.
fn description(run: &RunView<'_>) -> String {
    let listed = run.fires();
    let listed = listed
        .iter()
        .map(|(monitor, steps)| format!("{monitor} on {}", counted(steps.len(), "step")));
    let listed: Vec<_> = listed.collect();
    let fired = match listed.as_slice() {
        [] => "no monitor fired".to_owned(),
        listed => format!("fired: {}", listed.join(", ")),
    };
    let peak = run
        .peak()
        .map(|(step, peak)| format!("; the composite is highest, {peak:.2}, at step {step}"));
    format!("{}; {fired}{}.", counted(run.steps.len(), "step"), peak.unwrap_or_default())
}

fn label(y: f64, text: &str) -> Markup {
    html! { text.label x=(SvgNumber(LABELS - 10.0)) y=(SvgNumber(y)) { (name(text)) } }
}

fn rect(columns: &Columns<'_>, first: usize, count: usize, y: f64, class: &str) -> Markup {
    // One unit between columns that are wide enough.
    let gap = if columns.width > 4.0 { 1.0 } else { 0.0 };
    let width = (real(count) * columns.width - gap).max(0.5);
    html! { rect class=(class) x=(SvgNumber(columns.x(first))) y=(SvgNumber(y)) width=(SvgNumber(width)) height=(SvgNumber(LANE - 2.0)) rx="1.5" {} }
}

fn states(columns: &Columns<'_>, y: &mut f64) -> Markup {
    let top = *y;
    *y += LANE + GAP;
    let last = |chunk: &[StepView<'_>]| chunk.last().map(|step| step.state).unwrap_or_default();
    html! {
        (label(top + LANE - 5.0, "state"))
        @for (first, count, state) in columns.stretches(last) {
            g {
                title { (state.name()) }
                (rect(columns, first, count, top, state_class(state)))
                @if real(count) * columns.width > 52.0 {
                    text.inside x=(SvgNumber(columns.x(first) + 5.0)) y=(SvgNumber(top + LANE - 6.0)) { (state.name()) }
                }
            }
        }
    }
}

fn state_class(state: State) -> &'static str {
    match state {
        State::Init | State::End => "st-none",
        State::Fast => "st-fast",
        State::Normal => "st-normal",
        State::Slow => "st-slow",
        State::Skip => "st-skip",
    }
}

/// Renders a value from 0 to 1 as a line, with or without its area.
fn curve(
    columns: &Columns<'_>,
    y: &mut f64,
    what: &str,
    values: &[Option<f64>],
    class: &str,
) -> Markup {
    let top = *y;
    *y += CURVE + GAP;
    let place = |(column, value): (usize, &Option<f64>)| {
        value.map(|value| {
            (columns.x(column) + columns.width / 2.0, top + CURVE * (1.0 - value.clamp(0.0, 1.0)))
        })
    };
    let points: Vec<_> = values.iter().enumerate().filter_map(place).collect();
    let path: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let path = path.join(" ");
    let (first, last) =
        (points.first().map_or(LABELS, |p| p.0), points.last().map_or(LABELS, |p| p.0));
    let floor = top + CURVE;
    html! {
        (label(top + CURVE / 2.0 + 4.0, what))
        line.rule x1=(SvgNumber(LABELS)) x2=(SvgNumber(columns.end())) y1=(SvgNumber(top)) y2=(SvgNumber(top)) {}
        line.rule x1=(SvgNumber(LABELS)) x2=(SvgNumber(columns.end())) y1=(SvgNumber(floor)) y2=(SvgNumber(floor)) {}
        @if class == "area" {
            polygon.area points={ (SvgNumber(first)) "," (SvgNumber(floor)) " " (path) " " (SvgNumber(last)) "," (SvgNumber(floor)) } {}
        }
        polyline class={ "curve " (class) } points=(path) {}
        @if let [(x, y)] = points.as_slice() { circle class={ "dot " (class) } cx=(SvgNumber(*x)) cy=(SvgNumber(*y)) r="2.5" {} }
    }
}

/// Returns the colour level of a monitor: 0 is quiet, 5 fired.
fn level(steps: &[StepView<'_>], monitor: usize, id: &str) -> u8 {
    let of_step = |step: &StepView<'_>| {
        if step.fired.iter().any(|fired| fired == id) {
            return 5;
        }
        match step.scores.get(monitor).copied().unwrap_or_default() {
            score if score < QUIET_BELOW => 0,
            score if score < 0.25 => 1,
            score if score < 0.45 => 2,
            score if score < 0.6 => 3,
            _ => 4,
        }
    };
    steps.iter().map(of_step).max().unwrap_or_default()
}

fn lane(columns: &Columns<'_>, y: &mut f64, monitor: &str, at: usize) -> Markup {
    let top = *y;
    *y += LANE;
    let class = |level: u8| format!("heat-{level}");
    html! {
        (label(top + LANE - 5.0, monitor))
        @for (first, count, level) in columns.stretches(|chunk| level(chunk, at, monitor)) {
            (rect(columns, first, count, top, &class(level)))
        }
    }
}

fn guidance(columns: &Columns<'_>, y: &mut f64) -> Markup {
    let top = *y;
    *y += LANE + GAP;
    let mark = |column: usize| {
        let x = columns.x(column) + columns.width / 2.0;
        format!(
            "{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}",
            x - 5.0,
            top + 2.0,
            x + 5.0,
            top + 2.0,
            x,
            top + 11.0
        )
    };
    let advised = columns
        .chunks
        .iter()
        .enumerate()
        .filter(|(_, chunk)| chunk.iter().any(StepView::is_advised));
    html! {
        (label(top + LANE - 5.0, "guidance"))
        @for (column, chunk) in advised {
            @let is_given = chunk.iter().any(|step| !step.guidance.is_empty());
            polygon class=(if is_given { "said" } else { "would" }) points=(mark(column)) {}
        }
    }
}

fn grouped_real(most: f64) -> String {
    // Token counts only.
    format!("{most:.0}").parse().map_or_else(|_| format!("{most:.0}"), grouped)
}

/// Renders amounts per step as bars scaled to the largest; empty without any amount.
fn bars(
    columns: &Columns<'_>,
    y: &mut f64,
    what: &str,
    values: &[Option<f64>],
    format: &dyn Fn(f64) -> String,
) -> Markup {
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return html! {};
    }
    let top = *y;
    *y += CURVE + GAP;
    let width = (columns.width - if columns.width > 4.0 { 1.0 } else { 0.0 }).max(0.5);
    html! {
        (label(top + CURVE / 2.0 - 2.0, what))
        text.label.soft x=(SvgNumber(LABELS - 10.0)) y=(SvgNumber(top + CURVE / 2.0 + 12.0)) { "up to " (format(most)) }
        line.rule x1=(SvgNumber(LABELS)) x2=(SvgNumber(columns.end())) y1=(SvgNumber(top + CURVE)) y2=(SvgNumber(top + CURVE)) {}
        @for (column, value) in values.iter().enumerate() {
            @if let Some(value) = value.filter(|value| *value > 0.0) {
                @let height = (CURVE * value / most).max(1.0);
                rect.bar x=(SvgNumber(columns.x(column))) y=(SvgNumber(top + CURVE - height)) width=(SvgNumber(width)) height=(SvgNumber(height)) {}
            }
        }
    }
}

fn axis(columns: &Columns<'_>, y: f64, run: &RunView<'_>) -> Markup {
    const EVERY: [usize; 11] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000];
    let count = columns.chunks.len();
    let room = |every: &&usize| real(**every) * columns.width >= 34.0;
    let every = EVERY.iter().find(room).copied().unwrap_or(count.max(1));
    html! {
        @if !run.steps.is_empty() { (label(y + 11.0, "step")) }
        @for column in (0..count).step_by(every) {
            @if let Some(step) = columns.chunks[column].first() {
                text.tick x=(SvgNumber(columns.x(column) + columns.width / 2.0)) y=(SvgNumber(y + 11.0)) { (step.index) }
            }
        }
    }
}

/// Links each column to its worst step. Not in the tab order, because the list of steps is.
fn links(
    columns: &Columns<'_>,
    height: f64,
    link: &dyn Fn(&StepView<'_>) -> Option<String>,
) -> Markup {
    html! {
        @for (column, chunk) in columns.chunks.iter().enumerate() {
            @let worst = chunk.iter().reduce(|best, next| if next.composite > best.composite { next } else { best });
            @if let Some((step, to)) = worst.and_then(|step| Some((step, link(step)?))) {
                a href=(to) tabindex="-1" aria-hidden="true" {
                    title { "step " (step.index) " · composite " (format!("{:.2}", step.composite))
                        @for monitor in &step.fired { " · " (name(monitor)) } }
                    rect.hit x=(SvgNumber(columns.x(column))) y="0" width=(SvgNumber(columns.width)) height=(SvgNumber(height)) {}
                }
            }
        }
    }
}
