//! `late_sprawl`: new tools, files and directions appear where the run should converge.
//!
//! **Rule.** Once work has been changed and checked, and the run is at least `ACTS_BEFORE` acts old, count among the last
//! `WINDOW` acts those that open a new direction: files and names that nothing before has mentioned, and unlike the
//! acts before them. Six of eight read 0.65.
//!
//! **Fires at** 0.6.
//!
//! **Not sprawl.** Exploring at the start. Following a name that an answer has shown. Going through a list.
//!
//! **State.** One bit an act for the window. Cost per step: the window.
//!
//! **Blind spots.** Agents that never change anything do not converge in a way that could be seen here.

use super::{Monitor, MonitorSpec, ProfileWeights, Signal, Suite};
use crate::analysis::action::Kind;
use crate::analysis::features::StepFeatures;
use crate::analysis::history::{History, StepContext};
use crate::evidence::Evidence;
use crate::step::StepIndex;

pub(super) static SPEC: MonitorSpec = MonitorSpec {
    id: "late_sprawl",
    suite: Suite::Semantic,
    summary: "New tools, files and directions appear where the run should converge.",
    fire_at: super::DEFAULT_FIRE_THRESHOLD,
    failure_type: "late_sprawl",
    weights: ProfileWeights { coding: 0.10, pr_review: 0.15, qa: 0.10 },
    build: |_| Box::new(LateSprawl::default()),
    advice,
};

/// Before this many acts a run may go anywhere.
const ACTS_BEFORE: u32 = 15;
/// How many acts are looked at.
const WINDOW: u32 = 8;
/// An act less like each of the recent ones than this is a new direction.
const UNLIKE: f64 = 0.45;
/// An act with a larger share of known names follows from what was seen.
const FAMILIAR: f64 = 0.5;
/// By how many of the window open a new direction.
const SCORES: [f64; 9] = [0.0, 0.05, 0.10, 0.20, 0.30, 0.45, 0.65, 0.85, 1.0];

#[derive(Default)]
struct LateSprawl {
    changed: bool,
    checked: bool,
    /// The newest act in the lowest bit; set where it opened a new direction.
    window: u32,
    last_new: StepIndex,
}

impl Monitor for LateSprawl {
    fn observe(&mut self, at: StepIndex, facts: &StepFeatures<'_>) -> Signal {
        let Some((scene, past)) = facts.scene else { return Signal::none() };
        let act = &scene.act;
        if matches!(act.kind, Kind::Message | Kind::Think | Kind::Finish) || act.poll {
            return Signal::none();
        }
        self.changed |= act.edits || act.kind.is_effect();
        self.checked |= self.changed && act.verifies;
        let converging = self.changed && self.checked && past.acts >= ACTS_BEFORE;
        let new = converging && opens_direction(scene, past);
        if new {
            self.last_new = at;
        }
        self.window = ((self.window << 1) | u32::from(new)) & ((1 << WINDOW) - 1);
        let count = self.window.count_ones();
        Signal::new(SCORES.get(count as usize).copied().unwrap_or(1.0), || {
            Evidence::new("new_directions", count).of(WINDOW).at([self.last_new])
        })
    }

    fn advised(&mut self, _: StepIndex) {
        self.window = 0;
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

fn opens_direction(scene: &StepContext, past: &History) -> bool {
    let unknown = scene.familiar.is_some_and(|known| known < FAMILIAR);
    unknown && scene.meaning.closest(past.recent.iter().map(|act| &act.meaning)) < UNLIKE
}

fn advice(seen: &Evidence) -> String {
    let (count, limit) = (seen.count, seen.limit.unwrap_or_default());
    let steps = seen.steps_in_words();
    if seen.is_repeated() {
        return format!(
            "new directions keep opening after an earlier notice: {count} of the last {limit} acts, most recently {steps}. The \
             work had been changed and checked before that, and each further direction puts it at risk. Ways out: finish \
             with the state that was checked, or name the one direction the task still needs and leave the others."
        );
    }
    format!(
        "{count} of the last {limit} acts opened a new direction (most recently {steps}), after the work had been changed and \
         checked. It may help to list what the task still needs, and to leave aside what does not serve it."
    )
}
