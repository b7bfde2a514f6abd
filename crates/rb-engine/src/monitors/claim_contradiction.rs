//! `claim_contradiction`: what the agent says contradicts what it said or saw.
//!
//! **Rule.** Says the tests pass while the newest test run failed. Says something is missing that it was
//! shown, with nothing removed since. Gives another final answer, or states the opposite of an earlier statement, with nothing learned
//! between. Below that, a small score grows with how often the agent corrects itself.
//!
//! **Fires at** 0.6.
//!
//! **Not a contradiction.** Revising a belief because new evidence came in. A variable that changes its value. A plan,
//! a question, a supposition.
//!
//! **State.** The newest test run, the last `STATEMENTS_MAX` statements as fingerprints, filters for things shown.
//!
//! **Blind spots.** Contradictions across different wordings; claims about anything but tests, files and answers.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::{Monitor, MonitorSpec, ProfileWeights, Signal, Suite};
use crate::analysis::action::Kind;
use crate::analysis::claims;
use crate::analysis::features::StepFeatures;
use crate::analysis::history::StepContext;
use crate::analysis::phrases::CueSet;
use crate::analysis::recency_filter::RecencyFilter;
use crate::analysis::sentences::Said;
use crate::analysis::text::{fingerprint, is_blank, prefix};
use crate::evidence::Evidence;
use crate::step::StepIndex;

pub(super) static SPEC: MonitorSpec = MonitorSpec {
    id: "claim_contradiction",
    suite: Suite::Semantic,
    summary: "What the agent says contradicts what it said or saw.",
    fire_at: super::DEFAULT_FIRE_THRESHOLD,
    failure_type: "contradiction",
    weights: ProfileWeights { coding: 0.30, pr_review: 0.20, qa: 0.40 },
    build: |_| Box::new(ClaimContradiction::default()),
    advice,
};

/// How many statements are kept.
const STATEMENTS_MAX: usize = 64;
/// The small score never reaches the threshold.
const CORRECTING_MAX: f64 = 0.50;
/// Corrections are counted as if this many calm steps had come before.
const CALM_START: f64 = 10.0;
/// A contradiction stays visible for this many steps.
const STAYS_STEPS: u32 = 3;

#[derive(Default)]
struct ClaimContradiction {
    steps: f64,
    corrections: f64,
    /// The newest test run, if it failed and nothing was changed since.
    failing: Option<StepIndex>,
    /// Names of things that were asked for and answered, and those of them that later were not.
    shown: RecencyFilter,
    gone: RecencyFilter,
    statements: VecDeque<Statement>,
    /// Steps that showed something new so far.
    learned: u32,
    found: Option<(StepIndex, f64, Evidence)>,
}

struct Statement {
    at: StepIndex,
    subject: u64,
    says: Cow<'static, str>,
    learned: u32,
}

impl Monitor for ClaimContradiction {
    fn observe(&mut self, at: StepIndex, facts: &StepFeatures<'_>) -> Signal {
        let Some((scene, _)) = facts.scene else { return Signal::none() };
        let thought = facts.step.thought;
        self.steps += 1.0;
        self.corrections +=
            f64::from(claims::corrections(facts.folded.lower(), facts.thought.cues).min(4));
        if !is_blank(facts.step.user_input) {
            self.learned = self.learned.saturating_add(1);
        }
        // What is said now is held against what was seen before this step's own answer.
        let said = Said::of(thought);
        let new = self
            .against_tests(at, thought, &said)
            .or_else(|| self.against_things(at, &said, facts.thought.cues));
        let new = new.or_else(|| self.against_statements(at, &said));
        if let Some((score, evidence)) = new {
            self.found = Some((at, score, evidence));
        }
        let input = facts.step.action.map_or("", |action| action.input.text());
        self.learn(at, scene, input);
        if self.found.as_ref().is_some_and(|(since, ..)| at.0 - since.0 >= STAYS_STEPS) {
            self.found = None;
        }
        let correcting = (0.6 * self.corrections / (self.steps + CALM_START)).min(CORRECTING_MAX);
        match &self.found {
            Some((_, score, evidence)) => Signal::new(*score, || evidence.clone()),
            None => Signal::new(correcting, || Evidence::new("corrects_itself", 1).at([at])),
        }
    }

    fn advised(&mut self, _: StepIndex) {
        self.found = None;
    }

    fn heap_bytes(&self) -> usize {
        self.shown.heap_bytes()
            + self.gone.heap_bytes()
            + self.statements.capacity() * (size_of::<Statement>() + 24)
    }
}

impl ClaimContradiction {
    fn learn(&mut self, at: StepIndex, scene: &StepContext, input: &str) {
        let act = &scene.act;
        self.learn_tests(at, scene);
        let answered = !act.outcome.failed && !scene.found_nothing && !act.outcome.is_empty;
        let asks = act.kind.is_look() || act.kind == Kind::Run;
        if asks && (answered || scene.found_nothing || act.outcome.failed) {
            let names = if answered { &mut self.shown } else { &mut self.gone };
            each_thing(input, |thing| {
                names.insert(thing);
            });
        }
        if !act.removes.is_empty() {
            self.shown = RecencyFilter::default();
        }
        self.learned = self.learned.saturating_add(u32::from(scene.is_evidence()));
    }

    fn learn_tests(&mut self, at: StepIndex, scene: &StepContext) {
        let act = &scene.act;
        if scene.changes {
            self.failing = None;
        }
        let said = act.outcome.signature_text.to_lowercase();
        let fails = act.tests
            && act.outcome.failed
            && ["fail", "assert"].iter().any(|word| said.contains(word));
        if act.outcome.tests.map_or(fails, |tests| tests.failed > 0) {
            self.failing = Some(at);
        } else if act.tests || act.outcome.tests.is_some() {
            self.failing = None;
        }
    }

    fn against_tests(&self, at: StepIndex, thought: &str, said: &Said) -> Option<(f64, Evidence)> {
        let failed = self.failing?;
        claims::says_tests_pass(thought, said)
            .then(|| (0.90, Evidence::new("tests_fail", 1).at([failed, at])))
    }

    fn against_things(&self, at: StepIndex, said: &Said, heard: CueSet) -> Option<(f64, Evidence)> {
        let mut found = None;
        claims::each_missing(said, heard, |thing| {
            let (name, path) = (thing_print(thing), thing);
            if found.is_none() && self.shown.contains(name) && !self.gone.contains(name) {
                found = Some((0.75, Evidence::new("was_shown", 1).at([at]).path(path)));
            }
        });
        found
    }

    /// Keeps what is stated, and finds the opposite stated earlier with nothing learned since.
    fn against_statements(&mut self, at: StepIndex, said: &Said) -> Option<(f64, Evidence)> {
        let mut found = None;
        let learned = self.learned;
        let statements = &mut self.statements;
        claims::each_statement(said, |subject, says| {
            let earlier = statements.iter().rev().find(|statement| statement.subject == subject);
            if let Some(earlier) = earlier
                && !earlier.says.contains(&*says)
                && !says.contains(&*earlier.says)
                && learned == earlier.learned
                && earlier.at != at
            {
                found = Some((0.70, Evidence::new("opposite", 1).at([earlier.at, at])));
            }
            if statements.len() == STATEMENTS_MAX {
                statements.pop_front();
            }
            statements.push_back(Statement { at, subject, says, learned });
        });
        found
    }
}

/// Calls back for everything in an argument that names one thing.
fn each_thing(input: &str, mut found: impl FnMut(u64)) {
    let edges = |c: char| !c.is_alphanumeric() && !matches!(c, '/' | '.' | '_');
    for word in prefix(input, 2_000)
        .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ':' | '(' | ')' | '='))
    {
        // Most words have neither, and every thing has one.
        if !word.bytes().any(|byte| byte == b'.' || byte.is_ascii_digit()) {
            continue;
        }
        let word = word.trim_matches(edges).trim_end_matches('.');
        if claims::names_a_thing(word) {
            found(thing_print(word));
        }
    }
}

/// A name as it is compared: in lower case, without `./` before it or the folders of a working copy.
fn thing_print(thing: &str) -> u64 {
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
