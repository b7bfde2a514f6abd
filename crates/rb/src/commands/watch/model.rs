//! Runs of the server: the list it returns, updated by every step event.

use std::collections::VecDeque;

use rb_runtime::clock::parse_rfc3339;
use rb_store::{is_running, run_status};

use crate::api::{RunStep, RunSummary};

/// Scores per run in the list.
pub(super) const MAX_SCORES: usize = 24;
/// Oldest runs beyond this number are dropped.
pub(super) const MAX_RUNS: usize = 200;

/// Organisation and run id.
pub(super) type RunKey = (String, String);

/// Run in the list.
#[derive(Debug, Clone, Default)]
pub(super) struct Run {
    pub(super) summary: RunSummary,
    /// Newest scores and whether a monitor fired, oldest first.
    pub(super) scores: VecDeque<(f64, bool)>,
    last_seen_ms: i64,
    newest_step: Option<u64>,
}

impl Run {
    pub(super) fn key(&self) -> RunKey {
        (self.summary.org_id.clone(), self.summary.run_id.clone())
    }

    fn is(&self, (org, run_id): &RunKey) -> bool {
        self.summary.org_id == *org && self.summary.run_id == *run_id
    }

    pub(super) fn status(&self, now_ms: i64) -> &str {
        run_status(self.summary.outcome.as_deref(), self.last_seen_ms, now_ms)
    }

    pub(super) fn is_running(&self, now_ms: i64) -> bool {
        is_running(self.summary.outcome.as_deref(), self.last_seen_ms, now_ms)
    }

    pub(super) fn lacks_scores(&self) -> bool {
        self.scores.is_empty() && self.summary.step_count > 0
    }

    /// Appends the score; returns false for a repeated or late step.
    fn push(&mut self, step: &RunStep) -> bool {
        if self.newest_step.is_some_and(|newest| step.index <= newest) {
            return false;
        }
        self.newest_step = Some(step.index);
        if self.scores.len() == MAX_SCORES {
            self.scores.pop_front();
        }
        self.scores.push_back((step.total_score, !step.fired.is_empty()));
        true
    }
}

/// Runs in display order: running ones first, then newest first.
#[derive(Debug, Default)]
pub(super) struct Runs {
    all: Vec<Run>,
    /// Identified by key because the order changes.
    selected: Option<RunKey>,
    pub(super) is_fired_only: bool,
}

impl Runs {
    pub(super) fn shown(&self) -> impl Iterator<Item = &Run> {
        let is_fired_only = self.is_fired_only;
        self.all
            .iter()
            .filter(move |run| !is_fired_only || !run.summary.fires_by_monitor.is_empty())
    }

    /// Returns the index of the selected run among the shown ones.
    pub(super) fn position(&self) -> usize {
        let is_selected = |run: &Run| self.selected.as_ref().is_some_and(|key| run.is(key));
        self.shown().position(is_selected).unwrap_or_default()
    }

    pub(super) fn selected(&self) -> Option<&Run> {
        self.shown().nth(self.position())
    }

    pub(super) fn move_selection(&mut self, by: isize) {
        let last = self.shown().count().saturating_sub(1);
        let position = self.position().saturating_add_signed(by).min(last);
        let selected = self.shown().nth(position).map(Run::key);
        self.selected = selected;
    }

    pub(super) fn find(&self, key: &RunKey) -> Option<&Run> {
        self.all.iter().find(|run| run.is(key))
    }

    /// Merges the server's list.
    pub(super) fn merge(&mut self, listed: Vec<RunSummary>, now_ms: i64) {
        for summary in listed {
            let seen_ms = parse_rfc3339(&summary.last_seen_at).unwrap_or_default();
            let key = (summary.org_id.clone(), summary.run_id.clone());
            let at = self.all.iter().position(|run| run.is(&key)).unwrap_or_else(|| {
                self.all.push(Run::default());
                self.all.len() - 1
            });
            let run = &mut self.all[at];
            run.last_seen_ms = run.last_seen_ms.max(seen_ms);
            run.summary = summary;
        }
        self.sort(now_ms);
    }

    /// Adds a step event of a listed run.
    pub(super) fn add(&mut self, step: &RunStep, now_ms: i64) {
        let key = (step.org_id.clone(), step.run_id.clone());
        let Some(run) = self.all.iter_mut().find(|run| run.is(&key)) else { return };
        run.last_seen_ms = run.last_seen_ms.max(now_ms);
        let is_new = run.push(step);
        run.summary.step_count = run.summary.step_count.max(step.index.saturating_add(1));
        for monitor in step.fired.iter().filter(|_| is_new) {
            *run.summary.fires_by_monitor.entry(monitor.clone()).or_default() += 1;
        }
        self.sort(now_ms);
    }

    /// Adds the stored scores of a run that has none.
    pub(super) fn fill(&mut self, key: &RunKey, steps: &[RunStep]) {
        let run = self.all.iter_mut().find(|run| run.is(key) && run.scores.is_empty());
        if let Some(run) = run {
            for step in steps {
                run.push(step);
            }
        }
    }

    fn sort(&mut self, now_ms: i64) {
        self.all.sort_by(|a, b| {
            let newest_first = || b.summary.started_at.cmp(&a.summary.started_at);
            let by_id = || a.summary.run_id.cmp(&b.summary.run_id);
            let running_first = b.is_running(now_ms).cmp(&a.is_running(now_ms));
            running_first.then_with(newest_first).then_with(by_id)
        });
        self.all.truncate(MAX_RUNS);
    }
}
