//! How the runs of a scope fare: one pass over their rows, no step is read.

use rusqlite::{Connection, Result, params_from_iter};

use super::cell::json_out;
use super::scope::Conditions;
use super::steps;
use crate::fare::{Fare, RunFare};
use crate::numbers::count_out;
use crate::{Health, Scope};

pub(super) fn health(connection: &Connection, scope: &Scope, since_ms: i64) -> Result<Health> {
    let mut conditions = Conditions::of(scope, "r");
    conditions.add("r.started_ms >= ?", [since_ms.into()]);
    let sql = format!("SELECT {} FROM runs r {}", RunFare::COLUMNS, conditions.sql());
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(conditions.values))?;
    let mut fare = Fare::default();
    while let Some(row) = rows.next()? {
        fare.add(RunFare {
            outcome: row.get("outcome")?,
            started_ms: row.get("started_ms")?,
            steps: count_out(row.get("step_count")?),
            fired_steps: row.get("fired_steps")?,
            warn_steps: count_out(row.get("warn_steps")?),
            danger_steps: count_out(row.get("danger_steps")?),
            score_nano: row.get("score_nano")?,
            score_peak: row.get("score_peak")?,
            tokens: steps::tokens(row)?,
            cost_nano: row.get("cost_nano")?,
            framework: row.get("framework")?,
            monitors: json_out(row, "monitors")?,
        });
    }
    Ok(fare.health())
}
