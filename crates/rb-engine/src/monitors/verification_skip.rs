//! `verification_skip`: the work is declared complete with unchecked changes.
//!
//! **Rule.** Counts file changes since the last check: a test, a build, a run, a look at the diff or at the changed
//! file. A check that could not run does not count; one that fails does (see `claim_contradiction`). If the agent
//! finishes, or claims to be done, with unchecked changes, the score is at least 0.7. Before that a small score grows
//! with the number of unchecked changes.
//!
//! **Fires at** 0.6: only at the end, or at a claim of completion.
//!
//! **Not a skip.** Tasks without changes need no check. Removing temporary files is clean-up. Changes of something
//! other than files (a booking, a message) are confirmed by their result.
//!
//! **State.** The unchecked files (at most `FILES_MAX`) and a few steps. Cost per step: constant.
//!
//! **Blind spots.** The quality of a check. A program run counts, whatever it prints.

use super::{Monitor, MonitorSpec, Signal, Suite};
use crate::analysis::action::{ActionSummary, FileRef, Kind, Outcome};
use crate::analysis::claims;
use crate::analysis::features::StepFeatures;
use crate::analysis::phrases::{Cue, SHORT_OBSERVATION_BYTES};
use crate::analysis::text::Label;
use crate::evidence::Evidence;
use crate::step::StepIndex;

pub(super) static SPEC: MonitorSpec = MonitorSpec {
    id: "verification_skip",
    suite: Suite::Semantic,
    summary: "The work is declared done with changes that nothing has checked.",
    fire_at: super::DEFAULT_FIRE_THRESHOLD,
    failure_type: "unverified_completion",
    build: |_| Box::new(VerificationSkip::default()),
    advice,
};

/// Maximum number of unchecked files whose names are stored.
const FILES_MAX: usize = 16;
/// Name of a file whose path is unknown.
const UNNAMED_FILE: &str = "a file";
/// Score per unchecked change, limited below the threshold.
const UNCHECKED: f64 = 0.12;
const UNCHECKED_MAX: f64 = 0.48;
const DONE: f64 = 0.70;

#[derive(Default)]
struct VerificationSkip {
    unchecked: Vec<(StepIndex, Label)>,
    changes: u32,
}

impl Monitor for VerificationSkip {
    fn observe(&mut self, at: StepIndex, features: &StepFeatures<'_>) -> Signal {
        let Some((context, _)) = features.context else { return Signal::none() };
        let action = &context.action;
        let claims_completion = action.kind == Kind::Message
            && !action.outcome.failed
            && claims::hands_over(features.step.thought);
        let finishes = action.kind == Kind::Finish || claims_completion;
        let reads_changed =
            |seen: &str| self.unchecked.iter().any(|(_, file)| is_or_holds(seen, file));
        let reads_unnamed =
            action.kind.is_look() && self.unchecked.iter().any(|(_, file)| file.is(UNNAMED_FILE));
        let reads_back = reads_unnamed || action.reads.iter().any(|file| reads_changed(&file.path));
        let ran = action.kind != Kind::Finish && !could_not_run(features, &action.outcome);
        let checks = ran
            && (action.verifies || action.tests || reads_back || shows_what_it_writes(action))
            && (!action.edits || !action.outcome.failed);
        if action.edits && !action.outcome.failed && !action.reverts {
            self.change(at, &action.writes);
        }
        let removed = action.removes.iter().map(|file| file.path.as_str());
        removed.for_each(|file| self.unchecked.retain(|(_, known)| !is_or_holds(file, known)));
        if checks {
            self.unchecked.clear();
            self.changes = 0;
        }
        if self.unchecked.is_empty() {
            return Signal::none();
        }
        let pending = (UNCHECKED * f64::from(self.changes)).min(UNCHECKED_MAX);
        let score = if finishes { (DONE + pending / 2.0).min(1.0) } else { pending };
        Signal::new(score, || {
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
    /// Records changed files, except temporary ones.
    fn change(&mut self, at: StepIndex, files: &[FileRef]) {
        let lasting: Vec<&FileRef> = files.iter().filter(|file| !file.is_temporary()).collect();
        if lasting.is_empty() && !files.is_empty() {
            return;
        }
        self.changes = self.changes.saturating_add(1);
        for file in &lasting {
            self.unchecked.retain(|(_, known)| !known.is(&file.path));
            self.unchecked.push((at, Label::new(&file.path)));
        }
        if lasting.is_empty() {
            self.unchecked.push((at, Label::new(UNNAMED_FILE)));
        }
        if self.unchecked.len() > FILES_MAX {
            self.unchecked.drain(..self.unchecked.len() - FILES_MAX);
        }
    }
}

/// Reports whether a path that was read is the file, a file of the same name, or a folder that contains it.
fn is_or_holds(seen: &str, file: &Label) -> bool {
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let folder = seen.trim_end_matches('/');
    let holds = folder == "."
        || file.shown().strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    file.is(seen) || name(file.shown()) == name(seen) || holds
}

/// Reports whether the action prints what it writes, as `… | tee file` does.
fn shows_what_it_writes(action: &ActionSummary) -> bool {
    action.edits && action.commands.iter().any(|command| command.starts_with("tee"))
}

/// Reports whether a check could not run.
fn could_not_run(features: &StepFeatures<'_>, outcome: &Outcome) -> bool {
    let is_short = features.step.observation.len() < SHORT_OBSERVATION_BYTES;
    outcome.exit_code == Some(127) || (is_short && features.observation.cues.has(Cue::CouldNotRun))
}

fn advice(seen: &Evidence) -> String {
    let file =
        seen.path.as_deref().map_or_else(String::new, |file| format!(", most recently `{file}`"));
    let steps = seen.steps_in_words();
    let changes = match seen.count {
        1 => "one change was made".to_owned(),
        more => format!("{more} changes were made"),
    };
    if seen.is_repeated() {
        return format!(
            "the work was called done again after an earlier notice, and still {changes} that nothing has checked{file} \
             ({steps}). Whether it works is unknown. Ways out: one short check now, be it reading the change once more, or a \
             final report that says plainly what was not checked and why."
        );
    }
    format!(
        "the work was called done, but {changes} since the last check{file} ({steps}) and nothing has looked at the result. \
         Running the tests, building, running the program or reading the change once more would show whether it holds."
    )
}
