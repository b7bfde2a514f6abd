//! Real successful runs with a known fault planted into them.
//!
//! Outcomes are a noisy label: a run may fail for reasons that no step shows. A planted fault is exact:
//! its kind and its step are known. What is planted is general English and common commands in the form
//! of the run's own tools, drawn from many templates, so that a monitor cannot be fitted to a phrase.
//!
//! **Invariants.** Steps before `Spliced::changed_from` are those of the source run; the same run, kind
//! and seed give the same plant, whatever other runs there are (drift apart, which takes its steps from
//! them).

/// Which steps change something.
mod change;
/// A statement against what was said or seen.
mod contradiction;
/// Work on something else than the task.
mod drift;
/// Done, with a change that nothing has checked.
mod finish;
/// How the agent of a run acts.
mod hand;
/// The same act again and again.
mod loops;
/// An edit, back, and forth again.
mod revert;
/// The same in other words.
mod reword;
/// What the judges made of the plants.
mod score;

pub(crate) use score::score;

use serde::Serialize;

use crate::corpus::{LabelledRun, Outcome, OwnedStep};
use crate::dice::Dice;

/// The faults that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The same act again and again.
    Loop,
    /// An edit, back, and forth again.
    Revert,
    /// A statement against what was said or seen.
    Contradiction,
    /// Done, says the agent, with a change that nothing has checked.
    UnverifiedFinish,
    /// Work on something else than the task.
    Drift,
}

impl Kind {
    /// Every kind, in the order of tables.
    pub const ALL: [Self; 5] =
        [Self::Loop, Self::Revert, Self::Contradiction, Self::UnverifiedFinish, Self::Drift];

    /// Its name in sentences.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Loop => "loops",
            Self::Revert => "reverts",
            Self::Contradiction => "contradictions",
            Self::UnverifiedFinish => "unverified finishes",
            Self::Drift => "drifts",
        }
    }

    /// The monitors that ought to see it, of either suite.
    pub fn intended(self) -> &'static [&'static str] {
        match self {
            Self::Loop => &["semantic_loop", "cyclic_compression", "streak", "test_repeat"],
            Self::Revert => &["semantic_loop", "cyclic_compression", "edit_revert"],
            Self::Contradiction => &["claim_contradiction", "hedge"],
            Self::UnverifiedFinish => &["verification_skip"],
            Self::Drift => &["silent_topic_drift", "late_sprawl"],
        }
    }
}

/// Shorter runs get no plant: there would be no healthy part before it.
const STEPS_MIN: usize = 6;
/// At least so many healthy steps come first.
const MIN_PREFIX: usize = 3;

/// A run with a fault in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spliced {
    /// The run with the fault.
    pub run: LabelledRun,
    /// What was planted.
    pub kind: Kind,
    /// In which way.
    pub variant: &'static str,
    /// The first step that differs from the source run; alarms before it are false.
    pub changed_from: usize,
    /// The step at which the fault begins. It may come after honest steps that prepare it: the first of
    /// two edits, the failing test before the claim.
    pub start: usize,
}

/// The steps of a run with a fault in them.
struct Plant {
    variant: &'static str,
    steps: Vec<OwnedStep>,
    changed_from: usize,
    start: usize,
}

impl Plant {
    /// Steps put between those of the run; the fault begins with the first of them.
    fn inserted(
        variant: &'static str,
        run: &LabelledRun,
        at: usize,
        inserted: &[OwnedStep],
    ) -> Self {
        let (before, after) = run.steps.split_at(at.min(run.steps.len()));
        let steps = [before, inserted, after].concat();
        Self { variant, steps, changed_from: at, start: at }
    }
}

/// A place with healthy steps before it and at least one step after it.
fn place(run: &LabelledRun, dice: &mut Dice) -> usize {
    dice.between(MIN_PREFIX, run.steps.len().saturating_sub(1))
}

/// Plants one fault; `None` where the run is too short or its agent could not do such a thing.
/// `others` are runs of the same set, for drift.
pub fn splice(
    run: &LabelledRun,
    others: &[&LabelledRun],
    kind: Kind,
    seed: u64,
) -> Option<Spliced> {
    if run.steps.len() < STEPS_MIN {
        return None;
    }
    let mut dice = Dice::for_purpose(seed, &[kind.plural(), &run.set, &run.id]);
    let hand = hand::Hand::of(run);
    let plant = match kind {
        Kind::Loop => loops::plant(run, &hand, &mut dice),
        Kind::Revert => revert::plant(run, &hand, &mut dice),
        Kind::Contradiction => contradiction::plant(run, &hand, &mut dice),
        Kind::UnverifiedFinish => finish::plant(run, &hand, &mut dice),
        Kind::Drift => drift::plant(run, others, &mut dice),
    }?;
    let Plant { variant, steps, changed_from, start } = plant;
    let run = LabelledRun { steps, outcome: None, labelled_steps: Vec::new(), ..run.clone() };
    Some(Spliced { run, kind, variant, changed_from, start })
}

/// Plants every kind into the successful runs of every set, at most `plants_max` of a kind into a set.
pub fn splice_all(runs: &[LabelledRun], plants_max: usize, seed: u64) -> Vec<Spliced> {
    let mut sets: Vec<&str> = runs.iter().map(|run| run.set.as_str()).collect();
    sets.sort_unstable();
    sets.dedup();
    let mut spliced = Vec::new();
    for set in sets {
        let of_set: Vec<&LabelledRun> = runs.iter().filter(|run| run.set == set).collect();
        for kind in Kind::ALL {
            let mut sources: Vec<&LabelledRun> = of_set
                .iter()
                .copied()
                .filter(|run| run.outcome == Some(Outcome::Success))
                .collect();
            sources.sort_by_cached_key(|run| Dice::for_purpose(seed, &[&run.id]).next());
            let plants = sources.iter().filter_map(|run| splice(run, &of_set, kind, seed));
            spliced.extend(plants.take(plants_max));
        }
    }
    spliced
}

#[cfg(test)]
mod tests;
