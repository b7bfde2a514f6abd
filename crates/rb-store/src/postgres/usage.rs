//! Daily usage of organisations.

use std::collections::BTreeMap;

use super::error::Sql;
use super::session::Session;
use super::values::text;
use crate::UsageDay;
use crate::numeric::sum_to_db;
use crate::run_totals::UsageDelta;
use crate::sql::Value;

/// Upsert of many rows, prepared before it is pipelined.
pub(super) const ADD: &str = "INSERT INTO usage (org, day, slot, interventions, steps, tokens)
    SELECT org, day, pg_backend_pid() % 16, interventions, steps, tokens
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
        AS u (org, day, interventions, steps, tokens)
    ON CONFLICT (org, day, slot) DO UPDATE SET interventions = usage.interventions + excluded.interventions,
        steps = usage.steps + excluded.steps, tokens = usage.tokens + excluded.tokens";

/// Returns the rows of [`ADD`]: usage by organisation and day. Rows are spread over slots by connection, because waiting for the commit of
/// another connection costs more than summing a few rows.
pub(super) fn rows<'a>(used: &BTreeMap<(&'a str, i64), UsageDelta>) -> Vec<Vec<Value<'a>>> {
    let changed = used.iter().filter(|(_, used)| **used != UsageDelta::default());
    let row = |((org, day), used): (&(&'a str, i64), &UsageDelta)| {
        let numbers = [*day].into_iter().chain(*used).map(Value::Int);
        [text(org)].into_iter().chain(numbers).collect()
    };
    changed.map(row).collect()
}

/// Returns the usage of stored steps by run and day.
pub(super) async fn stored(session: &Session, runs: &[i64]) -> Sql<Vec<(i64, i64, UsageDelta)>> {
    let sql = "SELECT run, day, sum(injected::int)::bigint, count(*), sum(tokens_total)::bigint
        FROM (SELECT run, floor(at_ms / 86400000.0)::bigint AS day, injected, tokens_total FROM steps
            WHERE run = ANY ($1)) s
        GROUP BY run, day";
    let rows = session.select(sql, &[&runs]).await?;
    let counted = |row: &tokio_postgres::Row| {
        Ok((row.try_get(0)?, row.try_get(1)?, [row.try_get(2)?, row.try_get(3)?, row.try_get(4)?]))
    };
    rows.iter().map(counted).collect()
}

/// Replaces the usage of a day, for copies.
pub(super) async fn set(session: &Session, org: &str, day: UsageDay) -> Sql<u64> {
    let numbers =
        [day.day, sum_to_db(day.interventions), sum_to_db(day.steps), sum_to_db(day.tokens)];
    let mut values = vec![text(org)];
    values.extend(numbers.map(Value::Int));
    session.run("DELETE FROM usage WHERE org = ? AND day = ?", &values[..2]).await?;
    let sql = "INSERT INTO usage (org, day, slot, interventions, steps, tokens) VALUES (?, ?, 0, ?, ?, ?)";
    session.run(sql, &values).await
}
