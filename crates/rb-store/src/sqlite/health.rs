//! How the runs of a scope fare: one pass over their rows, no step is read.

use std::collections::BTreeMap;

use rusqlite::{Connection, Result, params_from_iter};

use super::cell::{count_out, json_out, nano_out};
use super::scope::Conditions;
use super::steps;
use crate::{DayHealth, Health, MonitorHealth, OutcomeClass, Scope};

const DAY_MS: i64 = 86_400_000;

pub(super) fn health(connection: &Connection, scope: &Scope, since_ms: i64) -> Result<Health> {
    let mut conditions = Conditions::of(scope, "r");
    conditions.add("r.started_ms >= ?", [since_ms.into()]);
    let sql = format!(
        "SELECT outcome, started_ms, step_count, fired_steps, warn_steps, danger_steps, score_nano, score_peak, tokens_total, tokens_input,
            tokens_output, cache_read, cache_write, cost_nano, framework, monitors
         FROM runs r {}",
        conditions.sql()
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(conditions.values))?;
    let mut health = Health::default();
    // Billionths until the end, so that the order of the runs does not show in the sums.
    let (mut score_nano, mut cost_nano) = (0, 0);
    let mut days: BTreeMap<i64, (DayHealth, i64)> = BTreeMap::new();
    let mut frameworks: BTreeMap<String, (u64, i64, u64, f64)> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let outcome: Option<String> = row.get("outcome")?;
        let steps = count_out(row.get("step_count")?);
        let summed: i64 = row.get("score_nano")?;
        let peak: f64 = row.get("score_peak")?;
        let spent = steps::tokens(row)?;
        let paid: i64 = row.get("cost_nano")?;
        let is_clean = peak < Health::CLEAN_BELOW;
        health.runs += 1;
        health.steps += steps;
        health.success_runs +=
            u64::from(OutcomeClass::of(outcome.as_deref()) == OutcomeClass::Success);
        health.fired_runs += u64::from(row.get::<_, i64>("fired_steps")? > 0);
        health.clean_runs += u64::from(is_clean);
        health.warn_steps += count_out(row.get("warn_steps")?);
        health.danger_steps += count_out(row.get("danger_steps")?);
        health.score_peak = health.score_peak.max(peak);
        health.tokens.total += spent.total;
        health.tokens.input += spent.input;
        health.tokens.output += spent.output;
        health.tokens.cache_read += spent.cache_read;
        health.tokens.cache_write += spent.cache_write;
        score_nano += summed;
        cost_nano += paid;
        let day = row.get::<_, i64>("started_ms")?.div_euclid(DAY_MS);
        let (on_day, paid_on_day) = days.entry(day).or_default();
        on_day.runs += 1;
        on_day.clean_runs += u64::from(is_clean);
        on_day.steps += steps;
        on_day.tokens += spent.total;
        *paid_on_day += paid;
        let framework = frameworks.entry(row.get("framework")?).or_default();
        *framework =
            (framework.0 + 1, framework.1 + summed, framework.2 + steps, framework.3.max(peak));
        let monitors: BTreeMap<String, [i64; 4]> = json_out(row, "monitors")?;
        for (name, counts) in monitors {
            add(health.by_monitor.entry(name).or_default(), counts);
        }
    }
    health.score_sum = nano_out(score_nano);
    health.cost_usd = nano_out(cost_nano);
    let on_day = |(day, (of, paid))| (day, DayHealth { cost_usd: nano_out(paid), ..of });
    health.by_day = days.into_iter().map(on_day).collect();
    health.by_framework = frameworks
        .into_iter()
        .map(|(name, (runs, score, steps, peak))| (name, (runs, nano_out(score), steps, peak)))
        .collect();
    Ok(health)
}

fn add(health: &mut MonitorHealth, counts: [i64; 4]) {
    let [fired, low, warn, danger] = counts.map(count_out);
    health.fired += fired;
    health.low += low;
    health.warn += warn;
    health.danger += danger;
}
