//! Findings about codebases.

use tokio_postgres::Row;

use super::error::Sql;
use super::scope::Conditions;
use super::session::Session;
use super::text::{EncodedText, json, text};
use crate::{FindingRow, Scope};

pub(super) async fn put(session: &Session, finding: &FindingRow) -> Sql<u64> {
    let sql = "INSERT INTO findings (org, codebase, finding_id, file_path, finding_type, created_ms, updated_ms,
            metadata, content)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (org, codebase, finding_id) DO UPDATE SET file_path = excluded.file_path,
            finding_type = excluded.finding_type, created_ms = excluded.created_ms,
            updated_ms = excluded.updated_ms, metadata = excluded.metadata, content = excluded.content";
    session
        .execute(
            sql,
            &[
                &EncodedText::of(&finding.org),
                &EncodedText::of(&finding.codebase),
                &EncodedText::of(&finding.finding_id),
                &EncodedText::of(&finding.file_path),
                &EncodedText::of(&finding.finding_type),
                &finding.created_ms,
                &finding.updated_ms,
                &EncodedText::json(&finding.metadata)?,
                &EncodedText::of(&finding.content),
            ],
        )
        .await
}

pub(super) async fn delete(session: &Session, org: &str, codebase: &str, id: &str) -> Sql<u64> {
    let sql = "DELETE FROM findings WHERE org = $1 AND codebase = $2 AND finding_id = $3";
    session
        .execute(sql, &[&EncodedText::of(org), &EncodedText::of(codebase), &EncodedText::of(id)])
        .await
}

pub(super) async fn invalidate(
    session: &Session,
    org: &str,
    codebase: &str,
    file_paths: &[String],
) -> Sql<u64> {
    let file_paths: Vec<EncodedText<'_>> =
        file_paths.iter().map(|path| EncodedText::of(path)).collect();
    let sql = "DELETE FROM findings WHERE org = $1 AND codebase = $2 AND file_path = ANY ($3)";
    session.execute(sql, &[&EncodedText::of(org), &EncodedText::of(codebase), &file_paths]).await
}

pub(super) async fn clear(session: &Session, org: &str, codebase: &str) -> Sql<u64> {
    let sql = "DELETE FROM findings WHERE org = $1 AND codebase = $2";
    session.execute(sql, &[&EncodedText::of(org), &EncodedText::of(codebase)]).await
}

pub(super) async fn list(session: &Session, org: &str, codebase: &str) -> Sql<Vec<FindingRow>> {
    let sql =
        "SELECT * FROM findings WHERE org = $1 AND codebase = $2 ORDER BY created_ms, finding_id";
    let rows = session.select(sql, &[&EncodedText::of(org), &EncodedText::of(codebase)]).await?;
    rows.iter().map(finding).collect()
}

/// Lists codebases. Findings have no project, so a scope with a project includes only the codebases of its runs.
pub(super) async fn codebases(session: &Session, scope: &Scope) -> Sql<Vec<String>> {
    let mut of_runs = Conditions::of(scope, "r");
    of_runs.add("r.codebase <> ''", []);
    let mut sql = format!("SELECT codebase FROM runs r {}", of_runs.sql());
    // Both halves use the same values: without a project, the organisation is the first and only one.
    if scope.project.is_none() {
        let own = if scope.org.is_some() { "WHERE f.org = $1" } else { "" };
        sql = format!("{sql} UNION SELECT codebase FROM findings f {own}");
    }
    let sql = format!("SELECT DISTINCT codebase FROM ({sql}) AS c ORDER BY codebase");
    let rows = session.select(&sql, &of_runs.values()).await?;
    rows.iter().map(|row| text(row, "codebase")).collect()
}

fn finding(row: &Row) -> Sql<FindingRow> {
    Ok(FindingRow {
        org: text(row, "org")?,
        codebase: text(row, "codebase")?,
        finding_id: text(row, "finding_id")?,
        content: text(row, "content")?,
        file_path: text(row, "file_path")?,
        finding_type: text(row, "finding_type")?,
        metadata: json(row, "metadata")?,
        created_ms: row.try_get("created_ms")?,
        updated_ms: row.try_get("updated_ms")?,
    })
}
