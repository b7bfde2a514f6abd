//! One run in full: what it was asked, how it ended, what fired and why, the picture, the steps.

use maud::{Markup, html};
use rb_store::OutcomeClass;

use super::text::{Shown, counted, dollars, duration, grouped, line, name};
use super::{RunView, StepView, chart, steps};

const TASK_CHARS_MAX: usize = 6_000;
/// A longer task is folded.
const TASK_CHARS_OPEN: usize = 600;

/// What to call the run in a title: one line, harmless once it is escaped.
pub fn title(run: &RunView<'_>) -> String {
    let name = if run.task.trim().is_empty() { &run.name } else { &run.task };
    line(name, 90)
}

/// How a run ended, in a word with its colour.
pub(crate) fn outcome(outcome: Option<&str>) -> Markup {
    let class = match OutcomeClass::of(outcome) {
        OutcomeClass::Success => "good",
        OutcomeClass::Failure => "bad",
        OutcomeClass::Other => "plain",
        OutcomeClass::Unfinished => "open",
    };
    html! { span class={ "outcome " (class) } { (Shown(outcome.unwrap_or("no outcome"), 60)) } }
}

/// The run as a part of a page. `scope` begins all its anchors, so several runs fit into one page.
pub fn run(view: &RunView<'_>, scope: &str) -> Markup {
    run_with(view, scope, &html! {})
}

/// The same with something between the facts and what happened. Parts that change while a run goes on have a name.
pub(crate) fn run_with(view: &RunView<'_>, scope: &str, between: &Markup) -> Markup {
    let written = steps::written(view);
    let link = |step: &StepView<'_>| {
        written.contains(&step.index).then(|| format!("#{}", steps::anchor(scope, step.index)))
    };
    let quiet = chart::quiet(view);
    html! {
        article.run id={ (scope) "run" } {
            header.head data-part="head" {
                p.kicker {
                    (name(&view.name))
                    @for part in [&view.agent, &view.model, &view.place] {
                        @if !part.is_empty() { span.sep { " · " } (name(part)) }
                    }
                }
                h1 { (Shown(&title(view), 91)) }
                p { (outcome(view.outcome.as_deref())) }
                (facts(view))
            }
            (task(view))
            (between)
            div data-part="story" { (story(view, scope)) }
            div data-part="steps" {
                @if view.steps.is_empty() { p.note { "Nothing is known of its steps." } }
                @else { section {
                    h2 { "Step by step" }
                    figure {
                        div.scroll tabindex="0" role="group" aria-label="The run as a picture" { (chart::chart(view, &link)) }
                        figcaption {
                            (legend())
                            @if !quiet.is_empty() {
                                p.soft { "Quiet all along: " @for (at, monitor) in quiet.iter().enumerate() {
                                    @if at > 0 { ", " } (name(monitor)) } "." }
                            }
                        }
                    }
                    (steps::steps(view, &written, scope))
                } }
            }
        }
    }
}

fn legend() -> Markup {
    html! {
        p.legend {
            "reads "
            @for level in 1..=4 { span class={ "key heat-" (level) } {} }
            " higher " span.key.heat-5 {} " fired " span.tri {} " guidance. A click on a column opens the step."
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
    let was_steered = view.steps.iter().any(|step| !step.said.is_empty());
    html! {
        dl.facts {
            div { dt { "steps" } dd { (grouped(u64::try_from(view.steps.len()).unwrap_or(u64::MAX))) } }
            @if let Some((step, peak)) = view.peak() {
                div { dt { "peak composite" } dd { (format!("{peak:.2}")) span.soft { " at " (step) } } }
            }
            div { dt { "monitors fired" } dd { (view.fires().len()) } }
            div { dt { (if was_steered { "guidance given" } else { "guidance due" }) } dd { (counted(advised, "time")) } }
            @if let Some(tokens) = view.tokens { div { dt { "tokens" } dd { (grouped(tokens)) } } }
            @if let Some(cost) = view.cost_usd { div { dt { "cost" } dd { (dollars(cost)) } } }
            @if let Some(took) = took { div { dt { "time" } dd { (duration(took)) } } }
        }
    }
}

fn task(view: &RunView<'_>) -> Markup {
    let text = view.task.trim();
    let is_long = text.chars().nth(TASK_CHARS_OPEN).is_some();
    html! {
        @if is_long {
            details.task { summary { "The task in full" } pre { (Shown(text, TASK_CHARS_MAX)) } }
        } @else if title(view) != line(text, TASK_CHARS_OPEN) && !text.is_empty() {
            p.task { (Shown(text, TASK_CHARS_MAX)) }
        }
    }
}

/// What fired, in words, each once.
fn story(view: &RunView<'_>, scope: &str) -> Markup {
    let fires = view.fires();
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
                                @if let Some(seen) = first.evidence.iter().find(|seen| seen.monitor == *monitor) {
                                    p.why { (Shown(&seen.text, 1_000)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
