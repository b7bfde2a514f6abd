//! The steps to read: one fold a step, with everything that is known of it inside.

use std::collections::HashSet;

use maud::{Markup, html};

use super::text::{Shown, counted, dollars, grouped, line, name};
use super::{RunView, StepView};

/// At most so many steps are written out; those in which something happened come first.
const STEPS_MAX: usize = 1_500;
/// At most so many characters of a text.
const TEXT_CHARS_MAX: usize = 12_000;
/// So many characters of a step in the list.
const LINE_CHARS_MAX: usize = 110;

/// The indexes of the steps that are written out.
pub(super) fn written(run: &RunView<'_>) -> HashSet<u32> {
    let matters = |step: &&StepView<'_>| !step.fired.is_empty() || step.is_advised();
    let first = run.steps.iter().filter(matters);
    let rest = run.steps.iter().filter(|step| !matters(step));
    first.chain(rest).take(STEPS_MAX).map(|step| step.index).collect()
}

/// The anchor of a step; `scope` tells the runs of a page apart.
pub(super) fn anchor(scope: &str, index: u32) -> String {
    format!("{scope}s{index}")
}

/// The list.
pub(super) fn steps(run: &RunView<'_>, written: &HashSet<u32>, scope: &str) -> Markup {
    let left =
        run.steps.len() - run.steps.iter().filter(|step| written.contains(&step.index)).count();
    html! {
        @if left > 0 {
            p.note { (counted(left, "step")) " of this long run are in the picture and not in the list." }
        }
        div.steps {
            @for step in run.steps.iter().filter(|step| written.contains(&step.index)) {
                (fold(run, step, written, scope))
            }
        }
    }
}

fn fold(run: &RunView<'_>, step: &StepView<'_>, written: &HashSet<u32>, scope: &str) -> Markup {
    let first = [&step.thought, &step.user_input, &step.input, &step.observation];
    let excerpt = first
        .into_iter()
        .find(|text| !text.trim().is_empty())
        .map(|text| line(text, LINE_CHARS_MAX));
    let has_fired = !step.fired.is_empty();
    html! {
        details.step.fired[has_fired] {
            summary {
                span.number { (step.index) }
                span.tool { @if step.action.is_empty() { span.soft { "–" } } @else { (Shown(&line(&step.action, 40), 41)) } }
                span.excerpt { (Shown(&excerpt.unwrap_or_default(), LINE_CHARS_MAX + 1)) }
                span.marks {
                    @if step.is_error { span.mark { "error" } }
                    @for monitor in &step.fired { span.mark.hot { (name(monitor)) } }
                    @if !step.said.is_empty() { span.mark.told { "guidance given" } }
                    @else if step.would_say.is_some() { span.mark.told { "guidance due" } }
                }
            }
            // The anchor is inside, so that a browser that follows a link to it opens the fold.
            div.inside id=(anchor(scope, step.index)) tabindex="-1" {
                (part("user", &step.user_input))
                (part("thought", &step.thought))
                @if !step.action.is_empty() || !step.input.is_empty() {
                    section { h3 { "action " code { (name(&step.action)) } }
                        @if !step.input.trim().is_empty() { pre tabindex="0" role="group" aria-label="what the tool was given" { (Shown(&step.input, TEXT_CHARS_MAX)) } } }
                }
                (part(if step.is_error { "observation (an error)" } else { "observation" }, &step.observation))
                (reasons(step, written, scope))
                (numbers(run, step))
            }
        }
    }
}

fn part(what: &str, text: &str) -> Markup {
    html! {
        @if !text.trim().is_empty() {
            section { h3 { (what) } pre tabindex="0" role="group" aria-label=(what) { (Shown(text.trim_end(), TEXT_CHARS_MAX)) } }
        }
    }
}

/// Why something fired, and what came of it.
fn reasons(step: &StepView<'_>, written: &HashSet<u32>, scope: &str) -> Markup {
    html! {
        @for seen in &step.evidence {
            section.evidence {
                h3 { (name(&seen.monitor)) span.soft { " reads " (format!("{:.2}", seen.score)) } }
                p { (Shown(&seen.text, TEXT_CHARS_MAX)) }
                @if !seen.steps.is_empty() {
                    p.soft { "about "
                        @for (at, index) in seen.steps.iter().enumerate() {
                            @if at > 0 { ", " }
                            @if written.contains(index) { a href={ "#" (anchor(scope, *index)) } { "step " (index) } }
                            @else { "step " (index) }
                        }
                    }
                }
            }
        }
        @for (by, text) in &step.said {
            section.said { h3 { "said to the agent " span.soft { "(" (name(by)) ")" } } blockquote { (Shown(text, TEXT_CHARS_MAX)) } }
        }
        @if let Some(text) = step.would_say.as_ref().filter(|_| step.said.is_empty()) {
            section.said { h3 { "would have been said" } blockquote { (Shown(text, TEXT_CHARS_MAX)) } }
        }
    }
}

fn numbers(run: &RunView<'_>, step: &StepView<'_>) -> Markup {
    let read = run.monitors.iter().zip(&step.scores).filter(|(_, score)| **score > 0.0);
    html! {
        p.numbers {
            "state " (step.state.name())
            @if let Some(difficulty) = step.difficulty { " · difficulty " (format!("{difficulty:.2}")) }
            " · composite " (format!("{:.2}", step.composite))
            @for (monitor, score) in read { " · " (name(monitor)) " " (format!("{score:.2}")) }
            @if let Some(tokens) = step.tokens { " · " (grouped(tokens)) " tokens" }
            @if let Some(cost) = step.cost_usd { " · " (dollars(cost)) }
        }
    }
}
