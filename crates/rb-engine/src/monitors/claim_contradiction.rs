//! `claim_contradiction`: what the agent says contradicts what it said or saw.
//!
//! **Rule.** Says the tests pass while the newest test run failed. Says a file is missing that it has read, with nothing
//! removed since. Gives another final answer, or states the opposite of an earlier statement, with nothing learned
//! between. Below that, a small score grows with how often the agent corrects itself.
//!
//! **Fires at** 0.6.
//!
//! **Not a contradiction.** Revising a belief because new evidence came in. A variable that changes its value. A plan,
//! a question, a supposition.
//!
//! **State.** The newest test run, the last [`STATEMENTS_MAX`] statements as fingerprints, a filter for files read.
//!
//! **Blind spots.** Contradictions across different wordings; claims about anything but tests, files and answers.

use std::collections::VecDeque;

use super::{Monitor, MonitorSpec, ProfileWeights, Sign, Suite};
use crate::act::Kind;
use crate::claims;
use crate::evidence::Evidence;
use crate::facts::Facts;
use crate::scene::Scene;
use crate::seen::SeenOnce;
use crate::step::StepIndex;
use crate::text::fingerprint;

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
    /// The newest test run that failed, until one passes or a change is made.
    failing_tests: Option<StepIndex>,
    files_read: SeenOnce,
    statements: VecDeque<Statement>,
    /// Steps that showed something new so far.
    learned: u32,
    found: Option<(StepIndex, f64, Evidence)>,
}

struct Statement {
    at: StepIndex,
    /// What it is about, and what it says of it.
    subject: u64,
    says: u64,
    learned: u32,
}

impl Monitor for ClaimContradiction {
    fn observe(&mut self, at: StepIndex, facts: &Facts<'_>) -> Sign {
        let Some((scene, _)) = facts.scene else { return Sign::none() };
        let thought = facts.step.thought;
        self.steps += 1.0;
        self.corrections += f64::from(claims::corrections(thought).min(4));
        // What is said now is held against what was seen before this step's own answer.
        let new = self.against_tests(at, thought).or_else(|| self.against_files(at, thought));
        let new = new.or_else(|| self.against_statements(at, thought));
        if let Some((score, evidence)) = new {
            self.found = Some((at, score, evidence));
        }
        self.learn(at, scene);
        if self.found.as_ref().is_some_and(|(since, ..)| at.0 - since.0 >= STAYS_STEPS) {
            self.found = None;
        }
        let correcting = (0.6 * self.corrections / (self.steps + CALM_START)).min(CORRECTING_MAX);
        match &self.found {
            Some((_, score, evidence)) => Sign::new(*score, || evidence.clone()),
            None => Sign::new(correcting, || Evidence::new("corrects_itself", 1).at([at])),
        }
    }

    fn advised(&mut self, _: StepIndex) {
        self.found = None;
    }

    fn heap_bytes(&self) -> usize {
        self.files_read.heap_bytes() + self.statements.capacity() * size_of::<Statement>()
    }
}

impl ClaimContradiction {
    fn learn(&mut self, at: StepIndex, scene: &Scene) {
        let act = &scene.act;
        if act.edits || act.kind.is_effect() {
            self.failing_tests = None;
            self.learned = self.learned.saturating_add(1);
        }
        if let Some(tests) = act.outcome.tests {
            self.failing_tests = (tests.failed > 0).then_some(at);
        } else if act.tests || act.verifies {
            self.failing_tests = None; // a check whose result we cannot read
        }
        if !act.outcome.failed
            && !scene.found_nothing
            && scene.novelty.is_some()
            && act.kind == Kind::Read
        {
            for file in &act.reads {
                self.files_read.is_new(fingerprint(file_name(&file.path)));
            }
        }
        if !act.removes.is_empty() {
            self.files_read = SeenOnce::default();
        }
        let new = scene.novelty.is_some_and(|new| new >= crate::scene::STALE_BELOW);
        self.learned = self.learned.saturating_add(u32::from(new));
    }

    fn against_tests(&self, at: StepIndex, thought: &str) -> Option<(f64, Evidence)> {
        let failed = self.failing_tests?;
        claims::says_tests_pass(thought)
            .then(|| (0.90, Evidence::new("tests_fail", 1).at([failed, at])))
    }

    fn against_files(&self, at: StepIndex, thought: &str) -> Option<(f64, Evidence)> {
        let mut found = None;
        claims::each_statement(thought, |sentence, _| {
            let missing = ["does not exist", "doesn't exist", "is missing", "there is no file"];
            if found.is_some() || !missing.iter().any(|phrase| sentence.contains(phrase)) {
                return;
            }
            let file = sentence
                .split(|c: char| {
                    c.is_whitespace() || matches!(c, '`' | '\'' | '"' | ',' | '(' | ')')
                })
                .find(|word| {
                    let word = word.trim_end_matches('.');
                    claims::names_a_file(word) && self.files_read.has(fingerprint(file_name(word)))
                });
            if let Some(file) = file {
                found = Some((
                    0.75,
                    Evidence::new("file_was_read", 1).at([at]).path(file.trim_end_matches('.')),
                ));
            }
        });
        found
    }

    /// Keeps what is stated, and finds the opposite stated earlier with nothing learned since.
    fn against_statements(&mut self, at: StepIndex, thought: &str) -> Option<(f64, Evidence)> {
        let mut found = None;
        let learned = self.learned;
        let statements = &mut self.statements;
        claims::each_statement(thought, |sentence, words| {
            let Some((subject, says)) = claims::subject(sentence, words) else { return };
            let earlier = statements.iter().rev().find(|statement| statement.subject == subject);
            if let Some(earlier) = earlier
                && earlier.says != says
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

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn advice(seen: &Evidence) -> String {
    let steps = seen.steps_in_words();
    match seen.kind {
        "tests_fail" => format!(
            "the tests were said to pass, but the newest test run shows failures ({steps}). It may help to read that output \
             once more, and to run the tests again before building on the claim."
        ),
        "file_was_read" => format!(
            "`{}` was said to be missing ({steps}), but it was read earlier in this run. It may help to check the path and the \
             folder the command ran in.",
            seen.path.as_deref().unwrap_or("the file")
        ),
        _ => format!(
            "two statements contradict each other ({steps}), and nothing was observed between them that would explain the \
             change. It may help to say which of them holds, and what shows it."
        ),
    }
}
