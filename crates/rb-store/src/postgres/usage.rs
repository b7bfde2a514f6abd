//! What an organisation used on which day.

use std::collections::BTreeMap;

use super::fault::Sql;
use super::session::Session;
use super::text::TextIn;
use crate::UsageDay;
use crate::numbers::{count_out, sum_in};
use crate::tally::Used;

/// Prepared before it is sent with others.
pub(super) const ADD: &str = "INSERT INTO usage (org, day, slot, interventions, steps, tokens)
    SELECT org, day, pg_backend_pid() % 16, interventions, steps, tokens
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
        AS u (org, day, interventions, steps, tokens)
    ON CONFLICT (org, day, slot) DO UPDATE SET interventions = usage.interventions + excluded.interventions,
        steps = usage.steps + excluded.steps, tokens = usage.tokens + excluded.tokens";

/// Adds what was used by organisation and day. Every connection has rows of its own, or nearly so: waiting for
/// another's commit would cost more than reading a few rows more.
pub(super) async fn add(session: &Session, used: &BTreeMap<(&str, i64), Used>) -> Sql<u64> {
    let used: BTreeMap<_, _> = used.iter().filter(|(_, used)| **used != Used::default()).collect();
    if used.is_empty() {
        return Ok(0);
    }
    let orgs: Vec<TextIn<'_>> = used.keys().map(|(org, _)| TextIn::of(org)).collect();
    let days: Vec<i64> = used.keys().map(|(_, day)| *day).collect();
    let column = |at: usize| used.values().map(|used| used[at]).collect::<Vec<i64>>();
    session.execute(ADD, &[&orgs, &days, &column(0), &column(1), &column(2)]).await
}

/// What the stored steps of runs count as, by run and day.
pub(super) async fn stored(session: &Session, runs: &[i64]) -> Sql<Vec<(i64, i64, Used)>> {
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

/// For copies: what was used on a day, whatever the steps say.
pub(super) async fn set(session: &Session, org: &str, day: UsageDay) -> Sql<u64> {
    let org = TextIn::of(org);
    session.execute("DELETE FROM usage WHERE org = $1 AND day = $2", &[&org, &day.day]).await?;
    let sql = "INSERT INTO usage (org, day, slot, interventions, steps, tokens)
        VALUES ($1, $2, 0, $3, $4, $5)";
    let [interventions, steps, tokens] = [day.interventions, day.steps, day.tokens].map(sum_in);
    session.execute(sql, &[&org, &day.day, &interventions, &steps, &tokens]).await
}

pub(super) async fn list(session: &Session, org: &str, since_day: i64) -> Sql<Vec<UsageDay>> {
    // A day of which every step was taken back is a day without use.
    let sql =
        "SELECT day, sum(interventions)::bigint, sum(steps)::bigint, sum(tokens)::bigint FROM usage
        WHERE org = $1 AND day >= $2 GROUP BY day HAVING sum(steps) > 0 ORDER BY day";
    let rows = session.select(sql, &[&TextIn::of(org), &since_day]).await?;
    let used = |row: &tokio_postgres::Row| {
        Ok(UsageDay {
            day: row.try_get(0)?,
            interventions: count_out(row.try_get(1)?),
            steps: count_out(row.try_get(2)?),
            tokens: count_out(row.try_get(3)?),
        })
    };
    rows.iter().map(used).collect()
}
