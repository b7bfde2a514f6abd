//! Guidance patterns: E1 of an organisation, E2 and E3 of all.

use rusqlite::{Connection, OptionalExtension as _, Result, Row, named_params, params_from_iter};

use super::columns::{from_json, to_json};
use super::scope::Conditions;
use super::{execute, select};
use crate::numeric::{amount, count_from_db, count_to_db};
use crate::{PatternChange, PatternFilter, PatternRow, Scope};

pub(super) fn put(connection: &Connection, pattern: &PatternRow) -> Result<u64> {
    execute(
        connection,
        "INSERT OR REPLACE INTO patterns (org, tier, pattern_id, failure_type, model_family, source_trace_id,
            gate_threshold, context, fields, created_ms, updated_ms, uses, used_ms)
         VALUES (:org, :tier, :pattern_id, :failure_type, :model_family, :source_trace_id,
            :gate_threshold, :context, :fields, :created_ms, :updated_ms, :uses, :used_ms)",
        named_params! {
            ":org": pattern.org, ":tier": pattern.tier, ":pattern_id": pattern.pattern_id,
            ":failure_type": pattern.failure_type, ":model_family": pattern.model_family,
            ":source_trace_id": pattern.source_trace_id,
            ":gate_threshold": pattern.gate_threshold.map(amount), ":context": pattern.context,
            ":fields": to_json(&pattern.fields)?, ":created_ms": pattern.created_ms,
            ":updated_ms": pattern.updated_ms, ":uses": count_to_db(pattern.uses),
            ":used_ms": pattern.used_ms,
        },
    )
}

pub(super) fn delete(connection: &Connection, org: &str, tier: &str, id: &str) -> Result<u64> {
    let sql = "DELETE FROM patterns WHERE org = ?1 AND tier = ?2 AND pattern_id = ?3";
    execute(connection, sql, (org, tier, id))
}

/// Counts a use of each pattern, named by organisation, tier and id.
pub(super) fn mark_used(
    connection: &Connection,
    used: &[(String, String, String)],
    at_ms: i64,
) -> Result<u64> {
    let sql = "UPDATE patterns SET uses = uses + 1, used_ms = max(coalesce(used_ms, ?4), ?4)
        WHERE org = ?1 AND tier = ?2 AND pattern_id = ?3";
    used.iter().map(|(org, tier, id)| execute(connection, sql, (org, tier, id, at_ms))).sum()
}

pub(super) fn list(
    connection: &Connection,
    scope: &Scope,
    filter: &PatternFilter,
) -> Result<Vec<PatternRow>> {
    let mut conditions = Conditions::default();
    if let Some(org) = &scope.org {
        // A pattern with an organisation belongs to it regardless of its tier.
        conditions.add("(org = ? OR (org = '' AND tier <> 'e1'))", [org.clone().into()]);
    }
    if let Some(tier) = &filter.tier {
        conditions.add("tier = ?", [tier.clone().into()]);
    }
    if let Some((tier, id, org)) = &filter.after {
        let place = [tier, id, org].map(|part| part.clone().into());
        conditions.add("(tier, pattern_id, org) > (?, ?, ?)", place);
    }
    let sql = format!(
        "SELECT * FROM patterns {} ORDER BY tier, pattern_id, org LIMIT ?",
        conditions.sql()
    );
    conditions.values.push(filter.count_max.into());
    select(connection, &sql, params_from_iter(conditions.values), pattern)
}

pub(super) fn find(
    connection: &Connection,
    org: &str,
    tier: &str,
    id: &str,
) -> Result<Option<PatternRow>> {
    let sql = "SELECT * FROM patterns WHERE org = ?1 AND tier = ?2 AND pattern_id = ?3";
    connection.prepare_cached(sql)?.query_row((org, tier, id), pattern).optional()
}

/// Lists changes with a single statement, so that puts and deletions are read from one snapshot.
pub(super) fn changes(
    connection: &Connection,
    after_version: u64,
    count_max: u32,
) -> Result<Vec<(u64, PatternChange)>> {
    let sql = "SELECT version, 1 AS is_there, org, tier, pattern_id, failure_type, model_family, source_trace_id,
            gate_threshold, context, fields, created_ms, updated_ms, uses, used_ms
        FROM patterns WHERE version > ?1
        UNION ALL SELECT version, 0, org, tier, pattern_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
        FROM patterns_gone WHERE version > ?1 ORDER BY version LIMIT ?2";
    let change = |row: &Row<'_>| {
        let change = if row.get("is_there")? {
            PatternChange::Put(Box::new(pattern(row)?))
        } else {
            let (org, tier) = (row.get("org")?, row.get("tier")?);
            PatternChange::Gone { org, tier, pattern_id: row.get("pattern_id")? }
        };
        Ok((count_from_db(row.get("version")?), change))
    };
    select(connection, sql, (count_to_db(after_version), count_max), change)
}

fn pattern(row: &Row<'_>) -> Result<PatternRow> {
    Ok(PatternRow {
        org: row.get("org")?,
        tier: row.get("tier")?,
        pattern_id: row.get("pattern_id")?,
        failure_type: row.get("failure_type")?,
        model_family: row.get("model_family")?,
        source_trace_id: row.get("source_trace_id")?,
        gate_threshold: row.get("gate_threshold")?,
        context: row.get("context")?,
        fields: from_json(row, "fields")?,
        created_ms: row.get("created_ms")?,
        updated_ms: row.get("updated_ms")?,
        uses: count_from_db(row.get("uses")?),
        used_ms: row.get("used_ms")?,
    })
}
