//! Weight profiles of an organisation or a project.

use tokio_postgres::Row;

use super::error::Sql;
use super::scope::Conditions;
use super::session::Session;
use super::text::{EncodedText, json, text};
use crate::{ProfileRow, Scope};

pub(super) async fn put(session: &Session, profile: &ProfileRow) -> Sql<u64> {
    let sql = "INSERT INTO profiles (org, project, profile_id, description, weights, extra, created_ms, updated_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (org, project, profile_id) DO UPDATE SET description = excluded.description,
            weights = excluded.weights, extra = excluded.extra, created_ms = excluded.created_ms,
            updated_ms = excluded.updated_ms";
    session
        .execute(
            sql,
            &[
                &EncodedText::of(&profile.org),
                &EncodedText::of(&profile.project),
                &EncodedText::of(&profile.profile_id),
                &EncodedText::of(&profile.description),
                &EncodedText::json(&profile.weights)?,
                &EncodedText::json(&profile.extra)?,
                &profile.created_ms,
                &profile.updated_ms,
            ],
        )
        .await
}

pub(super) async fn delete(session: &Session, org: &str, project: &str, id: &str) -> Sql<u64> {
    let sql = "DELETE FROM profiles WHERE org = $1 AND project = $2 AND profile_id = $3";
    session
        .execute(sql, &[&EncodedText::of(org), &EncodedText::of(project), &EncodedText::of(id)])
        .await
}

pub(super) async fn list(session: &Session, scope: &Scope) -> Sql<Vec<ProfileRow>> {
    let mut conditions = Conditions::default();
    if let Some(org) = &scope.org {
        conditions.add_text("org = ?", org);
    }
    if let Some(project) = &scope.project {
        conditions.add_text("project IN ('', ?)", project);
    }
    let sql =
        format!("SELECT * FROM profiles {} ORDER BY org, project, profile_id", conditions.sql());
    session.select(&sql, &conditions.values()).await?.iter().map(profile).collect()
}

fn profile(row: &Row) -> Sql<ProfileRow> {
    Ok(ProfileRow {
        org: text(row, "org")?,
        project: text(row, "project")?,
        profile_id: text(row, "profile_id")?,
        description: text(row, "description")?,
        weights: json(row, "weights")?,
        extra: json(row, "extra")?,
        created_ms: row.try_get("created_ms")?,
        updated_ms: row.try_get("updated_ms")?,
    })
}
