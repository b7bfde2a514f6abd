//! What is known of the runs that are watched: first from the list, then from every step that is told.

use std::collections::VecDeque;

use rb_store::{OutcomeClass, RUN_IDLE_TIMEOUT_MS};
use serde::Deserialize;

/// Scores of a run that are kept for its strip.
const STRIP_MAX: usize = 24;
/// Runs that are kept; the oldest go.
pub(super) const RUNS_MAX: usize = 200;

/// A run as the server lists it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Listed {
    pub(super) run_id: String,
    pub(super) org_id: String,
    pub(super) agent_name: String,
    pub(super) task: String,
    pub(super) model: String,
    pub(super) outcome: Option<String>,
    pub(super) started_at: String,
    pub(super) last_seen_at: String,
    pub(super) step_count: u64,
    pub(super) tokens: u64,
    pub(super) cost_usd: f64,
    pub(super) injected_steps: u64,
    pub(super) fires_by_monitor: std::collections::BTreeMap<String, u64>,
}

/// A step as the server tells it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Told {
    pub(super) run_id: String,
    pub(super) org_id: String,
    pub(super) step_index: u64,
    pub(super) total_score: f64,
    pub(super) fired: Vec<String>,
}

/// One run of the board.
#[derive(Debug, Clone, Default)]
pub(super) struct Watched {
    pub(super) listed: Listed,
    /// The newest scores with whether something fired, oldest first.
    pub(super) strip: VecDeque<(f64, bool)>,
    pub(super) seen_ms: i64,
    /// The index of the newest step that the strip has.
    newest: Option<u64>,
}

/// How a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Running,
    Silent,
    Ended(OutcomeClass),
}

impl Watched {
    pub(super) fn doing(&self, now_ms: i64) -> Doing {
        match self.listed.outcome.as_deref() {
            Some(outcome) => Doing::Ended(OutcomeClass::of(Some(outcome))),
            None if now_ms - self.seen_ms > RUN_IDLE_TIMEOUT_MS => Doing::Silent,
            None => Doing::Running,
        }
    }

    /// Whether scores should be asked for: there are steps, and none was heard.
    pub(super) fn lacks_strip(&self) -> bool {
        self.strip.is_empty() && self.listed.step_count > 0
    }

    /// Takes a step; answers whether it is new.
    fn hear(&mut self, told: &Told) -> bool {
        if self.newest.is_some_and(|newest| told.step_index <= newest) {
            return false; // told again, or late
        }
        self.newest = Some(told.step_index);
        if self.strip.len() == STRIP_MAX {
            self.strip.pop_front();
        }
        self.strip.push_back((told.total_score, !told.fired.is_empty()));
        true
    }
}

/// The runs: those that are running first, then the others, each the newest first.
#[derive(Debug, Default)]
pub(super) struct Board {
    runs: Vec<Watched>,
    /// The run that is pointed at, by its name: lists change under the finger.
    selected: Option<(String, String)>,
    pub(super) only_fired: bool,
}

impl Board {
    pub(super) fn shown(&self) -> impl Iterator<Item = &Watched> {
        let only_fired = self.only_fired;
        self.runs.iter().filter(move |run| !only_fired || !run.listed.fires_by_monitor.is_empty())
    }

    /// Which of the shown runs is pointed at.
    pub(super) fn place(&self) -> usize {
        let is_selected =
            |run: &Watched| self.selected.as_ref().is_some_and(|(org, id)| is(run, org, id));
        self.shown().position(is_selected).unwrap_or_default()
    }

    pub(super) fn selected(&self) -> Option<&Watched> {
        self.shown().nth(self.place())
    }

    /// Points so many runs further down.
    pub(super) fn move_by(&mut self, by: isize) {
        let last = self.shown().count().saturating_sub(1);
        let place = self.place().saturating_add_signed(by).min(last);
        let name = |run: &Watched| (run.listed.org_id.clone(), run.listed.run_id.clone());
        let selected = self.shown().nth(place).map(name);
        self.selected = selected;
    }

    pub(super) fn find(&self, org: &str, run_id: &str) -> Option<&Watched> {
        self.runs.iter().find(|run| is(run, org, run_id))
    }

    /// Takes what the server lists; `seen_ms` reads its times.
    pub(super) fn list(
        &mut self,
        listed: Vec<Listed>,
        now_ms: i64,
        seen_ms: impl Fn(&str) -> Option<i64>,
    ) {
        for new in listed {
            let seen = seen_ms(&new.last_seen_at).unwrap_or_default();
            match self.runs.iter_mut().find(|run| is(run, &new.org_id, &new.run_id)) {
                Some(known) => {
                    known.seen_ms = known.seen_ms.max(seen);
                    known.listed = new;
                }
                None => {
                    self.runs.push(Watched { listed: new, seen_ms: seen, ..Watched::default() });
                }
            }
        }
        self.sort(now_ms);
    }

    /// Takes a step; answers whether its run is known.
    pub(super) fn hear(&mut self, told: &Told, now_ms: i64) -> bool {
        let known = self.runs.iter_mut().find(|run| is(run, &told.org_id, &told.run_id));
        let Some(run) = known else { return false };
        run.seen_ms = run.seen_ms.max(now_ms);
        let is_new = run.hear(told);
        run.listed.step_count = run.listed.step_count.max(told.step_index.saturating_add(1));
        for monitor in told.fired.iter().filter(|_| is_new) {
            *run.listed.fires_by_monitor.entry(monitor.clone()).or_default() += 1;
        }
        self.sort(now_ms);
        true
    }

    /// Takes the newest steps of a run whose strip is empty.
    pub(super) fn fill(&mut self, org: &str, run_id: &str, steps: &[Told]) {
        let known = self.runs.iter_mut().find(|run| is(run, org, run_id));
        if let Some(run) = known.filter(|run| run.strip.is_empty()) {
            for step in steps {
                run.hear(step);
            }
        }
    }

    fn sort(&mut self, now_ms: i64) {
        let is_over = |run: &Watched| run.doing(now_ms) != Doing::Running;
        self.runs.sort_by(|a, b| {
            let newest_first = || b.listed.started_at.cmp(&a.listed.started_at);
            let by_name = || a.listed.run_id.cmp(&b.listed.run_id);
            is_over(a).cmp(&is_over(b)).then_with(newest_first).then_with(by_name)
        });
        self.runs.truncate(RUNS_MAX);
    }
}

fn is(run: &Watched, org: &str, run_id: &str) -> bool {
    run.listed.org_id == org && run.listed.run_id == run_id
}
