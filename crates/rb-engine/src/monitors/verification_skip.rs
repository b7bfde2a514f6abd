//! `verification_skip`: the work is declared done with changes that nothing has checked.
//!
//! **Rule.** Count changes of files since the last check that passed: a test, a build, a run, a look at the diff or at
//! the changed file. When the agent finishes, or says that it is done, and some are left, the reading is 0.7 and more.
//! Before that a small score grows with the number of unchecked changes.
//!
//! **Fires at** 0.6: only at the end, or at a claim of being done.
//!
//! **Not a skip.** Tasks without changes need no check. Removing files one made oneself is tidying up. Changing
//! something other than files (a booking, a message) is checked by its own answer.
//!
//! **State.** The unchecked files (at most [`FILES_MAX`]) and a few steps. Cost per step: constant.
//!
//! **Blind spots.** Whether the check was a good one. A program that is run counts, whatever it prints.

use super::{Monitor, MonitorSpec, ProfileWeights, Sign, Suite};
use crate::act::Kind;
use crate::claims;
use crate::evidence::Evidence;
use crate::facts::Facts;
use crate::step::StepIndex;
use crate::text::Label;

pub(super) static SPEC: MonitorSpec = MonitorSpec {
    id: "verification_skip",
    suite: Suite::Semantic,
    summary: "The work is declared done with changes that nothing has checked.",
    fire_at: super::DEFAULT_FIRE_THRESHOLD,
    failure_type: "unverified_completion",
    weights: ProfileWeights { coding: 0.15, pr_review: 0.10, qa: 0.05 },
    build: |_| Box::new(VerificationSkip::default()),
    advice,
};

/// Unchecked files beyond this many are only counted.
const FILES_MAX: usize = 16;
/// A score for each unchecked change, up to a limit below the threshold.
const UNCHECKED: f64 = 0.12;
const UNCHECKED_MAX: f64 = 0.48;
const DONE: f64 = 0.70;

#[derive(Default)]
struct VerificationSkip {
    unchecked: Vec<(StepIndex, Label)>,
    changes: u32,
    ever_checked: bool,
}

impl Monitor for VerificationSkip {
    fn observe(&mut self, at: StepIndex, facts: &Facts<'_>) -> Sign {
        let Some((scene, _)) = facts.scene else { return Sign::none() };
        let act = &scene.act;
        let reads_back = act
            .reads
            .iter()
            .any(|file| self.unchecked.iter().any(|(_, known)| same_file(known, &file.path)));
        let checks = (act.verifies || act.tests || reads_back) && !act.edits;
        let checks_itself =
            act.edits && act.verifies && !act.outcome.failed && scene.novelty.is_some();
        if act.edits {
            self.change(at, act.writes.iter().map(|file| file.path.as_str()));
        }
        let removed = act.removes.iter().map(|file| file.path.as_str());
        removed.for_each(|file| self.unchecked.retain(|(_, known)| !same_file(known, file)));
        if checks || checks_itself {
            self.unchecked.clear();
            self.changes = 0;
            self.ever_checked = true;
        }
        if self.unchecked.is_empty() {
            return Sign::none();
        }
        let finishes = act.kind == Kind::Finish
            || (act.kind == Kind::Message && claims::says_done(facts.step.thought));
        let pending = (UNCHECKED * f64::from(self.changes)).min(UNCHECKED_MAX);
        let score = if finishes { (DONE + pending / 2.0).min(1.0) } else { pending };
        Sign::new(score, || {
            let kind = if finishes { "done_unchecked" } else { "unchecked" };
            let evidence =
                Evidence::new(kind, self.changes).at(self.unchecked.iter().map(|(step, _)| *step));
            self.unchecked.last().map_or(evidence.clone(), |(_, file)| evidence.path(file.shown()))
        })
    }

    fn heap_bytes(&self) -> usize {
        let names: usize = self.unchecked.iter().map(|(_, file)| file.heap_bytes()).sum();
        names + self.unchecked.capacity() * size_of::<(StepIndex, Label)>()
    }
}

impl VerificationSkip {
    fn change<'a>(&mut self, at: StepIndex, files: impl Iterator<Item = &'a str>) {
        self.changes = self.changes.saturating_add(1);
        let mut any = false;
        for file in files {
            any = true;
            self.unchecked.retain(|(_, known)| !known.is(file));
            self.unchecked.push((at, Label::new(file)));
        }
        if !any {
            self.unchecked.push((at, Label::new("a file")));
        }
        if self.unchecked.len() > FILES_MAX {
            self.unchecked.drain(..self.unchecked.len() - FILES_MAX);
        }
    }
}

/// The same file, also when one of them is named from another folder.
fn same_file(known: &Label, file: &str) -> bool {
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    known.is(file) || name(known.shown()) == name(file)
}

fn advice(seen: &Evidence) -> String {
    let file =
        seen.path.as_deref().map_or_else(String::new, |file| format!(", most recently `{file}`"));
    format!(
        "the work was called done, but {} since the last check{file} ({}) and nothing has looked at the result. Running \
         the tests, building, running the program or reading the change once more would show whether it holds.",
        if seen.count == 1 {
            "one change was made".to_owned()
        } else {
            format!("{} changes were made", seen.count)
        },
        seen.steps_in_words()
    )
}
