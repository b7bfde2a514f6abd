//! Pictures of a run, one column a step: state, difficulty, composite, tokens, cost, monitors, what was said.
//!
//! Colours come from classes alone, so that light, dark and print share one picture. Equal neighbours are drawn as one
//! piece and very long runs are squeezed, so the size of a picture has a limit.

use maud::{Markup, Render, html};
use rb_engine::policy::fsm::State;

use super::text::{counted, dollars, grouped, name};
use super::{RunView, StepView};

/// Room for the names of the rows, and for the columns.
const LABELS: f64 = 168.0;
const COLUMNS: f64 = 820.0;
const COLUMN_MAX: f64 = 64.0;
/// A longer run shows the worst of several steps in a column.
const COLUMNS_MAX: usize = 1_000;
const LANE: f64 = 16.0;
const CURVE: f64 = 44.0;
const GAP: f64 = 10.0;
const AXIS: f64 = 18.0;
/// A monitor that never read more than this is named below the picture instead.
const QUIET_BELOW: f64 = 0.05;

/// A length in a picture, to a tenth.
struct At(f64);

impl Render for At {
    fn render_to(&self, buffer: &mut String) {
        let text = format!("{:.1}", self.0);
        buffer.push_str(text.strip_suffix(".0").unwrap_or(&text));
    }
}

fn real(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

/// The columns of a run: each a stretch of steps.
struct Columns<'a> {
    chunks: Vec<&'a [StepView<'a>]>,
    width: f64,
}

impl<'a> Columns<'a> {
    fn of(run: &'a RunView<'a>) -> Self {
        let each = run.steps.len().div_ceil(COLUMNS_MAX).max(1);
        let chunks: Vec<_> = run.steps.chunks(each).collect();
        let width = (COLUMNS / real(chunks.len().max(1))).min(COLUMN_MAX);
        Self { chunks, width }
    }

    fn x(&self, column: usize) -> f64 {
        LABELS + real(column) * self.width
    }

    fn end(&self) -> f64 {
        self.x(self.chunks.len())
    }

    /// The highest of a number over the steps of each column.
    fn highest(&self, of: impl Fn(&StepView<'_>) -> Option<f64>) -> Vec<Option<f64>> {
        let highest = |chunk: &&[StepView<'_>]| chunk.iter().filter_map(&of).reduce(f64::max);
        self.chunks.iter().map(highest).collect()
    }

    /// Neighbours that look the same, as (first column, columns, look).
    fn stretches<T: PartialEq + Copy>(
        &self,
        look: impl Fn(&[StepView<'_>]) -> T,
    ) -> Vec<(usize, usize, T)> {
        let mut stretches: Vec<(usize, usize, T)> = Vec::new();
        for (column, chunk) in self.chunks.iter().enumerate() {
            let look = look(chunk);
            match stretches.last_mut() {
                Some((_, columns, same)) if *same == look => *columns += 1,
                Some(_) | None => stretches.push((column, 1, look)),
            }
        }
        stretches
    }
}

/// The whole picture. `link` gives the address of a step, where it can be read.
pub(super) fn chart(run: &RunView<'_>, link: &dyn Fn(&StepView<'_>) -> Option<String>) -> Markup {
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
        rows.push(said(&columns, &mut y));
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
        svg.chart viewBox={ "0 0 " (At(width)) " " (At(height)) } width=(At(width)) height=(At(height)) role="group"
            aria-label=(words(run)) {
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

/// The monitors that the picture leaves out.
pub(super) fn quiet<'a>(run: &'a RunView<'_>) -> Vec<&'a str> {
    let quiet = run.monitors.iter().enumerate().filter(|(at, _)| is_quiet(run, *at));
    quiet.map(|(_, monitor)| monitor.as_ref()).collect()
}

/// The picture in a sentence, for whoever cannot see it.
fn words(run: &RunView<'_>) -> String {
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
    html! { text.label x=(At(LABELS - 10.0)) y=(At(y)) { (name(text)) } }
}

fn rect(columns: &Columns<'_>, first: usize, count: usize, y: f64, class: &str) -> Markup {
    // A hair between columns, where there is room for one.
    let hair = if columns.width > 4.0 { 1.0 } else { 0.0 };
    let width = (real(count) * columns.width - hair).max(0.5);
    html! { rect class=(class) x=(At(columns.x(first))) y=(At(y)) width=(At(width)) height=(At(LANE - 2.0)) rx="1.5" {} }
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
                    text.inside x=(At(columns.x(first) + 5.0)) y=(At(top + LANE - 6.0)) { (state.name()) }
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

/// One number from 0 to 1 over the steps, as a line or with its area.
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
        line.rule x1=(At(LABELS)) x2=(At(columns.end())) y1=(At(top)) y2=(At(top)) {}
        line.rule x1=(At(LABELS)) x2=(At(columns.end())) y1=(At(floor)) y2=(At(floor)) {}
        @if class == "area" {
            polygon.area points={ (At(first)) "," (At(floor)) " " (path) " " (At(last)) "," (At(floor)) } {}
        }
        polyline class={ "curve " (class) } points=(path) {}
        @if let [(x, y)] = points.as_slice() { circle class={ "dot " (class) } cx=(At(*x)) cy=(At(*y)) r="2.5" {} }
    }
}

/// How a reading looks: 0 is nothing, 5 has fired.
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

fn said(columns: &Columns<'_>, y: &mut f64) -> Markup {
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
            @let was = chunk.iter().any(|step| !step.said.is_empty());
            polygon class=(if was { "said" } else { "would" }) points=(mark(column)) {}
        }
    }
}

fn grouped_real(most: f64) -> String {
    // Only ever asked of counts of tokens.
    format!("{most:.0}").parse().map_or_else(|_| format!("{most:.0}"), grouped)
}

/// Amounts a step, as bars up to the largest; nothing where none is known.
fn bars(
    columns: &Columns<'_>,
    y: &mut f64,
    what: &str,
    values: &[Option<f64>],
    write: &dyn Fn(f64) -> String,
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
        text.label.soft x=(At(LABELS - 10.0)) y=(At(top + CURVE / 2.0 + 12.0)) { "up to " (write(most)) }
        line.rule x1=(At(LABELS)) x2=(At(columns.end())) y1=(At(top + CURVE)) y2=(At(top + CURVE)) {}
        @for (column, value) in values.iter().enumerate() {
            @if let Some(value) = value.filter(|value| *value > 0.0) {
                @let height = (CURVE * value / most).max(1.0);
                rect.bar x=(At(columns.x(column))) y=(At(top + CURVE - height)) width=(At(width)) height=(At(height)) {}
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
                text.tick x=(At(columns.x(column) + columns.width / 2.0)) y=(At(y + 11.0)) { (step.index) }
            }
        }
    }
}

/// A column leads to its worst step. Not in the order of the keyboard: the list of steps is.
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
                    rect.hit x=(At(columns.x(column))) y="0" width=(At(columns.width)) height=(At(height)) {}
                }
            }
        }
    }
}
