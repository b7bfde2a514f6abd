//! Findings about codebases.

use rusqlite::{Connection, Result, Row, named_params, params_from_iter};

use super::columns::{from_json, to_json};
use super::scope::Conditions;
use super::{execute, select};
use crate::{FindingRow, Scope};

pub(super) fn put(connection: &Connection, finding: &FindingRow) -> Result<u64> {
    execute(
        connection,
        "INSERT OR REPLACE INTO findings (org, codebase, finding_id, file_path, finding_type, created_ms,
            updated_ms, metadata, content)
         VALUES (:org, :codebase, :finding_id, :file_path, :finding_type, :created_ms, :updated_ms, :metadata,
            :content)",
        named_params! {
            ":org": finding.org, ":codebase": finding.codebase, ":finding_id": finding.finding_id,
            ":file_path": finding.file_path, ":finding_type": finding.finding_type,
            ":created_ms": finding.created_ms, ":updated_ms": finding.updated_ms,
            ":metadata": to_json(&finding.metadata)?, ":content": finding.content,
        },
    )
}

pub(super) fn delete(connection: &Connection, org: &str, codebase: &str, id: &str) -> Result<u64> {
    let sql = "DELETE FROM findings WHERE org = ?1 AND codebase = ?2 AND finding_id = ?3";
    execute(connection, sql, (org, codebase, id))
}

pub(super) fn invalidate(
    connection: &Connection,
    org: &str,
    codebase: &str,
    file_paths: &[String],
) -> Result<u64> {
    let sql = "DELETE FROM findings WHERE org = ?1 AND codebase = ?2 AND file_path = ?3";
    file_paths.iter().map(|path| execute(connection, sql, (org, codebase, path))).sum()
}

pub(super) fn clear(connection: &Connection, org: &str, codebase: &str) -> Result<u64> {
    execute(connection, "DELETE FROM findings WHERE org = ?1 AND codebase = ?2", (org, codebase))
}

pub(super) fn list(connection: &Connection, org: &str, codebase: &str) -> Result<Vec<FindingRow>> {
    let sql =
        "SELECT * FROM findings WHERE org = ?1 AND codebase = ?2 ORDER BY created_ms, finding_id";
    select(connection, sql, (org, codebase), finding)
}

/// Lists codebases. Findings have no project, so a scope with a project includes only the codebases of its runs.
pub(super) fn codebases(connection: &Connection, scope: &Scope) -> Result<Vec<String>> {
    let mut of_runs = Conditions::of(scope, "r");
    of_runs.add("r.codebase <> ''", []);
    let mut sql = format!("SELECT codebase FROM runs r {}", of_runs.sql());
    if scope.project.is_none() {
        let of_findings = Conditions::of(scope, "f");
        sql = format!("{sql} UNION SELECT codebase FROM findings f {}", of_findings.sql());
        of_runs.values.extend(of_findings.values);
    }
    let sql = format!("SELECT DISTINCT codebase FROM ({sql}) ORDER BY codebase");
    select(connection, &sql, params_from_iter(of_runs.values), |row| row.get(0))
}

fn finding(row: &Row<'_>) -> Result<FindingRow> {
    Ok(FindingRow {
        org: row.get("org")?,
        codebase: row.get("codebase")?,
        finding_id: row.get("finding_id")?,
        content: row.get("content")?,
        file_path: row.get("file_path")?,
        finding_type: row.get("finding_type")?,
        metadata: from_json(row, "metadata")?,
        created_ms: row.get("created_ms")?,
        updated_ms: row.get("updated_ms")?,
    })
}
