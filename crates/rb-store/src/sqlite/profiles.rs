//! Weight profiles of an organisation or a project.

use rusqlite::types::Value;
use rusqlite::{Connection, Result, Row, named_params, params_from_iter};

use super::columns::{from_json, to_json};
use super::{execute, select};
use crate::{ProfileRow, Scope};

pub(super) fn put(connection: &Connection, profile: &ProfileRow) -> Result<u64> {
    execute(
        connection,
        "INSERT OR REPLACE INTO profiles (org, project, profile_id, description, weights, extra, created_ms,
            updated_ms)
         VALUES (:org, :project, :profile_id, :description, :weights, :extra, :created_ms, :updated_ms)",
        named_params! {
            ":org": profile.org, ":project": profile.project, ":profile_id": profile.profile_id,
            ":description": profile.description, ":weights": to_json(&profile.weights)?,
            ":extra": to_json(&profile.extra)?, ":created_ms": profile.created_ms,
            ":updated_ms": profile.updated_ms,
        },
    )
}

pub(super) fn delete(connection: &Connection, org: &str, project: &str, id: &str) -> Result<u64> {
    let sql = "DELETE FROM profiles WHERE org = ?1 AND project = ?2 AND profile_id = ?3";
    execute(connection, sql, (org, project, id))
}

pub(super) fn list(connection: &Connection, scope: &Scope) -> Result<Vec<ProfileRow>> {
    let (mut seen, mut values) = ("WHERE 1".to_owned(), Vec::<Value>::new());
    if let Some(org) = &scope.org {
        seen.push_str(" AND org = ?");
        values.push(org.clone().into());
    }
    if let Some(project) = &scope.project {
        seen.push_str(" AND project IN ('', ?)");
        values.push(project.clone().into());
    }
    let sql = format!("SELECT * FROM profiles {seen} ORDER BY org, project, profile_id");
    select(connection, &sql, params_from_iter(values), profile)
}

fn profile(row: &Row<'_>) -> Result<ProfileRow> {
    Ok(ProfileRow {
        org: row.get("org")?,
        project: row.get("project")?,
        profile_id: row.get("profile_id")?,
        description: row.get("description")?,
        weights: from_json(row, "weights")?,
        extra: from_json(row, "extra")?,
        created_ms: row.get("created_ms")?,
        updated_ms: row.get("updated_ms")?,
    })
}
