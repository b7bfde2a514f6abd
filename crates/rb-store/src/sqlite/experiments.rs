//! Experiments and their runs, read from the totals of runs.

use rusqlite::{Connection, Result, Row, params_from_iter};

use super::columns::from_json;
use super::scope::Conditions;
use super::select;
use crate::numeric::{count_from_db, from_nano};
use crate::run_totals::by_model;
use crate::{ExperimentRun, Scope};

pub(super) fn names(connection: &Connection, scope: &Scope) -> Result<Vec<(String, u64)>> {
    let mut conditions = Conditions::of(scope, "r");
    conditions.add("r.experiment_id <> ''", []);
    let sql = format!(
        "SELECT experiment_id, count(*) FROM runs r {} GROUP BY experiment_id ORDER BY experiment_id",
        conditions.sql()
    );
    select(connection, &sql, params_from_iter(conditions.values), |row| {
        Ok((row.get(0)?, count_from_db(row.get(1)?)))
    })
}

pub(super) fn runs(connection: &Connection, scope: &Scope, id: &str) -> Result<Vec<ExperimentRun>> {
    let mut conditions = Conditions::of(scope, "r");
    // Redundant, but required for the partial index.
    conditions.add("r.experiment_id <> ''", []);
    conditions.add("r.experiment_id = ?", [id.to_owned().into()]);
    let sql = format!(
        "SELECT run_id, arm, outcome, task_profile, started_ms, step_count, score_nano, score_peak,
            injected_steps, fired_steps, model, models
         FROM runs r {} ORDER BY r.started_ms, r.org, r.run_id",
        conditions.sql()
    );
    select(connection, &sql, params_from_iter(conditions.values), run)
}

fn run(row: &Row<'_>) -> Result<ExperimentRun> {
    Ok(ExperimentRun {
        run_id: row.get("run_id")?,
        arm: row.get("arm")?,
        outcome: row.get("outcome")?,
        task_profile: row.get("task_profile")?,
        started_ms: row.get("started_ms")?,
        step_count: count_from_db(row.get("step_count")?),
        score_sum: from_nano(row.get("score_nano")?),
        score_peak: row.get("score_peak")?,
        injected_steps: count_from_db(row.get("injected_steps")?),
        fired_steps: count_from_db(row.get("fired_steps")?),
        by_model: by_model(row.get("model")?, from_json(row, "models")?),
    })
}
