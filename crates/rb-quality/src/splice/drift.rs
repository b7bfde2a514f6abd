//! Drift: from some place on, the steps are those of another run with another task.

use super::{Plant, place};
use crate::corpus::LabelledRun;
use crate::dice::Dice;

/// So many steps of the other run at most.
const STEPS_MAX: usize = 12;

/// `others` are runs of the same set.
pub(super) fn plant(run: &LabelledRun, others: &[&LabelledRun], dice: &mut Dice) -> Option<Plant> {
    let start = place(run, dice);
    let differs = |other: &&&LabelledRun| {
        other.task.key != run.task.key && other.task.text != run.task.text && other.steps.len() >= 6
    };
    let others: Vec<_> = others.iter().filter(differs).collect();
    let other = others.get(dice.below(others.len()))?;
    // As far into the other task as into this one: a beginning looks alike everywhere.
    let from = (other.steps.len() * start / run.steps.len()).clamp(2, other.steps.len() - 3);
    let mut steps = run.steps.get(..start)?.to_vec();
    steps.extend(other.steps.iter().skip(from).take(STEPS_MAX).cloned());
    Some(Plant { variant: "other task", steps, changed_from: start, start })
}
