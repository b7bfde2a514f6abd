//! Totals over all runs.

use std::fmt::Write as _;

use rb_engine::monitors::ALL;

use super::assess::{Fire, Verdict};
use crate::ui::{BOLD, DIM, counted, grouped};

#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) runs: u64,
    pub(super) steps: u64,
    /// Runs in which a monitor fired.
    pub(super) fired_runs: u64,
    /// Number of runs per monitor of the table.
    fired_by: [u64; ALL.len()],
    /// Number of runs in which each monitor was a quiet signal.
    signalled_by: [u64; ALL.len()],
}

impl Summary {
    pub(super) fn of(verdict: &Verdict) -> Self {
        let has = |fires: &[Fire], id| u64::from(fires.iter().any(|fire| fire.monitor.id == id));
        Self {
            runs: 1,
            steps: u64::try_from(verdict.steps.len()).unwrap_or(u64::MAX),
            fired_runs: u64::from(!verdict.fires.is_empty()),
            fired_by: ALL.map(|spec| has(&verdict.fires, spec.id)),
            signalled_by: ALL.map(|spec| has(&verdict.signals, spec.id)),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.steps += other.steps;
        self.fired_runs += other.fired_runs;
        for (mine, theirs) in self.fired_by.iter_mut().zip(other.fired_by) {
            *mine += theirs;
        }
        for (mine, theirs) in self.signalled_by.iter_mut().zip(other.signalled_by) {
            *mine += theirs;
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{BOLD}{}{BOLD:#}, {}: a monitor fired in {}{}\n",
            counted(self.runs, "run"),
            counted(self.steps, "step"),
            grouped(self.fired_runs),
            percent(self.fired_runs, self.runs),
        );
        for (spec, runs) in ALL.iter().zip(self.fired_by).filter(|(_, runs)| *runs > 0) {
            let share = percent(runs, self.runs);
            let (id, summary) = (spec.id, spec.summary);
            let _ =
                writeln!(text, "  {id:<19} {:>8}{share:<8} {DIM}{summary}{DIM:#}", grouped(runs));
        }
        let signals = ALL.iter().zip(self.signalled_by).filter(|(_, runs)| *runs > 0);
        let signals: Vec<String> =
            signals.map(|(spec, runs)| format!("{} in {}", spec.id, grouped(runs))).collect();
        if !signals.is_empty() {
            let _ = writeln!(text, "  {DIM}signals: {}{DIM:#}", signals.join(", "));
        }
        text
    }
}

fn percent(part: u64, whole: u64) -> String {
    match (part * 100).checked_div(whole) {
        Some(0) if part > 0 => " (<1 %)".to_owned(),
        Some(percent) => format!(" ({percent} %)"),
        None => String::new(),
    }
}
