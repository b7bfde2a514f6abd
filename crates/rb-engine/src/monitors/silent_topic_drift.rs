//! `silent_topic_drift`: what is done moves away from the task without saying so.
//!
//! **Rule.** What a step names comes from somewhere: from the task, from the user, from what was seen or done before. A step
//! speaks for drift by the names that come from nowhere, in what is done more than in what is said or answered; it speaks
//! against drift by the names of the task, and by being close in meaning to the task and to the steps that belonged, in
//! itself and as compared with the run so far. The sum over steps never falls below zero. While it is above, what the
//! steps bring up is set aside: it does not make the next one familiar. Back at zero, it all belonged and is learned.
//!
//! **Fires at** 0.6: four or more steps whose evidence adds up to 2.5.
//!
//! **Not drift.** Sub-tasks that serve the task: their names come from what was seen, or the step still speaks of the task.
//! New names in a file that is written: they are made up, and count only by their share. Following an error. A change of
//! direction that is announced, or asked for by the user. What is thought or handed in; the reply of whom it is said to.
//!
//! **State.** Filters for the names known and set aside, the names of the task, a direction, and a few numbers. Cost per
//! step: its own text.
//!
//! **Blind spots.** Nothing is said without a task, nor before the run has found something. Drift among things already seen; a detour of
//! one or two steps; another case of the same kind whose names are all numbers.

use super::{Monitor, MonitorSpec, ProfileWeights, Signal, Suite};
use crate::analysis::action::Kind;
use crate::analysis::embedding::Vector;
use crate::analysis::features::StepFeatures;
use crate::analysis::history::{NAMES_BYTES_MAX, Names, StepContext, installs};
use crate::analysis::identifiers::{KnownIdentifiers, Mentions, Name, StepSet, names_within};
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
    weights: ProfileWeights { coding: 0.10, pr_review: 0.10, qa: 0.25 },
    build: |_| Box::new(SilentTopicDrift::default()),
    advice,
};

/// Steps that belong, and did not come back with nothing, before the run has a direction of its own.
const GROUND_MIN: u32 = 3;
/// So many steps belong unseen after a new direction was asked for or announced.
const NEW_DIRECTION: u32 = 6;
/// Evidence of this much reads 0.6.
const FOREIGN_FULL: f64 = 2.5;
/// More is not kept, so that a run that comes back is soon believed.
const FOREIGN_MAX: f64 = 5.0;
/// One step says no more than this, either way.
const STEP_MAX: f64 = 2.5;
/// A look aside is no drift: before this many steps the reading stays below the threshold.
const STEPS_MIN: u32 = 4;
const UNSURE: f64 = 0.2;
/// The usual closeness follows about so many steps.
const USUAL_STEPS: u32 = 8;
/// Every step that belongs turns the way by this share.
const WAY_SHARE: f32 = 0.12;
/// More names say no more.
const MUCH_MAX: f64 = 2.3;
/// Nothing counts for more than so much further from, or closer than, the run has been.
const DISTANCE_MAX: f64 = 0.3;
/// Thought and argument are read this far for names, and so far the answer.
const NAMES_BYTES: usize = 1_500;
const ANSWER_BYTES: usize = NAMES_BYTES_MAX;

/// How much each part of the evidence weighs. Fitted to the steps of two thirds of the tasks of four kinds of agents, own
/// against planted, then rounded. The caps on a single step came later, without another fit. In an earlier form, leaving
/// one kind of agent out kept every sign but changed single weights by up to half.
mod weight {
    /// Speaks for drift: the share of unknown names in what is done, said and answered.
    pub(super) const DONE_SHARE: f64 = 3.3;
    pub(super) const SAID_SHARE: f64 = 0.6;
    pub(super) const ANSWER_SHARE: f64 = 1.0;
    /// And how many there are.
    pub(super) const DONE: f64 = 1.1;
    pub(super) const SAID: f64 = 1.4;
    /// Speaks against it: names that were asked for, in what is done or said, and in the answer.
    pub(super) const ASKED: f64 = 1.5;
    pub(super) const ASKED_ANSWER: f64 = 1.0;
    /// Closeness to the task, and to the steps that belonged.
    pub(super) const TASK: f64 = 2.0;
    pub(super) const WAY: f64 = 1.5;
    /// A step of which nothing is known belongs.
    pub(super) const BELONGS: f64 = 1.0;
}

#[derive(Default)]
struct SilentTopicDrift {
    known: KnownIdentifiers,
    /// What steps named while the evidence was above zero.
    aside: RecencyFilter,
    begun: bool,
    belonging: u32,
    /// Those among them that did not come back with nothing.
    ground: u32,
    /// Steps that still belong unseen.
    unseen: u32,
    /// How close to the task, and to one another, steps that belong have been.
    usual: Closeness,
    /// Where the steps that belonged went.
    way: Option<Vector>,
    foreign: f64,
    steps: u32,
    first: StepIndex,
}

/// How close a step is to the task and to the way so far.
#[derive(Debug, Clone, Copy, Default)]
struct Closeness {
    task: f64,
    way: f64,
}

/// The names in the three texts of a step.
struct Named {
    done: Mentions,
    said: Mentions,
    answered: Mentions,
}

impl Monitor for SilentTopicDrift {
    fn observe(&mut self, at: StepIndex, facts: &StepFeatures<'_>) -> Signal {
        let Some((scene, past)) = facts.scene else { return Signal::none() };
        let Some(on_task) = scene.on_task else { return Signal::none() };
        let step = &facts.step;
        if !std::mem::replace(&mut self.begun, true) {
            self.known.ask(past.task());
        }
        if !is_blank(step.user_input) || facts.thought.cues.has(Cue::NewDirection) {
            self.known.ask(begin(step.user_input, NAMES_BYTES));
            self.unseen = NEW_DIRECTION;
        }
        let close = Closeness {
            task: on_task,
            way: self.way.as_ref().map_or(0.0, |way| scene.closeness(way)),
        };
        let named = self.named(step, &scene.names);
        let evidence = match scene.act.kind {
            // Whoever asks for something else is not drifting, and neither is a run that begins.
            _ if self.unseen > 0 || self.ground < GROUND_MIN => -STEP_MAX - FOREIGN_MAX,
            Kind::Think | Kind::Message | Kind::Finish => 0.0,
            Kind::Edit
            | Kind::Change
            | Kind::Test
            | Kind::Run
            | Kind::Search
            | Kind::Read
            | Kind::Poll => self.evidence(scene, &named, close),
        };
        self.unseen = self.unseen.saturating_sub(1);
        self.weigh(at, evidence);
        self.keep(scene, &named, close);
        let most = if self.steps < STEPS_MIN { UNSURE } else { 1.0 };
        let score = (0.6 * self.foreign / FOREIGN_FULL).min(most);
        Signal::new(score, || Evidence::new("off_task", self.steps).at([self.first, at]))
    }

    fn advised(&mut self, _: StepIndex) {
        self.foreign = 0.0;
        self.steps = 0;
    }

    fn heap_bytes(&self) -> usize {
        let way =
            self.way.as_ref().map_or(0, |_| crate::analysis::embedding::DIMS * size_of::<f32>());
        self.known.heap_bytes() + self.aside.heap_bytes() + way
    }
}

impl SilentTopicDrift {
    fn named(&self, step: &Step<'_>, names: &Names) -> Named {
        let mentions = |text: &str, bytes: usize, names: &[Name], once: &mut StepSet| {
            let text = begin(text, bytes);
            Mentions::of(text, &names_within(names, text), &self.known, once)
        };
        let input = step.action.map_or("", |action| action.input.text());
        // An answer that only repeats the question tells nothing.
        let mut once = StepSet::default();
        Named {
            done: mentions(input, NAMES_BYTES, &names.done, &mut once),
            answered: mentions(step.observation, ANSWER_BYTES, &names.answered, &mut once),
            said: mentions(step.thought, NAMES_BYTES, &names.said, &mut StepSet::default()),
        }
    }

    /// Above zero speaks for drift, below against it.
    fn evidence(&self, scene: &StepContext, named: &Named, close: Closeness) -> f64 {
        let Named { done, said, answered } = named;
        let made_up = if scene.act.kind == Kind::Edit { 0.0 } else { much(done.unknown) };
        // An error speaks its own language.
        let answer_share = if scene.act.outcome.failed { 0.0 } else { answered.unknown_share() };
        let relative =
            |now: f64, usual: f64| now + (now - usual).clamp(-DISTANCE_MAX, DISTANCE_MAX);
        let foreign = weight::DONE_SHARE * done.unknown_share()
            + weight::SAID_SHARE * said.unknown_share()
            + weight::ANSWER_SHARE * answer_share
            + weight::DONE * made_up
            + weight::SAID * much(said.unknown);
        let own = weight::ASKED * much(f64::from(done.asked + said.asked))
            + weight::ASKED_ANSWER * much(f64::from(answered.asked))
            + weight::TASK * relative(close.task, self.usual.task)
            + weight::WAY * relative(close.way, self.usual.way);
        // Who turns a page brings nothing up, whatever is on it; neither does who follows a name that was shown,
        // installs what is missing, or asks the same again.
        let follows = done.is_derived() || installs(&scene.act) || scene.asked_before;
        let brings_up = done.unknown + said.unknown > 0.0 && !follows;
        let most = if brings_up { STEP_MAX } else { 0.0 };
        (foreign - own - weight::BELONGS).clamp(-STEP_MAX, most)
    }

    fn weigh(&mut self, at: StepIndex, evidence: f64) {
        if self.foreign == 0.0 && evidence > 0.0 {
            (self.first, self.steps) = (at, 0);
        }
        self.foreign = (self.foreign + evidence).clamp(0.0, FOREIGN_MAX);
        self.steps = if self.foreign > 0.0 { self.steps.saturating_add(1) } else { 0 };
    }

    /// What the step names is learned if it belongs, and set aside otherwise.
    fn keep(&mut self, scene: &StepContext, named: &Named, close: Closeness) {
        let Named { done, said, answered } = named;
        // What somebody replies is nothing the agent brought up.
        if scene.act.kind == Kind::Message {
            self.known.learn(&answered.prints);
        }
        if self.foreign > 0.0 {
            for print in [done, said, answered].into_iter().flat_map(|text| &text.prints) {
                self.aside.insert(*print);
            }
            return;
        }
        self.known.learn_all(&mut self.aside);
        for text in [done, said, answered] {
            self.known.learn(&text.prints);
        }
        self.belonging = self.belonging.saturating_add(1);
        self.ground = self.ground.saturating_add(u32::from(!scene.found_nothing));
        let steps = self.belonging.min(USUAL_STEPS);
        let share = 1.0 / f64::from(steps);
        self.usual.task += share * (close.task - self.usual.task);
        self.usual.way += share * (close.way - self.usual.way);
        let way = self.way.get_or_insert_with(Vector::zero);
        for direction in [Some(&scene.meaning), scene.thought.as_ref()].into_iter().flatten() {
            if !direction.is_zero() {
                way.lerp(direction, WAY_SHARE);
            }
        }
    }
}

/// A number of names, so that the tenth says less than the first.
fn much(names: f64) -> f64 {
    (0.75 * names.sqrt()).min(MUCH_MAX)
}

/// The beginning of a text.
fn begin(text: &str, bytes: usize) -> &str {
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
