//! `silent_topic_drift`: what is done moves away from the task without saying so.
//!
//! **Rule.** A step is foreign when it is further from the task than the run has been, and most of its names were never
//! mentioned: not by the task, not by the user, not by any step that belonged. What a foreign step brings up does not make
//! the next one familiar. Foreignness adds up over steps and wears off with every step that belongs.
//!
//! **Fires at** 0.6: four clearly foreign steps in a row, or more half-foreign ones.
//!
//! **Not drift.** Sub-tasks that serve the task: their names come from what was seen. Following an error. A change of
//! direction that is announced, or asked for by the user.
//!
//! **State.** A filter for names, how close the run has been to its task, and one sum. Cost per step: its own text.
//!
//! **Blind spots.** Nothing is said without a task. Drift within the same files, or to another case of the same kind.

use super::{Monitor, MonitorSpec, ProfileWeights, Sign, Suite};
use crate::act::Kind;
use crate::evidence::Evidence;
use crate::facts::Facts;
use crate::scene::{Scene, note_names, unknown_names};
use crate::seen::SeenOnce;
use crate::step::{Step, StepIndex};
use crate::text::{head, is_blank};

pub(super) static SPEC: MonitorSpec = MonitorSpec {
    id: "silent_topic_drift",
    suite: Suite::Semantic,
    summary: "What is done moves away from the task without saying so.",
    fire_at: super::DEFAULT_FIRE_THRESHOLD,
    failure_type: "topic_drift",
    weights: ProfileWeights { coding: 0.10, pr_review: 0.10, qa: 0.25 },
    build: |_| Box::new(SilentTopicDrift::default()),
    advice,
};

/// Steps that belong, and were shown something, before the run has a direction of its own.
const BELONGING_MIN: u32 = 3;
/// An answer with this many names shows something.
const SHOWN_MIN: u32 = 2;
/// After a new direction was asked for or announced, this many more.
const NEW_DIRECTION: u32 = 6;
/// A smaller share of known names makes a step foreign, a larger one makes it belong.
const KNOWN_SHARE: f64 = 0.55;
/// From this share on, a step teaches names even when it is off the task.
const TEACHES_SHARE: f64 = 0.65;
/// Closer to the task than this is never off it, whatever the run was.
const NEVER_ON: f64 = 0.20;
/// How much of the distance from the task counts.
const DISTANCE_WEIGHT: f64 = 0.5;
const DISTANCE_MAX: f64 = 0.3;
/// A step that belongs wears this much off.
const WEARS_OFF: f64 = 0.3;
/// A sum of this reads 0.6.
const FOREIGN_FULL: f64 = 0.95;
/// A look aside is no drift: before this many steps the reading stays below the threshold.
const STEPS_MIN: u32 = 4;
const UNSURE: f64 = 0.55;
/// The usual closeness to the task follows the last this many steps.
const USUAL_STEPS: u32 = 8;
/// A step with fewer names tells nothing.
const NAMES_MIN: u32 = 2;
/// A step with this many counts in full; names in what is done count twice.
const NAMES_FULL: f64 = 16.0;
/// Thought and argument are read this far for names.
const NAMES_CHARS: usize = 1_500;

#[derive(Default)]
struct SilentTopicDrift {
    known: SeenOnce,
    begun: bool,
    belonging: u32,
    taught: u32,
    /// More of them are needed after a change of direction that was asked for or announced.
    unknown_ground: u32,
    /// How close to the task steps that belong have been.
    usual: f64,
    foreign: f64,
    steps: u32,
    first: StepIndex,
}

impl Monitor for SilentTopicDrift {
    fn observe(&mut self, at: StepIndex, facts: &Facts<'_>) -> Sign {
        let Some((scene, past)) = facts.scene else { return Sign::none() };
        let Some(on_task) = scene.on_task else { return Sign::none() };
        let step = &facts.step;
        if !std::mem::replace(&mut self.begun, true) {
            note_names(&mut self.known, past.task());
        }
        if !is_blank(step.user_input) || announces(step.thought) {
            note_names(&mut self.known, step.user_input);
            self.foreign = 0.0;
            self.belonging = 0;
            self.unknown_ground = NEW_DIRECTION; // to be learned anew
            self.teach(step, scene, on_task);
        } else if scene.act.kind != Kind::Think {
            self.judge(at, step, scene, on_task);
        }
        let most = if self.steps < STEPS_MIN { UNSURE } else { 1.0 };
        let score = (0.6 * self.foreign / FOREIGN_FULL).min(most);
        Sign::new(score, || Evidence::new("off_task", self.steps).at([self.first, at]))
    }

    fn advised(&mut self, _: StepIndex) {
        self.foreign = 0.0;
        self.steps = 0;
    }

    fn heap_bytes(&self) -> usize {
        self.known.heap_bytes()
    }
}

impl SilentTopicDrift {
    fn judge(&mut self, at: StepIndex, step: &Step<'_>, scene: &Scene, on_task: f64) {
        let input = step.action.map_or("", |action| action.input.text());
        let counted =
            [input, step.thought].map(|text| unknown_names(head(text, NAMES_CHARS), &self.known));
        // What is done counts twice as much as what is said about it.
        let [(unknown_done, done), (unknown_said, said)] = counted;
        let (unknown, all) = (2 * unknown_done + unknown_said, 2 * done + said);
        if all < NAMES_MIN {
            if self.foreign == 0.0 {
                self.teach(step, scene, on_task);
            }
            return;
        }
        let share = 1.0 - f64::from(unknown) / f64::from(all);
        // A step with few names says little either way.
        let weight = (f64::from(all) / NAMES_FULL).min(1.0);
        let off = on_task < self.usual || on_task < NEVER_ON;
        if self.belonging >= BELONGING_MIN + self.unknown_ground {
            let distance = (self.usual - on_task).clamp(-DISTANCE_MAX, DISTANCE_MAX);
            let foreign =
                if off { KNOWN_SHARE - share + DISTANCE_WEIGHT * distance } else { -WEARS_OFF };
            if self.foreign == 0.0 && foreign > 0.0 {
                (self.first, self.steps) = (at, 0);
            }
            self.foreign = (self.foreign + foreign).max(0.0);
            self.steps = self.steps.saturating_add(1);
        }
        if self.belonging < BELONGING_MIN + self.unknown_ground
            || share >= TEACHES_SHARE
            || !off
            || weight < 1.0
        {
            self.teach(step, scene, on_task);
        }
    }

    /// The step belongs: what it names is known from now on.
    fn teach(&mut self, step: &Step<'_>, scene: &Scene, on_task: f64) {
        let input = step.action.map_or("", |action| action.input.text());
        for text in [step.thought, input, step.observation] {
            note_names(&mut self.known, text);
        }
        self.taught = self.taught.saturating_add(1);
        // A run that was shown little has no ground of its own yet.
        let (_, shown) = unknown_names(head(step.observation, NAMES_CHARS), &self.known);
        self.belonging =
            self.belonging.saturating_add(u32::from(shown >= SHOWN_MIN && !scene.found_nothing));
        let share = 1.0 / f64::from(self.taught.min(USUAL_STEPS));
        self.usual += share * (on_task - self.usual);
    }
}

/// The change of direction is said aloud.
fn announces(thought: &str) -> bool {
    const SIGNS: [&str; 10] = [
        "switching to",
        "switch to",
        "moving on to",
        "move on to",
        "instead of the task",
        "a detour",
        "before going on",
        "put this aside",
        "set this aside",
        "unrelated",
    ];
    let low = head(thought, 600).to_lowercase();
    SIGNS.iter().any(|sign| low.contains(sign))
}

fn advice(seen: &Evidence) -> String {
    let (count, span) = (seen.count, seen.span_in_words());
    if seen.goes_on() {
        return format!(
            "the work has left the task again after an earlier notice: the last {count} steps ({span}) share little with it or \
             with what was done for it. What comes of them will probably not be wanted. Ways out: read the task once more and \
             take its next open point, or say that the aim has changed and why."
        );
    }
    format!(
        "the last {count} steps ({span}) have little to do with the task or with what was done before, and nothing said why. If \
         this serves the task, a word on how would help; otherwise it may be time to go back to it."
    )
}
