//! What a transaction does to runs, worked out in memory: every run that is touched is read once, changed in the order
//! of the changes, and written once. Reading is in `load`, writing in `put`; here is no SQL.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::numbers::day;
use crate::said::{ARM, EXPERIMENT, merged, word};
use crate::tally::{Share, Tally, Used, add};
use crate::{ConversationRow, RunKey, RunStart, StepRow};

/// The runs of a transaction by name, and the conversations that are put.
#[derive(Default)]
pub(super) struct Ledger<'a> {
    pub(super) runs: BTreeMap<&'a RunKey, Entry<'a>>,
    pub(super) conversations: BTreeMap<&'a RunKey, &'a ConversationRow>,
}

/// A run as it stands.
#[derive(Default)]
pub(super) struct Entry<'a> {
    pub(super) id: i64,
    /// How often the run was changed, now and before this transaction, which may have made it.
    pub(super) version: i64,
    pub(super) version_before: i64,
    /// Changes of this transaction.
    pub(super) touched: u32,
    pub(super) started_ms: i64,
    pub(super) seen_ms: i64,
    pub(super) is_experiment: bool,
    pub(super) was_experiment: bool,
    /// Steps there were before.
    pub(super) steps_before: i64,
    pub(super) tally: Tally,
    /// The highest step was replaced: the next is to be looked for.
    pub(super) is_peak_lost: bool,
    pub(super) fired_before: BTreeSet<String>,
    /// On how many steps more than before a pattern is shown.
    pub(super) shown: BTreeMap<String, i64>,
    /// What the run says about itself, read where it says more.
    pub(super) said: Said,
    /// Outcome, and when it ended.
    pub(super) end: Option<(&'a str, i64)>,
    /// Steps that are put.
    pub(super) steps: BTreeMap<u32, &'a StepRow>,
    /// When and what the steps brought that were stored, or put so far.
    pub(super) shares: BTreeMap<u32, (i64, Share<'a>)>,
    pub(super) used: BTreeMap<i64, Used>,
}

/// What a run says about itself.
#[derive(Default)]
pub(super) struct Said {
    /// Something was said in this transaction.
    pub(super) is_fresh: bool,
    pub(super) project: String,
    pub(super) agent_name: String,
    pub(super) task: String,
    pub(super) model: String,
    pub(super) framework: String,
    pub(super) codebase: String,
    pub(super) task_profile: String,
    pub(super) parent: String,
    pub(super) key_name: String,
    pub(super) metadata: Map<String, Value>,
}

impl Said {
    fn merge(&mut self, start: &RunStart) {
        self.is_fresh = true;
        for (before, new) in [
            (&mut self.project, &start.project),
            (&mut self.agent_name, &start.agent_name),
            (&mut self.task, &start.task),
            (&mut self.model, &start.model),
            (&mut self.framework, &start.framework),
            (&mut self.codebase, &start.codebase),
            (&mut self.task_profile, &start.task_profile),
            (&mut self.parent, &start.parent),
        ] {
            if !new.is_empty() {
                before.clone_from(new);
            }
        }
        // The first stands.
        if self.key_name.is_empty() {
            self.key_name.clone_from(&start.key_name);
        }
        self.metadata = merged(std::mem::take(&mut self.metadata), &start.metadata);
    }

    pub(super) fn experiment_id(&self) -> String {
        word(&self.metadata, EXPERIMENT)
    }

    pub(super) fn arm(&self) -> String {
        word(&self.metadata, ARM)
    }
}

impl<'a> Entry<'a> {
    /// Whether this transaction made the run.
    pub(super) fn is_new(&self) -> bool {
        self.version_before == 0
    }

    pub(super) fn is_touched(&self) -> bool {
        self.touched > 0
    }

    /// Whether the run became part of an experiment: what it had used before is to be given back.
    pub(super) fn gives_back(&self) -> bool {
        self.is_experiment && !self.was_experiment && self.steps_before > 0
    }

    fn hear(&mut self, at_ms: i64) {
        self.version += 1;
        self.touched += 1;
        self.seen_ms = self.seen_ms.max(at_ms);
    }

    /// For copies: the run counts as changed so often. One that nobody else speaks of stays unknown.
    pub(super) fn set_version(&mut self, version: i64) {
        if !self.is_new() || self.is_touched() {
            self.version = version;
            self.touched += 1;
        }
    }

    pub(super) fn start(&mut self, start: &RunStart) {
        self.hear(start.at_ms);
        self.said.merge(start);
        if !self.is_experiment && !self.said.experiment_id().is_empty() {
            self.is_experiment = true;
            self.used.clear();
        }
    }

    /// A step of a run that was not known begins it, even if it comes as what became of one.
    pub(super) fn amend(&mut self, step: &'a StepRow) {
        let version = self.version;
        self.put(step);
        self.version = version.max(1);
    }

    pub(super) fn put(&mut self, step: &'a StepRow) {
        self.hear(step.at_ms);
        let share = Share::of(step);
        if let Some((at_ms, before)) = self.shares.remove(&step.step_index) {
            self.is_peak_lost |= self.tally.take(&before);
            self.count(at_ms, before.used().map(|used| -used));
            self.show(&before.patterns, -1);
        }
        self.tally.add(&share);
        self.count(step.at_ms, share.used());
        self.show(&share.patterns, 1);
        self.steps.insert(step.step_index, step);
        self.shares.insert(step.step_index, (step.at_ms, share));
    }

    fn count(&mut self, at_ms: i64, used: Used) {
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
        self.hear(at_ms);
        let first = self.end.map_or(at_ms, |(_, first)| first);
        self.end = Some((outcome, first));
    }

    /// The highest composite, once the highest among the stored steps that stay is known.
    pub(super) fn find_peak(&mut self, stored: Option<f64>) {
        let put = self.steps.keys().filter_map(|index| self.shares.get(index));
        let put = put.map(|(_, share)| share.score);
        self.tally.set_peak(put.chain(stored).fold(0.0, f64::max));
    }
}
