//! List of steps: one collapsed entry per step with all its details.

use std::collections::HashSet;

use maud::{Markup, html};

use crate::model::{RunView, StepView};
use crate::text::{EscapedText, counted, dollars, grouped, line, name};

/// Maximum number of steps in the list; steps with alarms or guidance take precedence.
const MAX_STEPS: usize = 1_500;
/// Maximum number of characters of a text.
const MAX_TEXT_CHARS: usize = 12_000;
/// Maximum number of characters of the excerpt in a step's summary line.
const MAX_EXCERPT_CHARS: usize = 110;

/// Returns the indexes of the steps in the list.
pub(crate) fn listed_steps(run: &RunView<'_>) -> HashSet<u32> {
    let is_notable = |step: &&StepView<'_>| !step.fired.is_empty() || step.is_advised();
    let first = run.steps.iter().filter(is_notable);
    let rest = run.steps.iter().filter(|step| !is_notable(step));
    first.chain(rest).take(MAX_STEPS).map(|step| step.index).collect()
}

/// Returns the anchor of a step; `scope` distinguishes the runs of a page.
pub(crate) fn anchor(scope: &str, index: u32) -> String {
    format!("{scope}s{index}")
}

/// Renders the list.
pub(crate) fn steps(run: &RunView<'_>, listed: &HashSet<u32>, scope: &str) -> Markup {
    let omitted =
        run.steps.len() - run.steps.iter().filter(|step| listed.contains(&step.index)).count();
    html! {
        @if omitted > 0 {
            p.note { (counted(omitted, "step")) " of this long run appear in the timeline but not in the list." }
        }
        div.steps {
            @for step in run.steps.iter().filter(|step| listed.contains(&step.index)) {
                (entry(run, step, listed, scope))
            }
        }
    }
}

fn entry(run: &RunView<'_>, step: &StepView<'_>, listed: &HashSet<u32>, scope: &str) -> Markup {
    let first = [&step.thought, &step.user_input, &step.input, &step.observation];
    let excerpt = first
        .into_iter()
        .find(|text| !text.trim().is_empty())
        .map(|text| line(text, MAX_EXCERPT_CHARS));
    let has_fired = !step.fired.is_empty();
    html! {
        details.step.fired[has_fired] {
            summary {
                span.number { (step.index) }
                span.tool { @if step.action.is_empty() { span.soft { "–" } } @else { (EscapedText(&line(&step.action, 40), 41)) } }
                span.excerpt { (EscapedText(&excerpt.unwrap_or_default(), MAX_EXCERPT_CHARS + 1)) }
                span.marks {
                    @if step.is_error { span.mark { "error" } }
                    @for monitor in &step.fired { span.mark.hot { (name(monitor)) } }
                    @for monitor in &step.signals { span.mark.signal { (name(monitor)) } }
                    @if !step.guidance.is_empty() { span.mark.told { "guidance given" } }
                    @else if step.guidance_due.is_some() { span.mark.told { "guidance due" } }
                }
            }
            // The anchor is inside `details`, so that following a link to it opens the entry.
            div.inside id=(anchor(scope, step.index)) tabindex="-1" {
                (part("user", &step.user_input))
                (part("thought", &step.thought))
                @if !step.action.is_empty() || !step.input.is_empty() {
                    section { h3 { "action " code { (name(&step.action)) } }
                        @if !step.input.trim().is_empty() { pre tabindex="0" role="group" aria-label="tool input" { (EscapedText(&step.input, MAX_TEXT_CHARS)) } } }
                }
                (part(if step.is_error { "observation (error)" } else { "observation" }, &step.observation))
                (reasons(step, listed, scope))
                (numbers(run, step))
            }
        }
    }
}

fn part(what: &str, text: &str) -> Markup {
    html! {
        @if !text.trim().is_empty() {
            section { h3 { (what) } pre tabindex="0" role="group" aria-label=(what) { (EscapedText(text.trim_end(), MAX_TEXT_CHARS)) } }
        }
    }
}

/// Renders the evidence and the guidance of a step.
fn reasons(step: &StepView<'_>, listed: &HashSet<u32>, scope: &str) -> Markup {
    html! {
        @for evidence in &step.evidence {
            section.evidence {
                h3 { (name(&evidence.monitor)) span.soft { " score " (format!("{:.2}", evidence.score)) } }
                p { (EscapedText(&evidence.text, MAX_TEXT_CHARS)) }
                @if !evidence.steps.is_empty() {
                    p.soft { "about "
                        @for (at, index) in evidence.steps.iter().enumerate() {
                            @if at > 0 { ", " }
                            @if listed.contains(index) { a href={ "#" (anchor(scope, *index)) } { "step " (index) } }
                            @else { "step " (index) }
                        }
                    }
                }
            }
        }
        @for (source, text) in &step.guidance {
            section.said { h3 { "guidance given to the agent " span.soft { "(" (name(source)) ")" } } blockquote { (EscapedText(text, MAX_TEXT_CHARS)) } }
        }
        @if let Some(text) = step.guidance_due.as_ref().filter(|_| step.guidance.is_empty()) {
            section.said { h3 { "guidance due" } blockquote { (EscapedText(text, MAX_TEXT_CHARS)) } }
        }
    }
}

fn numbers(run: &RunView<'_>, step: &StepView<'_>) -> Markup {
    let nonzero = run.monitors.iter().zip(&step.scores).filter(|(_, score)| **score > 0.0);
    html! {
        p.numbers {
            "state " (step.state.name())
            @if let Some(difficulty) = step.difficulty { " · difficulty " (format!("{difficulty:.2}")) }
            " · composite " (format!("{:.2}", step.composite))
            @for (monitor, score) in nonzero { " · " (name(monitor)) " " (format!("{score:.2}")) }
            @if let Some(tokens) = step.tokens { " · " (grouped(tokens)) " tokens" }
            @if let Some(cost) = step.cost_usd { " · " (dollars(cost)) }
        }
    }
}
