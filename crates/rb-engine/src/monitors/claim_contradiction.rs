//! `claim_contradiction`: a claim of the agent contradicts an earlier claim or observation.
//!
//! **Rule.** The agent claims that the tests pass although the latest test run failed. It claims that something is
//! missing that it has read, with nothing removed since. It gives a different final answer, or states the opposite of
//! an earlier statement, with no new information in between. Otherwise a small score grows with the number of
//! self-corrections.
//!
//! **Fires at** 0.6.
//!
//! **Not a contradiction.** Revising a belief after new evidence; a variable that changes its value; a plan, a
//! question, a supposition.
//!
//! **State.** The latest test run, the last `STATEMENTS_MAX` statements as fingerprints, filters for things that were
//! read.
//!
//! **Blind spots.** Contradictions in different wordings; claims about anything but tests, files and answers.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::{Monitor, MonitorSpec, Signal, Suite};
use crate::analysis::action::Kind;
use crate::analysis::claims;
use crate::analysis::features::StepFeatures;
use crate::analysis::history::StepContext;
use crate::analysis::phrases::CueSet;
use crate::analysis::recency_filter::RecencyFilter;
use crate::analysis::sentences::Sentences;
use crate::analysis::text::{fingerprint, is_blank, prefix};
use crate::evidence::Evidence;
use crate::step::StepIndex;

pub(super) static SPEC: MonitorSpec = MonitorSpec {
    id: "claim_contradiction",
    suite: Suite::Semantic,
    summary: "What the agent says contradicts what it said or saw.",
    fire_at: super::DEFAULT_FIRE_THRESHOLD,
    failure_type: "contradiction",
    build: |_| Box::new(ClaimContradiction::default()),
    advice,
};

/// Maximum number of stored statements.
const STATEMENTS_MAX: usize = 64;
/// Maximum of the small score, below the threshold.
const CORRECTIONS_SCORE_MAX: f64 = 0.50;
/// Number of steps without corrections that are added to the actual ones.
const CALM_STEPS: f64 = 10.0;
/// Number of steps for which a contradiction is reported.
const REPORTED_STEPS: u32 = 3;

#[derive(Default)]
struct ClaimContradiction {
    steps: f64,
    corrections: f64,
    /// The latest test run, if it failed and nothing was changed since.
    failing: Option<StepIndex>,
    /// Names of things that were requested and found, and of those that were later not found.
    found_things: RecencyFilter,
    missing_things: RecencyFilter,
    statements: VecDeque<Statement>,
    /// Number of steps so far that showed something new.
    informative_steps: u32,
    found: Option<(StepIndex, f64, Evidence)>,
}

struct Statement {
    at: StepIndex,
    subject: u64,
    says: Cow<'static, str>,
    informative_steps: u32,
}

impl Monitor for ClaimContradiction {
    fn observe(&mut self, at: StepIndex, features: &StepFeatures<'_>) -> Signal {
        let Some((context, _)) = features.context else { return Signal::none() };
        let thought = features.step.thought;
        self.steps += 1.0;
        self.corrections += f64::from(
            claims::corrections(features.lowercased.lower(), features.thought.cues).min(4),
        );
        if !is_blank(features.step.user_input) {
            self.informative_steps = self.informative_steps.saturating_add(1);
        }
        // Claims are compared with the observations before this step.
        let sentences = Sentences::of(thought);
        let new = self
            .check_tests(at, thought, &sentences)
            .or_else(|| self.check_things(at, &sentences, features.thought.cues));
        let new = new.or_else(|| self.check_statements(at, &sentences));
        if let Some((score, evidence)) = new {
            self.found = Some((at, score, evidence));
        }
        let input = features.step.action.map_or("", |action| action.input.text());
        self.record(at, context, input);
        if self.found.as_ref().is_some_and(|(since, ..)| at.0 - since.0 >= REPORTED_STEPS) {
            self.found = None;
        }
        let correcting =
            (0.6 * self.corrections / (self.steps + CALM_STEPS)).min(CORRECTIONS_SCORE_MAX);
        match &self.found {
            Some((_, score, evidence)) => Signal::new(*score, || evidence.clone()),
            None => Signal::new(correcting, || Evidence::new("corrects_itself", 1).at([at])),
        }
    }

    fn advised(&mut self, _: StepIndex) {
        self.found = None;
    }

    fn heap_bytes(&self) -> usize {
        self.found_things.heap_bytes()
            + self.missing_things.heap_bytes()
            + self.statements.capacity() * (size_of::<Statement>() + 24)
    }
}

impl ClaimContradiction {
    fn record(&mut self, at: StepIndex, context: &StepContext, input: &str) {
        let action = &context.action;
        self.record_tests(at, context);
        let answered = !action.outcome.failed && !context.found_nothing && !action.outcome.is_empty;
        let reads = action.kind.is_look() || action.kind == Kind::Run;
        if reads && (answered || context.found_nothing || action.outcome.failed) {
            let names = if answered { &mut self.found_things } else { &mut self.missing_things };
            each_thing(input, |thing| {
                names.insert(thing);
            });
        }
        if !action.removes.is_empty() {
            self.found_things = RecencyFilter::default();
        }
        self.informative_steps =
            self.informative_steps.saturating_add(u32::from(context.has_new_information()));
    }

    fn record_tests(&mut self, at: StepIndex, context: &StepContext) {
        let action = &context.action;
        if context.changes {
            self.failing = None;
        }
        let sentences = action.outcome.signature_text.to_lowercase();
        let fails = action.tests
            && action.outcome.failed
            && ["fail", "assert"].iter().any(|word| sentences.contains(word));
        if action.outcome.tests.map_or(fails, |tests| tests.failed > 0) {
            self.failing = Some(at);
        } else if action.tests || action.outcome.tests.is_some() {
            self.failing = None;
        }
    }

    fn check_tests(
        &self,
        at: StepIndex,
        thought: &str,
        sentences: &Sentences,
    ) -> Option<(f64, Evidence)> {
        let failed = self.failing?;
        claims::claims_tests_pass(thought, sentences)
            .then(|| (0.90, Evidence::new("tests_fail", 1).at([failed, at])))
    }

    fn check_things(
        &self,
        at: StepIndex,
        sentences: &Sentences,
        cues: CueSet,
    ) -> Option<(f64, Evidence)> {
        let mut found = None;
        claims::each_missing(sentences, cues, |thing| {
            let (name, path) = (thing_hash(thing), thing);
            if found.is_none()
                && self.found_things.contains(name)
                && !self.missing_things.contains(name)
            {
                found = Some((0.75, Evidence::new("was_shown", 1).at([at]).path(path)));
            }
        });
        found
    }

    /// Stores statements, and finds the opposite of an earlier one with no new information since.
    fn check_statements(
        &mut self,
        at: StepIndex,
        sentences: &Sentences,
    ) -> Option<(f64, Evidence)> {
        let mut found = None;
        let informative_steps = self.informative_steps;
        let statements = &mut self.statements;
        claims::each_statement(sentences, |subject, says| {
            let earlier = statements.iter().rev().find(|statement| statement.subject == subject);
            if let Some(earlier) = earlier
                && !earlier.says.contains(&*says)
                && !says.contains(&*earlier.says)
                && informative_steps == earlier.informative_steps
                && earlier.at != at
            {
                found = Some((0.70, Evidence::new("opposite", 1).at([earlier.at, at])));
            }
            if statements.len() == STATEMENTS_MAX {
                statements.pop_front();
            }
            statements.push_back(Statement { at, subject, says, informative_steps });
        });
        found
    }
}

/// Reports everything in an argument that identifies one thing.
fn each_thing(input: &str, mut found: impl FnMut(u64)) {
    let edges = |c: char| !c.is_alphanumeric() && !matches!(c, '/' | '.' | '_');
    for word in prefix(input, 2_000)
        .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ':' | '(' | ')' | '='))
    {
        // Every such name contains a dot or a digit; most words do not.
        if !word.bytes().any(|byte| byte == b'.' || byte.is_ascii_digit()) {
            continue;
        }
        let word = word.trim_matches(edges).trim_end_matches('.');
        if claims::names_a_thing(word) {
            found(thing_hash(word));
        }
    }
}

/// Hashes a name in lower case without a leading `./` or `/`.
fn thing_hash(thing: &str) -> u64 {
    let lower = thing.to_lowercase();
    fingerprint(lower.trim_start_matches("./").trim_start_matches('/'))
}

fn advice(seen: &Evidence) -> String {
    let steps = seen.steps_in_words();
    let thing = seen.path.as_deref().unwrap_or("the file");
    match (seen.kind, seen.is_repeated()) {
        ("tests_fail", false) => format!(
            "the tests were said to pass, but the newest test run shows failures ({steps}). It may help to read that output \
             once more, and to run the tests again before building on the claim."
        ),
        ("tests_fail", true) => format!(
            "once more the tests were said to pass while the newest test run shows failures ({steps}), after an earlier \
             notice. Whoever reads the claim will rely on it. Ways out: run the tests and quote their last line, or name the \
             tests that fail and why they may."
        ),
        ("was_shown", false) => format!(
            "`{thing}` was said to be missing ({steps}), but a look at it was answered earlier in this run. It may help to check \
             the name and where it was looked for."
        ),
        ("was_shown", true) => format!(
            "`{thing}` was said to be missing ({steps}), though this run has seen it; an earlier notice was about the same kind \
             of claim. What is built on it would be made twice or in the wrong place. Ways out: look at it once more now, or \
             take the claim back."
        ),
        (_, false) => format!(
            "two statements contradict each other ({steps}), and nothing was observed between them that would explain the \
             change. It may help to say which of them holds, and what shows it."
        ),
        (_, true) => format!(
            "statements contradict each other again ({steps}), after an earlier notice and with nothing observed between. One of \
             them is wrong, and what rests on it too. Ways out: find the one observation that decides, or mark the point as \
             unknown and go on without it."
        ),
    }
}
