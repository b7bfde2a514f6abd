//! Health of the runs of a scope: one pass over the runs, without reading steps.

use rusqlite::{Connection, Result, params_from_iter};

use super::columns::from_json;
use super::scope::Conditions;
use super::steps;
use crate::health_rollup::{HealthRollup, RunHealth};
use crate::numeric::count_from_db;
use crate::{Health, Scope};

pub(super) fn health(connection: &Connection, scope: &Scope, since_ms: i64) -> Result<Health> {
    let mut conditions = Conditions::of(scope, "r");
    conditions.add("r.started_ms >= ?", [since_ms.into()]);
    let sql = format!("SELECT {} FROM runs r {}", RunHealth::COLUMNS, conditions.sql());
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(conditions.values))?;
    let mut rollup = HealthRollup::default();
    while let Some(row) = rows.next()? {
        rollup.add(RunHealth {
            outcome: row.get("outcome")?,
            started_ms: row.get("started_ms")?,
            steps: count_from_db(row.get("step_count")?),
            fired_steps: row.get("fired_steps")?,
            warn_steps: count_from_db(row.get("warn_steps")?),
            danger_steps: count_from_db(row.get("danger_steps")?),
            score_nano: row.get("score_nano")?,
            score_peak: row.get("score_peak")?,
            tokens: steps::tokens(row)?,
            cost_nano: row.get("cost_nano")?,
            framework: row.get("framework")?,
            monitors: from_json(row, "monitors")?,
        });
    }
    Ok(rollup.health())
}
