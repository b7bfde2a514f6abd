//! `late_sprawl`: new tools, files and directions late in a run that should converge.
//!
//! **Rule.** After work was changed and checked, and after at least `ACTIONS_BEFORE` actions, the score counts among
//! the last `WINDOW` actions those that open a new direction: their files and names were not mentioned before, and they
//! are unlike the actions before them. Six of eight score 0.65.
//!
//! **Fires at** 0.6.
//!
//! **Not sprawl.** Exploration at the start; following a name in a result; processing a list.
//!
//! **State.** One bit per action of the window. Cost per step: the window.
//!
//! **Blind spots.** Agents that never change anything.

use super::{Monitor, MonitorSpec, Signal, Suite};
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
    build: |_| Box::new(LateSprawl::default()),
    advice,
};

/// Number of actions before which the score is 0.
const ACTIONS_BEFORE: u32 = 15;
/// Number of recent actions that are examined.
const WINDOW: u32 = 8;
/// Maximum similarity of a new direction to each recent action.
const NEW_DIRECTION_SIMILARITY_MAX: f64 = 0.45;
/// Share of known names above which an action follows from earlier results.
const KNOWN_SHARE_MIN: f64 = 0.5;
/// Score by number of new directions in the window.
const SCORES: [f64; 9] = [0.0, 0.05, 0.10, 0.20, 0.30, 0.45, 0.65, 0.85, 1.0];

#[derive(Default)]
struct LateSprawl {
    changed: bool,
    checked: bool,
    /// One bit per action, the latest in the lowest; set if it opened a new direction.
    window: u32,
    last_new: StepIndex,
}

impl Monitor for LateSprawl {
    fn observe(&mut self, at: StepIndex, features: &StepFeatures<'_>) -> Signal {
        let Some((context, past)) = features.context else { return Signal::none() };
        let action = &context.action;
        if matches!(action.kind, Kind::Message | Kind::Think | Kind::Finish) || action.poll {
            return Signal::none();
        }
        self.changed |= action.edits || action.kind.is_effect();
        self.checked |= self.changed && action.verifies;
        let converging = self.changed && self.checked && past.actions >= ACTIONS_BEFORE;
        let new = converging && opens_direction(context, past);
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

fn opens_direction(context: &StepContext, past: &History) -> bool {
    let unknown = context.familiar.is_some_and(|known| known < KNOWN_SHARE_MIN);
    unknown
        && context.meaning.closest(past.recent.iter().map(|action| &action.meaning))
            < NEW_DIRECTION_SIMILARITY_MAX
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
