//! Experiments and their runs, read from the totals of runs.

use tokio_postgres::Row;

use super::error::Sql;
use super::scope::Conditions;
use super::session::Session;
use super::text::{json, text, text_maybe};
use crate::numeric::{count_from_db, from_nano};
use crate::run_totals::by_model;
use crate::{ExperimentRun, Scope};

pub(super) async fn names(session: &Session, scope: &Scope) -> Sql<Vec<(String, u64)>> {
    let mut conditions = Conditions::of(scope, "r");
    conditions.add("r.experiment_id <> ''", []);
    let sql = format!(
        "SELECT experiment_id, count(*) AS runs FROM runs r {} GROUP BY experiment_id ORDER BY experiment_id",
        conditions.sql()
    );
    let rows = session.select(&sql, &conditions.values()).await?;
    let name = |row: &Row| Ok((text(row, "experiment_id")?, count_from_db(row.try_get("runs")?)));
    rows.iter().map(name).collect()
}

pub(super) async fn runs(session: &Session, scope: &Scope, id: &str) -> Sql<Vec<ExperimentRun>> {
    let mut conditions = Conditions::of(scope, "r");
    // Redundant, but required for the partial index.
    conditions.add("r.experiment_id <> ''", []);
    conditions.add_text("r.experiment_id = ?", id);
    let sql = format!(
        "SELECT run_id, arm, outcome, task_profile, started_ms, step_count, score_nano, score_peak,
            injected_steps, fired_steps, model, models
         FROM runs r {} ORDER BY r.started_ms, r.org, r.run_id",
        conditions.sql()
    );
    session.select(&sql, &conditions.values()).await?.iter().map(run).collect()
}

fn run(row: &Row) -> Sql<ExperimentRun> {
    Ok(ExperimentRun {
        run_id: text(row, "run_id")?,
        arm: text(row, "arm")?,
        outcome: text_maybe(row, "outcome")?,
        task_profile: text(row, "task_profile")?,
        started_ms: row.try_get("started_ms")?,
        step_count: count_from_db(row.try_get("step_count")?),
        score_sum: from_nano(row.try_get("score_nano")?),
        score_peak: row.try_get("score_peak")?,
        injected_steps: count_from_db(row.try_get("injected_steps")?),
        fired_steps: count_from_db(row.try_get("fired_steps")?),
        by_model: by_model(text(row, "model")?, json(row, "models")?),
    })
}
