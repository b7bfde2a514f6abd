//! Drift: the rest of the run is replaced by tool calls of a run with another task.
//!
//! Only tool calls are copied: with the other user's messages the change of subject would be requested, and the last step of
//! a run looks the same for every task. A drift has at least as many calls as an alarm has time to begin.

use super::{Fault, place};
use rb_quality::corpus::{LabelledRun, OwnedStep};
use rb_quality::rng::Rng;

/// Minimum number of copied calls.
const MIN_ACTS: usize = super::DETECTION_STEPS;
/// Maximum number of copied calls.
const MAX_ACTS: usize = 12;
/// Number of first calls that are not copied, because all runs begin alike.
const BEGINNING: usize = 2;

/// `others` are runs of the same set.
pub(super) fn inject(run: &LabelledRun, others: &[&LabelledRun], rng: &mut Rng) -> Option<Fault> {
    let start = place(run, rng);
    let differs = |other: &&&LabelledRun| {
        other.task.key != run.task.key
            && other.task.text != run.task.text
            && acts(other).count() >= BEGINNING + MIN_ACTS
    };
    let others: Vec<_> = others.iter().filter(differs).collect();
    let other: Vec<&OwnedStep> = acts(others.get(rng.below(others.len()))?).collect();
    // The same relative position in the other run.
    let from = other.len() * start / run.steps.len();
    let from = from.clamp(BEGINNING, other.len().saturating_sub(MIN_ACTS).max(BEGINNING));
    let mut steps = run.steps.get(..start)?.to_vec();
    steps.extend(other.into_iter().skip(from).take(MAX_ACTS).cloned());
    Some(Fault { variant: "other task", steps, changed_from: start, start })
}

/// The tool calls of a run without its last step.
fn acts(run: &LabelledRun) -> impl Iterator<Item = &OwnedStep> {
    let end = run.steps.len().saturating_sub(1);
    run.steps.iter().take(end).filter(|step| !step.tool.is_empty())
}
