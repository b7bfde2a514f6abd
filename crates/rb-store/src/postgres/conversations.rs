//! Gateway state of conversations.

use std::collections::BTreeMap;

use super::error::Sql;
use super::session::Session;
use super::text::{EncodedText, text};
use crate::{ConversationKey, ConversationRow, RunKey};

/// Upsert of many rows, prepared before it is pipelined.
pub(super) const PUT: &str = "INSERT INTO conversations
        (org, run_id, head, answer, mark, state, at_ms)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
        $7::bigint[])
    ON CONFLICT (org, run_id) DO UPDATE SET head = excluded.head, answer = excluded.answer,
        mark = excluded.mark, state = excluded.state, at_ms = excluded.at_ms";

/// Stores the newest state of each conversation. The order by key prevents deadlocks.
pub(super) async fn put(session: &Session, rows: &BTreeMap<&RunKey, &ConversationRow>) -> Sql<u64> {
    if rows.is_empty() {
        return Ok(0);
    }
    let texts = |part: fn(&ConversationRow) -> &String| {
        rows.values().map(|row| EncodedText::of(part(row))).collect::<Vec<_>>()
    };
    let at_ms: Vec<i64> = rows.values().map(|row| row.at_ms).collect();
    session
        .execute(
            PUT,
            &[
                &texts(|row| &row.run.org),
                &texts(|row| &row.run.run_id),
                &texts(|row| &row.head),
                &texts(|row| &row.answer),
                &texts(|row| &row.mark),
                &texts(|row| &row.state),
                &at_ms,
            ],
        )
        .await
}

pub(super) async fn find(session: &Session, run: &RunKey) -> Sql<Option<String>> {
    let sql = "SELECT state FROM conversations WHERE org = $1 AND run_id = $2";
    let rows =
        session.select(sql, &[&EncodedText::of(&run.org), &EncodedText::of(&run.run_id)]).await?;
    rows.first().map(|row| text(row, "state")).transpose()
}

/// Returns the run of the newest conversation that matches the first matching key.
pub(super) async fn find_by_key(
    session: &Session,
    org: &str,
    by: ConversationKey,
    any_of: &[String],
) -> Sql<Option<String>> {
    let any_of: Vec<EncodedText<'_>> = any_of.iter().map(|known| EncodedText::of(known)).collect();
    let column = by.column();
    // The partial index requires the condition on an empty value.
    let sql = format!(
        "SELECT c.run_id FROM unnest($2::text[]) WITH ORDINALITY AS k (known, place)
         JOIN conversations c ON c.org = $1 AND c.{column} = k.known AND c.{column} <> ''
         ORDER BY k.place, c.at_ms DESC LIMIT 1"
    );
    let rows = session.select(&sql, &[&EncodedText::of(org), &any_of]).await?;
    rows.first().map(|row| text(row, "run_id")).transpose()
}

pub(super) async fn list(
    session: &Session,
    after: Option<&RunKey>,
    count_max: u32,
) -> Sql<Vec<ConversationRow>> {
    let sql = "SELECT org, run_id, head, answer, mark, state, at_ms FROM conversations
        WHERE $3 OR (org, run_id) > ($1, $2) ORDER BY org, run_id LIMIT $4";
    let (org, run_id) = after.map_or(("", ""), |run| (run.org.as_str(), run.run_id.as_str()));
    let (first, count) = (after.is_none(), i64::from(count_max));
    let rows = session
        .select(sql, &[&EncodedText::of(org), &EncodedText::of(run_id), &first, &count])
        .await?;
    let conversation = |row: &tokio_postgres::Row| {
        Ok(ConversationRow {
            run: RunKey { org: text(row, "org")?, run_id: text(row, "run_id")? },
            head: text(row, "head")?,
            answer: text(row, "answer")?,
            mark: text(row, "mark")?,
            state: text(row, "state")?,
            at_ms: row.try_get("at_ms")?,
        })
    };
    rows.iter().map(conversation).collect()
}
