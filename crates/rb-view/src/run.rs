//! One run: task, outcome, monitors that fired with their evidence, timeline, steps.

use maud::{Markup, html};
use rb_store::OutcomeClass;

use crate::model::{RunView, StepView};
use crate::text::{EscapedText, counted, dollars, duration, grouped, line, name};
use crate::{steps, timeline};

const MAX_TASK_CHARS: usize = 6_000;
/// A longer task is collapsed.
const MAX_OPEN_TASK_CHARS: usize = 600;

/// Returns the title of the run: the start of its task, else its id, not escaped.
pub fn title(run: &RunView<'_>) -> String {
    let name = if run.task.trim().is_empty() { &run.name } else { &run.task };
    line(name, 90)
}

/// Renders the outcome of a run, coloured by its class.
pub fn outcome(outcome: Option<&str>) -> Markup {
    let class = match OutcomeClass::of(outcome) {
        OutcomeClass::Success => "good",
        OutcomeClass::Failure => "bad",
        OutcomeClass::Other => "plain",
        OutcomeClass::Unfinished => "open",
    };
    html! { span class={ "outcome " (class) } { (EscapedText(outcome.unwrap_or("unknown"), 60)) } }
}

/// Renders a run as a part of a page. `scope` prefixes its anchors, so that a page can have several runs.
pub fn run(view: &RunView<'_>, scope: &str) -> Markup {
    run_with(view, scope, &html! {})
}

/// As [`run`], with `between` inserted after the facts. `data-part` marks the parts that live updates replace.
pub fn run_with(view: &RunView<'_>, scope: &str, between: &Markup) -> Markup {
    let listed = steps::listed_steps(view);
    let link = |step: &StepView<'_>| {
        listed.contains(&step.index).then(|| format!("#{}", steps::anchor(scope, step.index)))
    };
    let quiet = timeline::quiet(view);
    html! {
        article.run id={ (scope) "run" } {
            header.head data-part="head" {
                p.kicker {
                    (name(&view.name))
                    @for part in [&view.agent, &view.model, &view.place] {
                        @if !part.is_empty() { span.sep { " · " } (name(part)) }
                    }
                }
                h1 { (EscapedText(&title(view), 91)) }
                p {
                    @if view.is_running { span.outcome.running { "running" } }
                    @else { (outcome(view.outcome.as_deref())) }
                }
                (facts(view))
            }
            (task(view))
            (between)
            div data-part="story" { (alarms(view, scope)) }
            div data-part="steps" {
                @if view.steps.is_empty() { p.note { "No steps were recorded." } }
                @else { section {
                    h2 { "Step by step" }
                    figure {
                        div.scroll tabindex="0" role="group" aria-label="Timeline" { (timeline::timeline(view, &link)) }
                        figcaption {
                            (legend())
                            @if !quiet.is_empty() {
                                p.soft { "Always quiet: " @for (at, monitor) in quiet.iter().enumerate() {
                                    @if at > 0 { ", " } (name(monitor)) } "." }
                            }
                        }
                    }
                    (steps::steps(view, &listed, scope))
                } }
            }
        }
    }
}

fn legend() -> Markup {
    html! {
        p.legend {
            "score "
            @for level in 1..=4 { span class={ "key heat-" (level) } {} }
            " rising " span.key.heat-5 {} " fired " span.tri {} " guidance. Click a column to open its step."
        }
    }
}

fn facts(view: &RunView<'_>) -> Markup {
    let took = view
        .started_ms
        .zip(view.ended_ms)
        .map(|(from, to)| to.saturating_sub(from))
        .filter(|ms| *ms > 0);
    let advised = view.steps.iter().filter(|step| step.is_advised()).count();
    let was_steered = view.steps.iter().any(|step| !step.guidance.is_empty());
    html! {
        dl.facts {
            div { dt { "steps" } dd { (grouped(u64::try_from(view.steps.len()).unwrap_or(u64::MAX))) } }
            @if let Some((step, peak)) = view.peak() {
                div { dt { "peak composite" } dd { (format!("{peak:.2}")) span.soft { " at " (step) } } }
            }
            div { dt { "monitors fired" } dd { (view.fires().len()) } }
            @if !view.signals().is_empty() { div { dt { "signals" } dd { (view.signals().len()) } } }
            div { dt { (if was_steered { "guidance given" } else { "guidance due" }) } dd { (counted(advised, "time")) } }
            @if let Some(tokens) = view.tokens { div { dt { "tokens" } dd { (grouped(tokens)) } } }
            @if let Some(cost) = view.cost_usd { div { dt { "cost" } dd { (dollars(cost)) } } }
            @if let Some(took) = took { div { dt { "time" } dd { (duration(took)) } } }
        }
    }
}

fn task(view: &RunView<'_>) -> Markup {
    let text = view.task.trim();
    let is_long = text.chars().nth(MAX_OPEN_TASK_CHARS).is_some();
    html! {
        @if is_long {
            details.task { summary { "Full task" } pre { (EscapedText(text, MAX_TASK_CHARS)) } }
        } @else if title(view) != line(text, MAX_OPEN_TASK_CHARS) && !text.is_empty() {
            p.task { (EscapedText(text, MAX_TASK_CHARS)) }
        }
    }
}

/// Renders the monitors that fired, each with its first evidence.
fn alarms(view: &RunView<'_>, scope: &str) -> Markup {
    let (fires, signals) = (view.fires(), view.signals());
    html! {
        section {
            h2 { "Where it went astray" }
            @if fires.is_empty() { p.note { "No monitor fired." } }
            @else {
                ul.story {
                    @for (monitor, fired) in &fires {
                        @if let Some(first) = fired.first() {
                            li {
                                p { b { (name(monitor)) } span.soft { " on " (counted(fired.len(), "step")) ", first at " }
                                    a href={ "#" (steps::anchor(scope, first.index)) } { "step " (first.index) } }
                                @if let Some(evidence) = first.evidence.iter().find(|evidence| evidence.monitor == *monitor) {
                                    p.why { (EscapedText(&evidence.text, 1_000)) }
                                }
                            }
                        }
                    }
                }
            }
            @if !signals.is_empty() {
                p.soft { "Signals (recorded, without advice): "
                    @for (at, (monitor, steps)) in signals.iter().enumerate() {
                        @if at > 0 { ", " } (name(monitor)) " on " (counted(steps.len(), "step")) } "." }
            }
        }
    }
}
