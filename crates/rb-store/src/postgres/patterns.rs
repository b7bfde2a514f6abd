//! Guidance: an organisation's own E1, and E2 and E3, which are everybody's.

use tokio_postgres::Row;

use super::fault::Sql;
use super::scope::{Conditions, Value};
use super::session::Session;
use super::text::{TextIn, json, text, text_maybe};
use crate::numbers::{amount, count_in, count_out};
use crate::{PatternChange, PatternFilter, PatternRow, Scope};

pub(super) async fn put(session: &Session, pattern: &PatternRow) -> Sql<u64> {
    let sql = "INSERT INTO patterns (org, tier, pattern_id, failure_type, model_family, source_trace_id,
            gate_threshold, context, fields, created_ms, updated_ms, uses, used_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
        ON CONFLICT (org, tier, pattern_id) DO UPDATE SET failure_type = excluded.failure_type,
            model_family = excluded.model_family, source_trace_id = excluded.source_trace_id,
            gate_threshold = excluded.gate_threshold, context = excluded.context, fields = excluded.fields,
            created_ms = excluded.created_ms, updated_ms = excluded.updated_ms, uses = excluded.uses,
            used_ms = excluded.used_ms";
    session
        .execute(
            sql,
            &[
                &TextIn::of(&pattern.org),
                &TextIn::of(&pattern.tier),
                &TextIn::of(&pattern.pattern_id),
                &TextIn::maybe(pattern.failure_type.as_deref()),
                &TextIn::maybe(pattern.model_family.as_deref()),
                &TextIn::maybe(pattern.source_trace_id.as_deref()),
                &pattern.gate_threshold.map(amount),
                &TextIn::of(&pattern.context),
                &TextIn::json(&pattern.fields)?,
                &pattern.created_ms,
                &pattern.updated_ms,
                &count_in(pattern.uses),
                &pattern.used_ms,
            ],
        )
        .await
}

pub(super) async fn delete(session: &Session, org: &str, tier: &str, id: &str) -> Sql<u64> {
    let sql = "DELETE FROM patterns WHERE org = $1 AND tier = $2 AND pattern_id = $3";
    session.execute(sql, &[&TextIn::of(org), &TextIn::of(tier), &TextIn::of(id)]).await
}

/// Counts a use of each, named by organisation, tier and id; one that is named twice was used twice.
pub(super) async fn mark_used(
    session: &Session,
    used: &[(String, String, String)],
    at_ms: i64,
) -> Sql<u64> {
    let names = |part: fn(&(String, String, String)) -> &String| {
        used.iter().map(|name| TextIn::of(part(name))).collect::<Vec<_>>()
    };
    let sql = "UPDATE patterns p SET uses = uses + u.times, used_ms = greatest(used_ms, $4)
        FROM (SELECT org, tier, id, count(*) AS times FROM unnest($1::text[], $2::text[], $3::text[])
            AS n (org, tier, id) GROUP BY org, tier, id) u
        WHERE p.org = u.org AND p.tier = u.tier AND p.pattern_id = u.id";
    session
        .execute(
            sql,
            &[&names(|name| &name.0), &names(|name| &name.1), &names(|name| &name.2), &at_ms],
        )
        .await
}

pub(super) async fn list(
    session: &Session,
    scope: &Scope,
    filter: &PatternFilter,
) -> Sql<Vec<PatternRow>> {
    let mut conditions = Conditions::default();
    if let Some(org) = &scope.org {
        // A pattern that carries an organisation is that organisation's, whatever its tier says.
        conditions.add_text("(org = ? OR (org = '' AND tier <> 'e1'))", org);
    }
    if let Some(tier) = &filter.tier {
        conditions.add_text("tier = ?", tier);
    }
    if let Some((tier, id, org)) = &filter.after {
        let place: [Value<'_>; 3] =
            [Box::new(TextIn::of(tier)), Box::new(TextIn::of(id)), Box::new(TextIn::of(org))];
        conditions.add("(tier, pattern_id, org) > (?, ?, ?)", place);
    }
    let count = conditions.place(Box::new(i64::from(filter.count_max)));
    let sql = format!(
        "SELECT * FROM patterns {} ORDER BY tier, pattern_id, org LIMIT {count}",
        conditions.sql()
    );
    session.select(&sql, &conditions.values()).await?.iter().map(pattern).collect()
}

pub(super) async fn find(
    session: &Session,
    org: &str,
    tier: &str,
    id: &str,
) -> Sql<Option<PatternRow>> {
    let sql = "SELECT * FROM patterns WHERE org = $1 AND tier = $2 AND pattern_id = $3";
    let name = [TextIn::of(org), TextIn::of(tier), TextIn::of(id)];
    let rows = session.select(sql, &[&name[0], &name[1], &name[2]]).await?;
    rows.first().map(pattern).transpose()
}

/// One statement, so that nothing can happen between what was put and what is gone.
pub(super) async fn changes(
    session: &Session,
    after_version: u64,
    count_max: u32,
) -> Sql<Vec<(u64, PatternChange)>> {
    // Each half in its order and cut: else all that is newer is sorted for every page (a second at half a million).
    let page = format!("WHERE version > $1 ORDER BY version LIMIT {count_max}");
    let sql = format!(
        "(SELECT version, true AS is_there, org, tier, pattern_id, failure_type, model_family, source_trace_id,
            gate_threshold, context, fields, created_ms, updated_ms, uses, used_ms
        FROM patterns {page})
        UNION ALL (SELECT version, false, org, tier, pattern_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
            NULL FROM patterns_gone {page}) ORDER BY version LIMIT {count_max}"
    );
    let rows = session.select(&sql, &[&count_in(after_version)]).await?;
    rows.iter().map(change).collect()
}

fn change(row: &Row) -> Sql<(u64, PatternChange)> {
    let change = if row.try_get("is_there")? {
        PatternChange::Put(Box::new(pattern(row)?))
    } else {
        let (org, tier) = (text(row, "org")?, text(row, "tier")?);
        PatternChange::Gone { org, tier, pattern_id: text(row, "pattern_id")? }
    };
    Ok((count_out(row.try_get("version")?), change))
}

fn pattern(row: &Row) -> Sql<PatternRow> {
    Ok(PatternRow {
        org: text(row, "org")?,
        tier: text(row, "tier")?,
        pattern_id: text(row, "pattern_id")?,
        failure_type: text_maybe(row, "failure_type")?,
        model_family: text_maybe(row, "model_family")?,
        source_trace_id: text_maybe(row, "source_trace_id")?,
        gate_threshold: row.try_get("gate_threshold")?,
        context: text(row, "context")?,
        fields: json(row, "fields")?,
        created_ms: row.try_get("created_ms")?,
        updated_ms: row.try_get("updated_ms")?,
        uses: count_out(row.try_get("uses")?),
        used_ms: row.try_get("used_ms")?,
    })
}
