//! Daily usage of organisations.

use std::collections::BTreeMap;

use super::error::Sql;
use super::session::Session;
use super::text::EncodedText;
use crate::UsageDay;
use crate::numeric::{count_from_db, sum_to_db};
use crate::run_totals::UsageDelta;

/// Upsert of many rows, prepared before it is pipelined.
pub(super) const ADD: &str = "INSERT INTO usage (org, day, slot, interventions, steps, tokens)
    SELECT org, day, pg_backend_pid() % 16, interventions, steps, tokens
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
        AS u (org, day, interventions, steps, tokens)
    ON CONFLICT (org, day, slot) DO UPDATE SET interventions = usage.interventions + excluded.interventions,
        steps = usage.steps + excluded.steps, tokens = usage.tokens + excluded.tokens";

/// Adds usage by organisation and day. Rows are spread over slots by connection, because waiting for the commit of
/// another connection costs more than summing a few rows.
pub(super) async fn add(session: &Session, used: &BTreeMap<(&str, i64), UsageDelta>) -> Sql<u64> {
    let used: BTreeMap<_, _> =
        used.iter().filter(|(_, used)| **used != UsageDelta::default()).collect();
    if used.is_empty() {
        return Ok(0);
    }
    let orgs: Vec<EncodedText<'_>> = used.keys().map(|(org, _)| EncodedText::of(org)).collect();
    let days: Vec<i64> = used.keys().map(|(_, day)| *day).collect();
    let column = |at: usize| used.values().map(|used| used[at]).collect::<Vec<i64>>();
    session.execute(ADD, &[&orgs, &days, &column(0), &column(1), &column(2)]).await
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
    let org = EncodedText::of(org);
    session.execute("DELETE FROM usage WHERE org = $1 AND day = $2", &[&org, &day.day]).await?;
    let sql = "INSERT INTO usage (org, day, slot, interventions, steps, tokens)
        VALUES ($1, $2, 0, $3, $4, $5)";
    let [interventions, steps, tokens] = [day.interventions, day.steps, day.tokens].map(sum_to_db);
    session.execute(sql, &[&org, &day.day, &interventions, &steps, &tokens]).await
}

pub(super) async fn list(session: &Session, org: &str, since_day: i64) -> Sql<Vec<UsageDay>> {
    // A day whose steps were all subtracted has no usage.
    let sql =
        "SELECT day, sum(interventions)::bigint, sum(steps)::bigint, sum(tokens)::bigint FROM usage
        WHERE org = $1 AND day >= $2 GROUP BY day HAVING sum(steps) > 0 ORDER BY day";
    let rows = session.select(sql, &[&EncodedText::of(org), &since_day]).await?;
    let used = |row: &tokio_postgres::Row| {
        Ok(UsageDay {
            day: row.try_get(0)?,
            interventions: count_from_db(row.try_get(1)?),
            steps: count_from_db(row.try_get(2)?),
            tokens: count_from_db(row.try_get(3)?),
        })
    };
    rows.iter().map(used).collect()
}
