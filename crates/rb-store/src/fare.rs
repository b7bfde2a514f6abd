//! How many runs fare together, from the sums that each has in its row.

use std::collections::BTreeMap;

use crate::numbers::{count_out, nano_out};
use crate::{Health, MonitorHealth, OutcomeClass, Tokens};

/// What one run brings.
pub(crate) struct RunFare {
    pub(crate) outcome: Option<String>,
    pub(crate) steps: u64,
    pub(crate) fired_steps: i64,
    pub(crate) score_nano: i64,
    pub(crate) score_peak: f64,
    pub(crate) tokens: Tokens,
    pub(crate) cost_nano: i64,
    pub(crate) framework: String,
    /// Fired, low, warn, danger.
    pub(crate) monitors: BTreeMap<String, [i64; 4]>,
}

impl RunFare {
    /// What has to be read of a run.
    pub(crate) const COLUMNS: &str = "outcome, step_count, fired_steps, score_nano, score_peak, tokens_total, \
                                      tokens_input, tokens_output, cache_read, cache_write, cost_nano, framework, \
                                      monitors";
}

/// The sums, in billionths until the end, so that the order of the runs does not show.
#[derive(Default)]
pub(crate) struct Fare {
    health: Health,
    score_nano: i64,
    cost_nano: i64,
    /// Runs, score, steps, peak.
    frameworks: BTreeMap<String, (u64, i64, u64, f64)>,
}

impl Fare {
    pub(crate) fn add(&mut self, run: RunFare) {
        let health = &mut self.health;
        health.runs += 1;
        health.steps += run.steps;
        health.success_runs +=
            u64::from(OutcomeClass::of(run.outcome.as_deref()) == OutcomeClass::Success);
        health.fired_runs += u64::from(run.fired_steps > 0);
        health.clean_runs += u64::from(run.score_peak < Health::CLEAN_BELOW);
        health.score_peak = health.score_peak.max(run.score_peak);
        health.tokens.total += run.tokens.total;
        health.tokens.input += run.tokens.input;
        health.tokens.output += run.tokens.output;
        health.tokens.cache_read += run.tokens.cache_read;
        health.tokens.cache_write += run.tokens.cache_write;
        self.score_nano += run.score_nano;
        self.cost_nano += run.cost_nano;
        let (runs, score, steps, peak) = self.frameworks.entry(run.framework).or_default();
        *runs += 1;
        *score += run.score_nano;
        *steps += run.steps;
        *peak = peak.max(run.score_peak);
        for (name, counts) in run.monitors {
            add(health.by_monitor.entry(name).or_default(), counts);
        }
    }

    pub(crate) fn health(self) -> Health {
        let framework =
            |(name, (runs, score, steps, peak))| (name, (runs, nano_out(score), steps, peak));
        Health {
            score_sum: nano_out(self.score_nano),
            cost_usd: nano_out(self.cost_nano),
            by_framework: self.frameworks.into_iter().map(framework).collect(),
            ..self.health
        }
    }
}

fn add(health: &mut MonitorHealth, counts: [i64; 4]) {
    let [fired, low, warn, danger] = counts.map(count_out);
    health.fired += fired;
    health.low += low;
    health.warn += warn;
    health.danger += danger;
}
