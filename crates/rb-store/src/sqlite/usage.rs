//! What an organisation used on which day.

use rusqlite::{Connection, Result};

use super::{execute, select};
use crate::UsageDay;
use crate::numbers::{count_out, day, sum_in};
use crate::tally::Used;

const ADD: &str =
    "INSERT INTO usage (org, day, interventions, steps, tokens) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET interventions = interventions + excluded.interventions,
        steps = steps + excluded.steps, tokens = tokens + excluded.tokens";

/// Adds to what was used on a day, or takes away from it.
pub(super) fn add(connection: &Connection, org: &str, day: i64, used: Used) -> Result<()> {
    let [interventions, steps, tokens] = used;
    execute(connection, ADD, (org, day, interventions, steps, tokens)).map(drop)
}

/// A run turned out to be part of an experiment: none of its steps count.
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

/// For copies: what was used on a day, whatever the steps say.
pub(super) fn set(connection: &Connection, org: &str, day: UsageDay) -> Result<u64> {
    let sql = "INSERT OR REPLACE INTO usage (org, day, interventions, steps, tokens)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    let [interventions, steps, tokens] = [day.interventions, day.steps, day.tokens].map(sum_in);
    execute(connection, sql, (org, day.day, interventions, steps, tokens))
}

pub(super) fn list(connection: &Connection, org: &str, since_day: i64) -> Result<Vec<UsageDay>> {
    // A day of which every step was taken back is a day without use.
    let sql = "SELECT day, interventions, steps, tokens FROM usage
        WHERE org = ?1 AND day >= ?2 AND steps > 0 ORDER BY day";
    select(connection, sql, (org, since_day), |row| {
        Ok(UsageDay {
            day: row.get(0)?,
            interventions: count_out(row.get(1)?),
            steps: count_out(row.get(2)?),
            tokens: count_out(row.get(3)?),
        })
    })
}
