//! How the runs of a scope fare: one pass over their rows, no step is read.

use std::pin::pin;

use futures_util::TryStreamExt as _;

use super::fault::Sql;
use super::scope::Conditions;
use super::session::Session;
use super::steps::tokens;
use super::text::{json, text, text_maybe};
use crate::fare::{Fare, RunFare};
use crate::numbers::count_out;
use crate::{Health, Scope};

pub(super) async fn health(session: &Session, scope: &Scope, since_ms: i64) -> Sql<Health> {
    let mut conditions = Conditions::of(scope, "r");
    conditions.add_number("r.started_ms >= ?", since_ms);
    let sql = format!("SELECT {} FROM runs r {}", RunFare::COLUMNS, conditions.sql());
    // Row by row: there may be a million of them.
    let mut rows = pin!(session.stream(&sql, conditions.values()).await?);
    let mut fare = Fare::default();
    while let Some(row) = rows.try_next().await? {
        fare.add(RunFare {
            outcome: text_maybe(&row, "outcome")?,
            started_ms: row.try_get("started_ms")?,
            steps: count_out(row.try_get("step_count")?),
            fired_steps: row.try_get("fired_steps")?,
            warn_steps: count_out(row.try_get("warn_steps")?),
            danger_steps: count_out(row.try_get("danger_steps")?),
            score_nano: row.try_get("score_nano")?,
            score_peak: row.try_get("score_peak")?,
            tokens: tokens(&row)?,
            cost_nano: row.try_get("cost_nano")?,
            framework: text(&row, "framework")?,
            monitors: json(&row, "monitors")?,
        });
    }
    Ok(fare.health())
}
