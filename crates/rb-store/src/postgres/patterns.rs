//! Guidance patterns: E1 of an organisation, E2 and E3 of all.

use tokio_postgres::Row;

use super::error::Sql;
use super::scope::{Conditions, Value};
use super::session::Session;
use super::text::{EncodedText, json, text, text_maybe};
use crate::numeric::{amount, count_from_db, count_to_db};
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
                &EncodedText::of(&pattern.org),
                &EncodedText::of(&pattern.tier),
                &EncodedText::of(&pattern.pattern_id),
                &EncodedText::maybe(pattern.failure_type.as_deref()),
                &EncodedText::maybe(pattern.model_family.as_deref()),
                &EncodedText::maybe(pattern.source_trace_id.as_deref()),
                &pattern.gate_threshold.map(amount),
                &EncodedText::of(&pattern.context),
                &EncodedText::json(&pattern.fields)?,
                &pattern.created_ms,
                &pattern.updated_ms,
                &count_to_db(pattern.uses),
                &pattern.used_ms,
            ],
        )
        .await
}

pub(super) async fn delete(session: &Session, org: &str, tier: &str, id: &str) -> Sql<u64> {
    let sql = "DELETE FROM patterns WHERE org = $1 AND tier = $2 AND pattern_id = $3";
    session
        .execute(sql, &[&EncodedText::of(org), &EncodedText::of(tier), &EncodedText::of(id)])
        .await
}

/// Counts a use of each pattern, named by organisation, tier and id; repeated names count repeatedly.
pub(super) async fn mark_used(
    session: &Session,
    used: &[(String, String, String)],
    at_ms: i64,
) -> Sql<u64> {
    let names = |part: fn(&(String, String, String)) -> &String| {
        used.iter().map(|name| EncodedText::of(part(name))).collect::<Vec<_>>()
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
        // A pattern with an organisation belongs to it regardless of its tier.
        conditions.add_text("(org = ? OR (org = '' AND tier <> 'e1'))", org);
    }
    if let Some(tier) = &filter.tier {
        conditions.add_text("tier = ?", tier);
    }
    if let Some((tier, id, org)) = &filter.after {
        let place: [Value<'_>; 3] = [
            Box::new(EncodedText::of(tier)),
            Box::new(EncodedText::of(id)),
            Box::new(EncodedText::of(org)),
        ];
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
    let name = [EncodedText::of(org), EncodedText::of(tier), EncodedText::of(id)];
    let rows = session.select(sql, &[&name[0], &name[1], &name[2]]).await?;
    rows.first().map(pattern).transpose()
}

/// Lists changes with a single statement, so that puts and deletions are read from one snapshot.
pub(super) async fn changes(
    session: &Session,
    after_version: u64,
    count_max: u32,
) -> Sql<Vec<(u64, PatternChange)>> {
    // Each half is ordered and limited: otherwise all newer rows are sorted for every page (1 s at 500,000 rows).
    let page = format!("WHERE version > $1 ORDER BY version LIMIT {count_max}");
    let sql = format!(
        "(SELECT version, true AS is_there, org, tier, pattern_id, failure_type, model_family, source_trace_id,
            gate_threshold, context, fields, created_ms, updated_ms, uses, used_ms
        FROM patterns {page})
        UNION ALL (SELECT version, false, org, tier, pattern_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
            NULL FROM patterns_gone {page}) ORDER BY version LIMIT {count_max}"
    );
    let rows = session.select(&sql, &[&count_to_db(after_version)]).await?;
    rows.iter().map(change).collect()
}

fn change(row: &Row) -> Sql<(u64, PatternChange)> {
    let change = if row.try_get("is_there")? {
        PatternChange::Put(Box::new(pattern(row)?))
    } else {
        let (org, tier) = (text(row, "org")?, text(row, "tier")?);
        PatternChange::Gone { org, tier, pattern_id: text(row, "pattern_id")? }
    };
    Ok((count_from_db(row.try_get("version")?), change))
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
        uses: count_from_db(row.try_get("uses")?),
        used_ms: row.try_get("used_ms")?,
    })
}
