//! Health of the runs of a scope: one pass over the runs, without reading steps.

use std::pin::pin;

use futures_util::TryStreamExt as _;

use super::error::Sql;
use super::scope::Conditions;
use super::session::Session;
use super::steps::tokens;
use super::text::{json, text, text_maybe};
use crate::health_rollup::{HealthRollup, RunHealth};
use crate::numeric::count_from_db;
use crate::{Health, Scope};

pub(super) async fn health(session: &Session, scope: &Scope, since_ms: i64) -> Sql<Health> {
    let mut conditions = Conditions::of(scope, "r");
    conditions.add_number("r.started_ms >= ?", since_ms);
    let sql = format!("SELECT {} FROM runs r {}", RunHealth::COLUMNS, conditions.sql());
    // Streamed, since there may be millions of rows.
    let mut rows = pin!(session.stream(&sql, conditions.values()).await?);
    let mut rollup = HealthRollup::default();
    while let Some(row) = rows.try_next().await? {
        rollup.add(RunHealth {
            outcome: text_maybe(&row, "outcome")?,
            started_ms: row.try_get("started_ms")?,
            steps: count_from_db(row.try_get("step_count")?),
            fired_steps: row.try_get("fired_steps")?,
            warn_steps: count_from_db(row.try_get("warn_steps")?),
            danger_steps: count_from_db(row.try_get("danger_steps")?),
            score_nano: row.try_get("score_nano")?,
            score_peak: row.try_get("score_peak")?,
            tokens: tokens(&row)?,
            cost_nano: row.try_get("cost_nano")?,
            framework: text(&row, "framework")?,
            monitors: json(&row, "monitors")?,
        });
    }
    Ok(rollup.health())
}
