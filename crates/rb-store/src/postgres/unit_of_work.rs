//! In-memory state of a transaction: each run is loaded once (`load`), changed in order of the changes, and written
//! once (`flush`). Contains no SQL.

use std::collections::{BTreeMap, BTreeSet};

use crate::numeric::day;
use crate::run_metadata::RunDescription;
use crate::run_totals::{RunTotals, StepContribution, UsageDelta, add};
use crate::{ConversationRow, RunKey, RunStart, StepRow};

/// Runs of a transaction by key, and the conversations to write.
#[derive(Default)]
pub(super) struct UnitOfWork<'a> {
    pub(super) runs: BTreeMap<&'a RunKey, Entry<'a>>,
    pub(super) conversations: BTreeMap<&'a RunKey, &'a ConversationRow>,
}

/// Current state of a run.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one run")]
pub(super) struct Entry<'a> {
    pub(super) id: i64,
    /// Version of the run now and before the transaction; 0 before if the transaction creates it.
    pub(super) version: i64,
    pub(super) version_before: i64,
    /// Number of changes in this transaction.
    pub(super) touched: u32,
    pub(super) started_ms: i64,
    pub(super) seen_ms: i64,
    pub(super) is_experiment: bool,
    pub(super) was_experiment: bool,
    /// Number of steps before the transaction.
    pub(super) steps_before: i64,
    pub(super) totals: RunTotals,
    /// The step with the peak score was replaced, so the peak must be recomputed.
    pub(super) is_peak_lost: bool,
    pub(super) fired_before: BTreeSet<String>,
    /// Change of the number of steps on which each pattern is shown.
    pub(super) shown: BTreeMap<String, i64>,
    /// Description of the run, loaded if the transaction updates it.
    pub(super) description: RunDescription,
    /// Set if the transaction updates the description.
    pub(super) is_described: bool,
    /// Outcome and time of the end.
    pub(super) end: Option<(&'a str, i64)>,
    /// Steps to write.
    pub(super) steps: BTreeMap<u32, &'a StepRow>,
    /// Time and contribution of each step that is stored or written so far.
    pub(super) contributions: BTreeMap<u32, (i64, StepContribution<'a>)>,
    pub(super) used: BTreeMap<i64, UsageDelta>,
}

impl<'a> Entry<'a> {
    /// Returns true if this transaction creates the run.
    pub(super) fn is_new(&self) -> bool {
        self.version_before == 0
    }

    pub(super) fn is_touched(&self) -> bool {
        self.touched > 0
    }

    /// Returns true if the run became part of an experiment, so that its earlier usage must be subtracted.
    pub(super) fn must_subtract_usage(&self) -> bool {
        self.is_experiment && !self.was_experiment && self.steps_before > 0
    }

    fn note_change(&mut self, at_ms: i64) {
        self.version += 1;
        self.touched += 1;
        self.seen_ms = self.seen_ms.max(at_ms);
    }

    /// Sets the version, for copies. A run that no other change creates stays unknown.
    pub(super) fn set_version(&mut self, version: i64) {
        if !self.is_new() || self.is_touched() {
            self.version = version;
            self.touched += 1;
        }
    }

    pub(super) fn start(&mut self, start: &RunStart) {
        self.note_change(start.at_ms);
        self.description.merge(start);
        self.is_described = true;
        if !self.is_experiment && !self.description.experiment_id().is_empty() {
            self.is_experiment = true;
            self.used.clear();
        }
    }

    /// Stores a step again without a new version; creates the run if it is unknown.
    pub(super) fn amend(&mut self, step: &'a StepRow) {
        let version = self.version;
        self.put(step);
        self.version = version.max(1);
    }

    pub(super) fn put(&mut self, step: &'a StepRow) {
        self.note_change(step.at_ms);
        let contribution = StepContribution::of(step);
        if let Some((at_ms, before)) = self.contributions.remove(&step.step_index) {
            self.is_peak_lost |= self.totals.subtract(&before);
            self.count(at_ms, before.used().map(|used| -used));
            self.show(&before.patterns, -1);
        }
        self.totals.add(&contribution);
        self.count(step.at_ms, contribution.used());
        self.show(&contribution.patterns, 1);
        self.steps.insert(step.step_index, step);
        self.contributions.insert(step.step_index, (step.at_ms, contribution));
    }

    fn count(&mut self, at_ms: i64, used: UsageDelta) {
        if !self.is_experiment {
            add(self.used.entry(day(at_ms)).or_default(), used);
        }
    }

    fn show(&mut self, patterns: &BTreeSet<String>, steps: i64) {
        for pattern in patterns {
            *self.shown.entry(pattern.clone()).or_default() += steps;
        }
    }

    pub(super) fn finish(&mut self, outcome: &'a str, at_ms: i64) {
        self.note_change(at_ms);
        let first = self.end.map_or(at_ms, |(_, first)| first);
        self.end = Some((outcome, first));
    }

    /// Recomputes the peak score from the written steps and the peak of the other stored ones.
    pub(super) fn find_peak(&mut self, stored: Option<f64>) {
        let put = self.steps.keys().filter_map(|index| self.contributions.get(index));
        let put = put.map(|(_, contribution)| contribution.score);
        self.totals.set_peak(put.chain(stored).fold(0.0, f64::max));
    }
}
