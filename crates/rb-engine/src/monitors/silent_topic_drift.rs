//! `silent_topic_drift`: the actions leave the task without an announcement.
//!
//! **Rule.** Names in a step usually come from the task, the user, or earlier steps. Evidence for drift are names of
//! unknown origin, with a higher weight in the action than in the thought or the result. Evidence against drift are
//! names of the task, and similarity to the task and to earlier steps on the task, absolute and relative to the run so
//! far. The sum over steps never falls below zero. While it is positive, the names of the steps are quarantined, so
//! that they do not make the next step familiar. At zero they are added to the known names.
//!
//! **Fires at** 0.6: four or more steps with evidence of at least 2.5 in total.
//!
//! **Not drift.** Subtasks: their names come from earlier results, or the step still mentions the task. New names in a
//! written file count only by their share. Analysing an error. An announced change of direction, or one requested by
//! the user. Thoughts, messages and submissions.
//!
//! **State.** Filters for known and quarantined names, the names of the task, a vector, and a few numbers. Cost per
//! step: the size of its texts.
//!
//! **Blind spots.** Runs without a task, and the first steps of a run. Drift among things already seen; a detour of one
//! or two steps; a similar case whose names are all numbers.

use super::{Monitor, MonitorSpec, Signal, Suite};
use crate::analysis::action::Kind;
use crate::analysis::embedding::Vector;
use crate::analysis::features::StepFeatures;
use crate::analysis::history::{NAMES_BYTES_MAX, StepContext, installs_package};
use crate::analysis::identifiers::{KnownIdentifiers, Mentions, StepSet};
use crate::analysis::phrases::Cue;
use crate::analysis::recency_filter::RecencyFilter;
use crate::analysis::text::is_blank;
use crate::evidence::Evidence;
use crate::step::{Step, StepIndex};

pub(super) static SPEC: MonitorSpec = MonitorSpec {
    id: "silent_topic_drift",
    suite: Suite::Semantic,
    summary: "What is done moves away from the task without saying so.",
    fire_at: super::DEFAULT_FIRE_THRESHOLD,
    failure_type: "topic_drift",
    build: |_| Box::new(SilentTopicDrift::default()),
    advice,
};

/// Number of steps on the task with a result before drift is measured.
const PRODUCTIVE_STEPS_MIN: u32 = 3;
/// Number of steps that count as on the task after a new direction was requested or announced.
const GRACE_STEPS: u32 = 6;
/// Evidence that scores 0.6.
const DRIFT_FULL: f64 = 2.5;
/// Maximum evidence, so that a run that returns to the task recovers soon.
const DRIFT_MAX: f64 = 5.0;
/// Maximum evidence of one step, for or against.
const STEP_MAX: f64 = 2.5;
/// Number of steps before which the score is limited to [`EARLY_SCORE_MAX`].
const STEPS_MIN: u32 = 4;
const EARLY_SCORE_MAX: f64 = 0.2;
/// Number of steps over which the usual similarity is averaged.
const USUAL_STEPS: u32 = 8;
/// Share by which each step on the task moves the direction of the run.
const DIRECTION_SHARE: f32 = 0.12;
/// Maximum effect of a number of names.
const COUNT_EFFECT_MAX: f64 = 2.3;
/// Maximum effect of a deviation from the usual similarity.
const DEVIATION_MAX: f64 = 0.3;
/// Bytes of thought and argument, and of the result, in which names are searched.
const NAMES_BYTES: usize = 1_500;
const ANSWER_BYTES: usize = NAMES_BYTES_MAX;

/// Weights of the evidence. Fitted to the steps of two thirds of the tasks of four types of agents, own steps against
/// injected ones, then rounded. The limits per step were added later without another fit. In an earlier form, leaving
/// out one type of agent changed single weights by up to half, but no sign.
mod weight {
    /// For drift: share of unknown names in the action, the thought and the result.
    pub(super) const ARGUMENT_SHARE: f64 = 3.3;
    pub(super) const THOUGHT_SHARE: f64 = 0.6;
    pub(super) const RESULT_SHARE: f64 = 1.0;
    /// For drift: number of unknown names.
    pub(super) const ARGUMENT_COUNT: f64 = 1.1;
    pub(super) const THOUGHT_COUNT: f64 = 1.4;
    /// Against drift: requested names in the action or the thought, and in the result.
    pub(super) const REQUESTED: f64 = 1.5;
    pub(super) const REQUESTED_RESULT: f64 = 1.0;
    /// Against drift: similarity to the task and to earlier steps on the task.
    pub(super) const TASK: f64 = 2.0;
    pub(super) const DIRECTION: f64 = 1.5;
    /// Against drift: constant.
    pub(super) const CONSTANT: f64 = 1.0;
}

#[derive(Default)]
struct SilentTopicDrift {
    known: KnownIdentifiers,
    /// Names of the steps while the evidence is positive.
    quarantined: RecencyFilter,
    started: bool,
    on_task_steps: u32,
    /// Steps on the task that had a result.
    productive_steps: u32,
    /// Remaining steps that count as on the task without a check.
    grace_steps: u32,
    /// Usual similarity of steps on the task.
    usual: Similarity,
    /// Average direction of the steps on the task.
    direction: Option<Vector>,
    drift: f64,
    steps: u32,
    first: StepIndex,
}

/// Similarity of a step to the task and to the direction of the run.
#[derive(Debug, Clone, Copy, Default)]
struct Similarity {
    task: f64,
    direction: f64,
}

/// Names in the three texts of a step.
struct StepMentions {
    argument: Mentions,
    thought: Mentions,
    result: Mentions,
}

impl Monitor for SilentTopicDrift {
    fn observe(&mut self, at: StepIndex, features: &StepFeatures<'_>) -> Signal {
        let Some((context, past)) = features.context else { return Signal::none() };
        let Some(on_task) = context.on_task else { return Signal::none() };
        let step = &features.step;
        if !std::mem::replace(&mut self.started, true) {
            self.known.add_requested(past.task());
        }
        if !is_blank(step.user_input) || features.thought.cues.has(Cue::NewDirection) {
            self.known.add_requested(start_of(step.user_input, NAMES_BYTES));
            self.grace_steps = GRACE_STEPS;
        }
        let similarity = Similarity {
            task: on_task,
            direction: self
                .direction
                .as_ref()
                .map_or(0.0, |direction| context.similarity_to(direction)),
        };
        let mentions = self.mentions(step);
        let evidence = match context.action.kind {
            // A requested change of direction is not drift, and neither is the start of a run.
            _ if self.grace_steps > 0 || self.productive_steps < PRODUCTIVE_STEPS_MIN => {
                -STEP_MAX - DRIFT_MAX
            }
            Kind::Think | Kind::Message | Kind::Finish => 0.0,
            Kind::Edit
            | Kind::Change
            | Kind::Test
            | Kind::Run
            | Kind::Search
            | Kind::Read
            | Kind::Poll => self.evidence(context, &mentions, similarity),
        };
        self.grace_steps = self.grace_steps.saturating_sub(1);
        self.accumulate(at, evidence);
        self.record(context, &mentions, similarity);
        let most = if self.steps < STEPS_MIN { EARLY_SCORE_MAX } else { 1.0 };
        let score = (0.6 * self.drift / DRIFT_FULL).min(most);
        Signal::new(score, || Evidence::new("off_task", self.steps).at([self.first, at]))
    }

    fn advised(&mut self, _: StepIndex) {
        self.drift = 0.0;
        self.steps = 0;
    }

    fn heap_bytes(&self) -> usize {
        let direction = self
            .direction
            .as_ref()
            .map_or(0, |_| crate::analysis::embedding::DIMS * size_of::<f32>());
        self.known.heap_bytes() + self.quarantined.heap_bytes() + direction
    }
}

impl SilentTopicDrift {
    fn mentions(&self, step: &Step<'_>) -> StepMentions {
        let mentions = |text: &str, bytes: usize, seen: &mut StepSet| {
            Mentions::of(start_of(text, bytes), &self.known, seen)
        };
        let input = step.action.map_or("", |action| action.input.text());
        // Names in the argument do not count again in the result.
        let mut seen = StepSet::default();
        StepMentions {
            argument: mentions(input, NAMES_BYTES, &mut seen),
            result: mentions(step.observation, ANSWER_BYTES, &mut seen),
            thought: mentions(step.thought, NAMES_BYTES, &mut StepSet::default()),
        }
    }

    /// Returns the evidence: positive for drift, negative against it.
    fn evidence(
        &self,
        context: &StepContext,
        mentions: &StepMentions,
        similarity: Similarity,
    ) -> f64 {
        let StepMentions { argument, thought, result } = mentions;
        let new_names =
            if context.action.kind == Kind::Edit { 0.0 } else { damped(argument.unknown) };
        // Error messages use a different vocabulary.
        let result_share = if context.action.outcome.failed { 0.0 } else { result.unknown_share() };
        let relative =
            |now: f64, usual: f64| now + (now - usual).clamp(-DEVIATION_MAX, DEVIATION_MAX);
        let drift = weight::ARGUMENT_SHARE * argument.unknown_share()
            + weight::THOUGHT_SHARE * thought.unknown_share()
            + weight::RESULT_SHARE * result_share
            + weight::ARGUMENT_COUNT * new_names
            + weight::THOUGHT_COUNT * damped(thought.unknown);
        let against = weight::REQUESTED * damped(f64::from(argument.requested + thought.requested))
            + weight::REQUESTED_RESULT * damped(f64::from(result.requested))
            + weight::TASK * relative(similarity.task, self.usual.task)
            + weight::DIRECTION * relative(similarity.direction, self.usual.direction);
        // Turning a page introduces nothing new, and neither does following a known name, installing a package, or
        // repeating a request.
        let follows =
            argument.is_derived() || installs_package(&context.action) || context.asked_before;
        let introduces_names = argument.unknown + thought.unknown > 0.0 && !follows;
        let most = if introduces_names { STEP_MAX } else { 0.0 };
        (drift - against - weight::CONSTANT).clamp(-STEP_MAX, most)
    }

    fn accumulate(&mut self, at: StepIndex, evidence: f64) {
        if self.drift == 0.0 && evidence > 0.0 {
            (self.first, self.steps) = (at, 0);
        }
        self.drift = (self.drift + evidence).clamp(0.0, DRIFT_MAX);
        self.steps = if self.drift > 0.0 { self.steps.saturating_add(1) } else { 0 };
    }

    /// Adds the names of a step on the task to the known names, and quarantines others.
    fn record(&mut self, context: &StepContext, mentions: &StepMentions, similarity: Similarity) {
        let StepMentions { argument, thought, result } = mentions;
        // Names in a reply were not introduced by the agent.
        if context.action.kind == Kind::Message {
            self.known.add(&result.hashes);
        }
        if self.drift > 0.0 {
            for hash in [argument, thought, result].into_iter().flat_map(|text| &text.hashes) {
                self.quarantined.insert(*hash);
            }
            return;
        }
        self.known.add_all(&mut self.quarantined);
        for text in [argument, thought, result] {
            self.known.add(&text.hashes);
        }
        self.on_task_steps = self.on_task_steps.saturating_add(1);
        self.productive_steps =
            self.productive_steps.saturating_add(u32::from(!context.found_nothing));
        let steps = self.on_task_steps.min(USUAL_STEPS);
        let share = 1.0 / f64::from(steps);
        self.usual.task += share * (similarity.task - self.usual.task);
        self.usual.direction += share * (similarity.direction - self.usual.direction);
        let direction = self.direction.get_or_insert_with(Vector::zero);
        for vector in [Some(&context.meaning), context.thought.as_ref()].into_iter().flatten() {
            if !vector.is_zero() {
                direction.lerp(vector, DIRECTION_SHARE);
            }
        }
    }
}

/// Damps a number of names, so that each further one has less effect.
fn damped(names: f64) -> f64 {
    (0.75 * names.sqrt()).min(COUNT_EFFECT_MAX)
}

/// Returns the start of a text.
fn start_of(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn advice(seen: &Evidence) -> String {
    let (count, span) = (seen.count, seen.span_in_words());
    if seen.is_repeated() {
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
