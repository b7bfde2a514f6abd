//! API keys, of which only the hash is stored, and settings.

use tokio_postgres::Row;

use super::error::Sql;
use super::session::Session;
use super::text::{EncodedText, text};
use crate::KeyRow;

pub(super) async fn put(session: &Session, key: &KeyRow) -> Sql<u64> {
    // The conflict target is the id: a second key with the same hash must fail and not replace the first.
    let sql = "INSERT INTO keys (key_id, name, shown, hash, org, project, created_ms, revoked_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (key_id) DO UPDATE SET name = excluded.name, shown = excluded.shown, hash = excluded.hash,
            org = excluded.org, project = excluded.project, created_ms = excluded.created_ms,
            revoked_ms = excluded.revoked_ms";
    session
        .execute(
            sql,
            &[
                &EncodedText::of(&key.key_id),
                &EncodedText::of(&key.name),
                &EncodedText::of(&key.shown),
                &EncodedText::of(&key.hash),
                &EncodedText::of(&key.org),
                &EncodedText::of(&key.project),
                &key.created_ms,
                &key.revoked_ms,
            ],
        )
        .await
}

pub(super) async fn revoke(session: &Session, key_id: &str, at_ms: i64) -> Sql<u64> {
    let sql = "UPDATE keys SET revoked_ms = $2 WHERE key_id = $1 AND revoked_ms IS NULL";
    session.execute(sql, &[&EncodedText::of(key_id), &at_ms]).await
}

pub(super) async fn list(session: &Session) -> Sql<Vec<KeyRow>> {
    let rows = session.select("SELECT * FROM keys ORDER BY created_ms, key_id", &[]).await?;
    rows.iter().map(key).collect()
}

pub(super) async fn find(session: &Session, hash: &str) -> Sql<Option<KeyRow>> {
    let rows =
        session.select("SELECT * FROM keys WHERE hash = $1", &[&EncodedText::of(hash)]).await?;
    rows.first().map(key).transpose()
}

fn key(row: &Row) -> Sql<KeyRow> {
    Ok(KeyRow {
        key_id: text(row, "key_id")?,
        name: text(row, "name")?,
        shown: text(row, "shown")?,
        hash: text(row, "hash")?,
        org: text(row, "org")?,
        project: text(row, "project")?,
        created_ms: row.try_get("created_ms")?,
        revoked_ms: row.try_get("revoked_ms")?,
    })
}

pub(super) async fn put_setting(session: &Session, name: &str, value: &str) -> Sql<u64> {
    let sql = "INSERT INTO settings (name, value) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    session.execute(sql, &[&EncodedText::of(name), &EncodedText::of(value)]).await
}

pub(super) async fn setting(session: &Session, name: &str) -> Sql<Option<String>> {
    let sql = "SELECT value FROM settings WHERE name = $1";
    let rows = session.select(sql, &[&EncodedText::of(name)]).await?;
    rows.first().map(|row| text(row, "value")).transpose()
}

pub(super) async fn settings(session: &Session) -> Sql<Vec<(String, String)>> {
    let rows = session.select("SELECT name, value FROM settings ORDER BY name", &[]).await?;
    rows.iter().map(|row| Ok((text(row, "name")?, text(row, "value")?))).collect()
}
