//! Daily usage of organisations.

use rusqlite::{Connection, Result};

use super::{execute, for_each};
use crate::UsageDay;
use crate::numeric::{day, sum_to_db};
use crate::run_totals::UsageDelta;
use crate::sql::{Value, next};

const ADD: &str =
    "INSERT INTO usage (org, day, interventions, steps, tokens) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET interventions = interventions + excluded.interventions,
        steps = steps + excluded.steps, tokens = tokens + excluded.tokens";

/// Adds to the usage of a day; negative values subtract.
pub(super) fn add(connection: &Connection, org: &str, day: i64, used: UsageDelta) -> Result<()> {
    execute(connection, ADD, &values(org, day, used)).map(drop)
}

fn values(org: &str, day: i64, [interventions, steps, tokens]: UsageDelta) -> [Value<'_>; 5] {
    let [day, interventions, steps, tokens] = [day, interventions, steps, tokens].map(Value::Int);
    [Value::Text(org.into()), day, interventions, steps, tokens]
}

/// Subtracts all steps of a run that became part of an experiment.
pub(super) fn take_run(connection: &Connection, org: &str, run: i64) -> Result<()> {
    let sql = "SELECT at_ms, injected, tokens_total FROM steps WHERE run = ?";
    let mut counted: Vec<[i64; 3]> = Vec::new();
    for_each(connection, sql, &[Value::Int(run)], |columns| {
        counted.push(next(columns)?);
        Ok(())
    })?;
    for [at_ms, injected, tokens] in counted {
        add(connection, org, day(at_ms), [-injected, -1, -tokens])?;
    }
    Ok(())
}

/// Replaces the usage of a day, for copies.
pub(super) fn set(connection: &Connection, org: &str, day: UsageDay) -> Result<u64> {
    let sql = "INSERT OR REPLACE INTO usage (org, day, interventions, steps, tokens)
        VALUES (?, ?, ?, ?, ?)";
    let used = [day.interventions, day.steps, day.tokens].map(sum_to_db);
    execute(connection, sql, &values(org, day.day, used))
}
