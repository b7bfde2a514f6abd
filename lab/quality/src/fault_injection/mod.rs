//! Injects faults of known kind and position into successful runs.
//!
//! Outcomes are a noisy label; an injected fault is exact. Its texts are general English and common commands in the form of
//! the run's tools, drawn from many templates so that no monitor can be fitted to a phrase.
//!
//! **Invariants.** Steps before `FaultyRun::changed_from` are those of the source run. The same run, kind and seed give the
//! same fault independent of other runs (except drift, which copies from them). `docs/figures.json` depends on every draw.

/// Tools and style of the agent.
mod agent_style;
/// Claims that contradict earlier steps.
mod contradiction;
/// Work on another task.
mod drift;
/// Detection of edits and checks.
mod edits;
/// Finishes after an unchecked edit.
mod finish;
/// Repeated steps.
mod loops;
/// Rewording of steps.
mod paraphrase;
/// Edits that are undone and redone.
mod revert;

use serde::Serialize;

use rb_quality::corpus::{LabelledRun, Outcome, OwnedStep};
use rb_quality::rng::Rng;

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FaultKind {
    /// Repeated steps.
    Loop,
    /// Edits that are undone and redone.
    Revert,
    /// A claim that contradicts an earlier step.
    Contradiction,
    /// A finish after an unchecked edit.
    UnverifiedFinish,
    /// Work on another task.
    Drift,
}

impl FaultKind {
    /// All kinds, in the order of tables.
    pub(crate) const ALL: [Self; 5] =
        [Self::Loop, Self::Revert, Self::Contradiction, Self::UnverifiedFinish, Self::Drift];

    /// The plural in tables; also the purpose of the random draws.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Loop => "loops",
            Self::Revert => "reverts",
            Self::Contradiction => "contradictions",
            Self::UnverifiedFinish => "unverified finishes",
            Self::Drift => "drifts",
        }
    }

    /// The monitors of both suites that are meant for it.
    pub(crate) fn intended(self) -> &'static [&'static str] {
        match self {
            Self::Loop => &["semantic_loop", "cyclic_compression", "streak", "test_repeat"],
            Self::Revert => &["semantic_loop", "cyclic_compression", "edit_revert"],
            Self::Contradiction => &["claim_contradiction", "hedge"],
            Self::UnverifiedFinish => &["verification_skip"],
            Self::Drift => &["silent_topic_drift", "late_sprawl"],
        }
    }
}

/// Minimum number of steps of a source run.
const MIN_STEPS: usize = 6;
/// Minimum number of unchanged steps before the fault.
const MIN_PREFIX: usize = 3;
/// An alarm that begins at most this many steps after the fault detects it.
pub(crate) const DETECTION_STEPS: usize = 5;

/// A run with an injected fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FaultyRun {
    /// The changed run.
    pub(crate) run: LabelledRun,
    /// The kind of fault.
    pub(crate) kind: FaultKind,
    /// The variant of the kind.
    pub(crate) variant: &'static str,
    /// First step that differs from the source run; alarms before it are false.
    pub(crate) changed_from: usize,
    /// First step of the fault. Correct steps can precede it, such as the first of two edits.
    pub(crate) start: usize,
}

/// A fault before its run is completed.
struct Fault {
    variant: &'static str,
    steps: Vec<OwnedStep>,
    changed_from: usize,
    start: usize,
}

impl Fault {
    /// Inserts steps; the fault begins with the first of them.
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

/// A random position with at least [`MIN_PREFIX`] steps before and one step after it.
fn place(run: &LabelledRun, rng: &mut Rng) -> usize {
    MIN_PREFIX + rng.below(run.steps.len().saturating_sub(1 + MIN_PREFIX))
}

/// Injects one fault; `None` if the run is too short or the agent has no suitable tools. `others` are runs of the same set.
pub(crate) fn inject(
    run: &LabelledRun,
    others: &[&LabelledRun],
    kind: FaultKind,
    seed: u64,
) -> Option<FaultyRun> {
    if run.steps.len() < MIN_STEPS {
        return None;
    }
    let mut rng = Rng::for_purpose(seed, &[kind.plural(), &run.set, &run.id]);
    let style = agent_style::AgentStyle::of(run);
    let fault = match kind {
        FaultKind::Loop => loops::inject(run, &style, &mut rng),
        FaultKind::Revert => revert::inject(run, &style, &mut rng),
        FaultKind::Contradiction => contradiction::inject(run, &style, &mut rng),
        FaultKind::UnverifiedFinish => finish::inject(run, &style, &mut rng),
        FaultKind::Drift => drift::inject(run, others, &mut rng),
    }?;
    let Fault { variant, steps, changed_from, start } = fault;
    let run = LabelledRun { steps, outcome: None, labelled_steps: Vec::new(), ..run.clone() };
    Some(FaultyRun { run, kind, variant, changed_from, start })
}

/// Injects every kind into the successful runs of every set, at most `max_faults` per kind and set.
pub(crate) fn inject_all(runs: &[LabelledRun], max_faults: usize, seed: u64) -> Vec<FaultyRun> {
    let mut sets: Vec<&str> = runs.iter().map(|run| run.set.as_str()).collect();
    sets.sort_unstable();
    sets.dedup();
    let mut injected = Vec::new();
    for set in sets {
        let of_set: Vec<&LabelledRun> = runs.iter().filter(|run| run.set == set).collect();
        for kind in FaultKind::ALL {
            let mut sources: Vec<&LabelledRun> = of_set
                .iter()
                .copied()
                .filter(|run| run.outcome == Some(Outcome::Success))
                .collect();
            sources.sort_by_cached_key(|run| Rng::for_purpose(seed, &[&run.id]).bits());
            let faults = sources.iter().filter_map(|run| inject(run, &of_set, kind, seed));
            injected.extend(faults.take(max_faults));
        }
    }
    injected
}

#[cfg(test)]
mod tests;
