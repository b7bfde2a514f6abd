//! Several runs in one page: agents and models side by side, the worst runs first, then the runs themselves.

use std::collections::BTreeMap;

use maud::{Markup, html};
use rb_store::OutcomeClass;

use super::run::outcome;
use super::text::{Shown, counted, dollars, grouped, line, name};
use super::{RunView, title};

/// The list shows at most so many runs.
const ROWS_MAX: usize = 2_000;

/// A run in numbers, for lists.
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
    pub tokens: Option<u64>,
    pub cost_usd: Option<f64>,
    /// Where in the page it can be read.
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
            tokens: run.tokens,
            cost_usd: run.cost_usd,
            anchor: None,
        }
    }
}

impl Listed {
    /// Orders the worst runs first: by the highest composite, then by how often something fired.
    pub fn worse_first(a: &Self, b: &Self) -> std::cmp::Ordering {
        b.peak
            .total_cmp(&a.peak)
            .then(b.fired_steps.cmp(&a.fired_steps))
            .then_with(|| a.name.cmp(&b.name))
    }
}

/// One agent with one model, over its runs.
#[derive(Default)]
struct Group {
    runs: u32,
    successes: u32,
    judged: u32,
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
                self.judged += 1;
            }
            OutcomeClass::Failure => self.judged += 1,
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

/// A share as a bar with its number.
pub(crate) fn bar(share: f64, class: &str, words: &str) -> Markup {
    let width = format!("{:.1}", 80.0 * share.clamp(0.0, 1.0));
    html! {
        svg.meter viewBox="0 0 80 8" width="80" height="8" aria-hidden="true" {
            rect.track x="0" y="0" width="80" height="8" rx="2" {}
            rect class=(class) x="0" y="0" width=(width) height="8" rx="2" {}
        }
        span.num { (words) }
    }
}

/// The page of a folder. `runs` are sorted, the worst first; `bodies` are those that can be read here.
pub fn index(heading: &str, runs: &[Listed], bodies: &[Markup]) -> Markup {
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
            h2 { "Runs, the worst first" }
            @if runs.len() > ROWS_MAX { p.note { "The worst " (counted(ROWS_MAX, "run")) " of all." } }
            div.scroll tabindex="0" role="group" aria-label="Runs" { (table(&runs[..runs.len().min(ROWS_MAX)])) }
            @if bodies.len() < runs.len() {
                p.soft { "The worst " (counted(bodies.len(), "run")) " can be read below; name a file to see another one." }
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
                        @let (won, fired) = (share(group.successes, group.judged), share(group.fired, group.runs));
                        @let peak = group.peaks / f64::from(group.runs.max(1));
                        tr {
                            td { (or_dash(agent)) }
                            td { (or_dash(model)) }
                            td.right { (group.runs) }
                            td { @if group.judged == 0 { span.soft { "not known" } }
                                @else { (bar(won, "fill-good", &format!("{} of {}", group.successes, group.judged))) } }
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
                                Some(anchor) => { a href={ "#" (anchor) } { (Shown(&run.title, 91)) } }
                                None => { (Shown(&run.title, 91)) }
                            }
                            div.soft { (name(&run.name)) @if !run.place.is_empty() && run.place != run.name { " · " (name(&run.place)) } }
                        }
                        td { (outcome(run.outcome.as_deref())) }
                        td { (bar(run.peak, "fill-hot", &format!("{:.2}", run.peak))) }
                        td { @for monitor in &run.fired { span.mark.hot { (name(monitor)) } " " } }
                        td.right { (grouped(run.steps)) }
                        td { (or_dash(&run.model)) }
                    }
                }
            }
        }
    }
}
