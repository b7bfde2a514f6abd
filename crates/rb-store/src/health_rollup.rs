//! Aggregates the totals of runs to health figures.

use std::collections::BTreeMap;

use crate::numeric::{count_from_db, day, from_nano};
use crate::{DayHealth, Health, MonitorHealth, OutcomeClass, Tokens};

/// Totals of one run.
#[derive(Default)]
pub(crate) struct RunHealth {
    pub(crate) outcome: Option<String>,
    pub(crate) started_ms: i64,
    pub(crate) steps: u64,
    pub(crate) fired_steps: i64,
    pub(crate) warn_steps: u64,
    pub(crate) danger_steps: u64,
    pub(crate) score_nano: i64,
    pub(crate) score_peak: f64,
    pub(crate) tokens: Tokens,
    pub(crate) cost_nano: i64,
    pub(crate) framework: String,
    /// Counts of fired, low, warn and danger.
    pub(crate) monitors: BTreeMap<String, [i64; 4]>,
}

/// Running sums. Fractions are summed in billionths, so the result does not depend on the order of runs.
#[derive(Default)]
pub(crate) struct HealthRollup {
    health: Health,
    score_nano: i64,
    cost_nano: i64,
    /// Runs, score, steps and peak.
    frameworks: BTreeMap<String, (u64, i64, u64, f64)>,
    /// Totals of a day and its cost in billionths.
    days: BTreeMap<i64, (DayHealth, i64)>,
}

impl HealthRollup {
    pub(crate) fn add(&mut self, run: RunHealth) {
        let health = &mut self.health;
        let is_clean = run.score_peak < Health::CLEAN_BELOW;
        health.runs += 1;
        health.steps += run.steps;
        health.success_runs +=
            u64::from(OutcomeClass::of(run.outcome.as_deref()) == OutcomeClass::Success);
        health.fired_runs += u64::from(run.fired_steps > 0);
        health.clean_runs += u64::from(is_clean);
        health.warn_steps += run.warn_steps;
        health.danger_steps += run.danger_steps;
        health.score_peak = health.score_peak.max(run.score_peak);
        health.tokens.total += run.tokens.total;
        health.tokens.input += run.tokens.input;
        health.tokens.output += run.tokens.output;
        health.tokens.cache_read += run.tokens.cache_read;
        health.tokens.cache_write += run.tokens.cache_write;
        self.score_nano += run.score_nano;
        self.cost_nano += run.cost_nano;
        let (on_day, cost_nano) = self.days.entry(day(run.started_ms)).or_default();
        on_day.runs += 1;
        on_day.clean_runs += u64::from(is_clean);
        on_day.steps += run.steps;
        on_day.tokens += run.tokens.total;
        *cost_nano += run.cost_nano;
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
            |(name, (runs, score, steps, peak))| (name, (runs, from_nano(score), steps, peak));
        let on_day = |(day, (of, cost))| (day, DayHealth { cost_usd: from_nano(cost), ..of });
        Health {
            score_sum: from_nano(self.score_nano),
            cost_usd: from_nano(self.cost_nano),
            by_framework: self.frameworks.into_iter().map(framework).collect(),
            by_day: self.days.into_iter().map(on_day).collect(),
            ..self.health
        }
    }
}

fn add(health: &mut MonitorHealth, counts: [i64; 4]) {
    let [fired, low, warn, danger] = counts.map(count_from_db);
    health.fired += fired;
    health.low += low;
    health.warn += warn;
    health.danger += danger;
}
