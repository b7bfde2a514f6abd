//! Daily usage of organisations.

use rusqlite::{Connection, Result};

use super::{execute, select};
use crate::UsageDay;
use crate::numeric::{count_from_db, day, sum_to_db};
use crate::run_totals::UsageDelta;

const ADD: &str =
    "INSERT INTO usage (org, day, interventions, steps, tokens) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET interventions = interventions + excluded.interventions,
        steps = steps + excluded.steps, tokens = tokens + excluded.tokens";

/// Adds to the usage of a day; negative values subtract.
pub(super) fn add(connection: &Connection, org: &str, day: i64, used: UsageDelta) -> Result<()> {
    let [interventions, steps, tokens] = used;
    execute(connection, ADD, (org, day, interventions, steps, tokens)).map(drop)
}

/// Subtracts all steps of a run that became part of an experiment.
pub(super) fn take_run(connection: &Connection, org: &str, run: i64) -> Result<()> {
    let sql = "SELECT at_ms, injected, tokens_total FROM steps WHERE run = ?1";
    let counted = select(connection, sql, [run], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    })?;
    for (at_ms, injected, tokens) in counted {
        add(connection, org, day(at_ms), [-injected, -1, -tokens])?;
    }
    Ok(())
}

/// Replaces the usage of a day, for copies.
pub(super) fn set(connection: &Connection, org: &str, day: UsageDay) -> Result<u64> {
    let sql = "INSERT OR REPLACE INTO usage (org, day, interventions, steps, tokens)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let [interventions, steps, tokens] = [day.interventions, day.steps, day.tokens].map(sum_to_db);
    execute(connection, sql, (org, day.day, interventions, steps, tokens))
}

pub(super) fn list(connection: &Connection, org: &str, since_day: i64) -> Result<Vec<UsageDay>> {
    // A day whose steps were all subtracted has no usage.
    let sql = "SELECT day, interventions, steps, tokens FROM usage
        WHERE org = ?1 AND day >= ?2 AND steps > 0 ORDER BY day";
    select(connection, sql, (org, since_day), |row| {
        Ok(UsageDay {
            day: row.get(0)?,
            interventions: count_from_db(row.get(1)?),
            steps: count_from_db(row.get(2)?),
            tokens: count_from_db(row.get(3)?),
        })
    })
}
