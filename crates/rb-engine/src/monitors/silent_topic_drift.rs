//! `silent_topic_drift`: what is done moves away from the task without saying so.
//!
//! **Rule.** A step is adrift when it is unlike the task, unlike the run so far, and names nothing that the task, the user
//! or an answer has mentioned. Four such steps in a row read 0.65, unless a thought announces the change.
//!
//! **Fires at** 0.6.
//!
//! **Not drift.** Sub-tasks that serve the task: their names come from what was seen. Following an error. A change of
//! direction that is announced, or asked for by the user.
//!
//! **State.** The direction of the run and one counter. Cost per step: constant.
//!
//! **Blind spots.** Without a task only the run itself is compared. Drift within the same files.

use super::{Monitor, MonitorSpec, ProfileWeights, Sign, Suite};
use crate::act::Kind;
use crate::evidence::Evidence;
use crate::facts::Facts;
use crate::meaning::Vector;
use crate::scene::Scene;
use crate::step::StepIndex;
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

/// The run has a direction of its own after this many steps.
const STEPS_BEFORE: u32 = 4;
/// Less alike than this to the task, and to the run, is elsewhere.
const OFF_TASK: f64 = 0.30;
const OFF_RUN: f64 = 0.45;
/// A larger share of known names follows from what was seen.
const FAMILIAR: f64 = 0.34;
/// How quickly the direction of the run follows its steps.
const FOLLOW: f32 = 0.15;
/// By how many adrift steps in a row.
const SCORES: [f64; 7] = [0.0, 0.10, 0.25, 0.45, 0.65, 0.85, 1.0];

#[derive(Default)]
struct SilentTopicDrift {
    direction: Option<Vector>,
    steps: u32,
    adrift: u32,
    first: StepIndex,
}

impl Monitor for SilentTopicDrift {
    fn observe(&mut self, at: StepIndex, facts: &Facts<'_>) -> Sign {
        let Some((scene, _)) = facts.scene else { return Sign::none() };
        if !is_blank(facts.step.user_input) || announces(facts.step.thought) {
            *self = Self::default();
        }
        // A step that names nothing tells nothing about where the run is going.
        let names = scene.familiar.is_some() || scene.act.kind == Kind::Message;
        let counts =
            names && !matches!(scene.act.kind, Kind::Think | Kind::Finish) && !scene.act.poll;
        if counts && self.is_adrift(scene) {
            if self.adrift == 0 {
                self.first = at;
            }
            self.adrift = self.adrift.saturating_add(1);
        } else if counts {
            self.adrift = 0;
            self.follow(scene);
        }
        self.steps = self.steps.saturating_add(1);
        let score = SCORES.get(self.adrift as usize).or(SCORES.last()).copied().unwrap_or(0.0);
        Sign::new(score, || Evidence::new("off_task", self.adrift).at([self.first, at]))
    }

    fn advised(&mut self, _: StepIndex) {
        self.adrift = 0;
    }

    fn heap_bytes(&self) -> usize {
        self.direction.as_ref().map_or(0, |_| crate::meaning::DIMS * size_of::<f32>())
    }
}

impl SilentTopicDrift {
    fn is_adrift(&self, scene: &Scene) -> bool {
        let Some(direction) = self.direction.as_ref().filter(|_| self.steps >= STEPS_BEFORE) else {
            return false;
        };
        let thinks = scene.thought.as_ref().map_or(0.0, |thought| thought.cosine(direction));
        let off_run = scene.meaning.cosine(direction).max(thinks) < OFF_RUN;
        let off_task = scene.on_task.is_none_or(|near| near < OFF_TASK);
        let unknown = scene.familiar.is_some_and(|known| known < FAMILIAR);
        off_run && off_task && unknown && !scene.meaning.is_zero()
    }

    fn follow(&mut self, scene: &Scene) {
        for step in [Some(&scene.meaning), scene.thought.as_ref()]
            .into_iter()
            .flatten()
            .filter(|step| !step.is_zero())
        {
            match &mut self.direction {
                Some(direction) => direction.move_towards(step, FOLLOW),
                None => self.direction = Some(step.clone()),
            }
        }
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
    format!(
        "the last {} steps ({}) have little to do with the task or with what was done before, and nothing said why. If this \
         serves the task, a word on how would help; otherwise it may be time to go back to it.",
        seen.count,
        seen.span_in_words()
    )
}
