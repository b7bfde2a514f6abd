//! Report of several runs: comparison of agents and models, list of runs with the worst first, then the runs.

use std::collections::BTreeMap;

use maud::{Markup, html};
use rb_store::OutcomeClass;

use crate::model::RunView;
use crate::run::{outcome, title};
use crate::text::{EscapedText, counted, dollars, grouped, line, name};

/// Maximum number of runs in the list.
const MAX_ROWS: usize = 2_000;

/// Summary of a run for lists.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listed {
    pub name: String,
    pub place: String,
    pub title: String,
    pub outcome: Option<String>,
    pub agent: String,
    pub model: String,
    pub steps: u64,
    pub fired_steps: u64,
    pub peak: f64,
    pub fired: Vec<String>,
    pub signals: Vec<String>,
    pub tokens: Option<u64>,
    pub cost_usd: Option<f64>,
    /// Anchor of the run, if the page contains it.
    pub anchor: Option<String>,
}

impl From<&RunView<'_>> for Listed {
    fn from(run: &RunView<'_>) -> Self {
        let short = |text: &str| line(text, 200);
        let count = |steps: usize| u64::try_from(steps).unwrap_or(u64::MAX);
        Self {
            name: short(&run.name),
            place: short(&run.place),
            title: title(run),
            outcome: run.outcome.as_deref().map(short),
            agent: short(&run.agent),
            model: short(&run.model),
            steps: count(run.steps.len()),
            fired_steps: count(run.steps.iter().filter(|step| !step.fired.is_empty()).count()),
            peak: run.peak().map_or(0.0, |(_, peak)| peak),
            fired: run.fires().iter().map(|(monitor, _)| (*monitor).to_owned()).collect(),
            signals: run.signals().iter().map(|(monitor, _)| (*monitor).to_owned()).collect(),
            tokens: run.tokens,
            cost_usd: run.cost_usd,
            anchor: None,
        }
    }
}

impl Listed {
    /// Orders the worst runs first: by the highest composite, then by the number of steps with alarms.
    pub fn worst_first(a: &Self, b: &Self) -> std::cmp::Ordering {
        b.peak
            .total_cmp(&a.peak)
            .then(b.fired_steps.cmp(&a.fired_steps))
            .then_with(|| a.name.cmp(&b.name))
    }
}

/// Totals of one agent with one model.
#[derive(Default)]
struct Group {
    runs: u32,
    successes: u32,
    with_outcome: u32,
    fired: u32,
    steps: u64,
    peaks: f64,
    tokens: u64,
    cost_usd: f64,
}

impl Group {
    fn add(&mut self, run: &Listed) {
        self.runs += 1;
        match OutcomeClass::of(run.outcome.as_deref()) {
            OutcomeClass::Success => {
                self.successes += 1;
                self.with_outcome += 1;
            }
            OutcomeClass::Failure => self.with_outcome += 1,
            OutcomeClass::Other | OutcomeClass::Unfinished => {}
        }
        self.fired += u32::from(!run.fired.is_empty());
        self.steps = self.steps.saturating_add(run.steps);
        self.peaks += run.peak;
        self.tokens = self.tokens.saturating_add(run.tokens.unwrap_or(0));
        self.cost_usd += run.cost_usd.unwrap_or(0.0);
    }
}

fn share(part: u32, of: u32) -> f64 {
    if of == 0 { 0.0 } else { f64::from(part) / f64::from(of) }
}

/// Renders a share as a bar with its label.
pub fn bar(share: f64, class: &str, label: &str) -> Markup {
    let width = format!("{:.1}", 80.0 * share.clamp(0.0, 1.0));
    html! {
        svg.meter viewBox="0 0 80 8" width="80" height="8" aria-hidden="true" {
            rect.track x="0" y="0" width="80" height="8" rx="2" {}
            rect class=(class) x="0" y="0" width=(width) height="8" rx="2" {}
        }
        span.num { (label) }
    }
}

/// Renders the report of a folder. `runs` are sorted, worst first; `bodies` are the rendered runs among them.
pub fn run_list(heading: &str, runs: &[Listed], bodies: &[Markup]) -> Markup {
    let fired = runs.iter().filter(|run| !run.fired.is_empty()).count();
    let mut groups: BTreeMap<(&str, &str), Group> = BTreeMap::new();
    for run in runs {
        groups.entry((&run.agent, &run.model)).or_default().add(run);
    }
    html! {
        header.head {
            p.kicker { (name(heading)) }
            h1 { (counted(runs.len(), "run")) ", " (grouped(u64::try_from(fired).unwrap_or(u64::MAX))) " of them astray" }
        }
        section { h2 { "Agents and models" } (comparison(&groups)) }
        section {
            h2 { "Runs, worst first" }
            @if runs.len() > MAX_ROWS { p.note { "Only the worst " (counted(MAX_ROWS, "run")) " are listed." } }
            div.scroll tabindex="0" role="group" aria-label="Runs" { (table(&runs[..runs.len().min(MAX_ROWS)])) }
            @if bodies.len() < runs.len() {
                p.soft { "The worst " (counted(bodies.len(), "run")) " are shown below. To see another one, pass its file to " code { "rb report" } "." }
            }
        }
        @for body in bodies { (body) }
    }
}

fn comparison(groups: &BTreeMap<(&str, &str), Group>) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label="Agents and models" {
            table {
                thead { tr { th { "agent" } th { "model" } th.right { "runs" } th { "succeeded" } th { "fired in" }
                    th { "mean peak" } th.right { "steps a run" } th.right { "tokens" } th.right { "cost" } } }
                tbody {
                    @for ((agent, model), group) in groups {
                        @let (won, fired) = (share(group.successes, group.with_outcome), share(group.fired, group.runs));
                        @let peak = group.peaks / f64::from(group.runs.max(1));
                        tr {
                            td { (or_dash(agent)) }
                            td { (or_dash(model)) }
                            td.right { (group.runs) }
                            td { @if group.with_outcome == 0 { span.soft { "unknown" } }
                                @else { (bar(won, "fill-good", &format!("{} of {}", group.successes, group.with_outcome))) } }
                            td { (bar(fired, "fill-hot", &format!("{:.0} %", fired * 100.0))) }
                            td { (bar(peak, "fill-hot", &format!("{peak:.2}"))) }
                            td.right { (group.steps / u64::from(group.runs.max(1))) }
                            td.right { @if group.tokens > 0 { (grouped(group.tokens)) } @else { span.soft { "–" } } }
                            td.right { @if group.cost_usd > 0.0 { (dollars(group.cost_usd)) } @else { span.soft { "–" } } }
                        }
                    }
                }
            }
        }
    }
}

fn or_dash(text: &str) -> Markup {
    html! { @if text.is_empty() { span.soft { "–" } } @else { (name(text)) } }
}

fn table(runs: &[Listed]) -> Markup {
    html! {
        table.runs {
            thead { tr { th { "run" } th { "outcome" } th { "peak" } th { "fired" } th.right { "steps" } th { "model" } } }
            tbody {
                @for run in runs {
                    tr {
                        td.what {
                            @match &run.anchor {
                                Some(anchor) => { a href={ "#" (anchor) } { (EscapedText(&run.title, 91)) } }
                                None => { (EscapedText(&run.title, 91)) }
                            }
                            div.soft { (name(&run.name)) @if !run.place.is_empty() && run.place != run.name { " · " (name(&run.place)) } }
                        }
                        td { (outcome(run.outcome.as_deref())) }
                        td { (bar(run.peak, "fill-hot", &format!("{:.2}", run.peak))) }
                        td { @for monitor in &run.fired { span.mark.hot { (name(monitor)) } " " }
                            @for monitor in &run.signals { span.mark.signal { (name(monitor)) } " " } }
                        td.right { (grouped(run.steps)) }
                        td { (or_dash(&run.model)) }
                    }
                }
            }
        }
    }
}
