//! Gateway state of conversations.

use super::table::list;
use super::{Conditions, Database, Query, Value, texts};
use crate::{ConversationKey, ConversationRow, Conversations, Result, RunKey};

/// Maximum number of keys per query; SQLite allows 500 parts of a union.
const MAX_LOOKUPS: usize = 100;

#[async_trait::async_trait]
impl<D: Database> Conversations for D {
    async fn conversations(
        &self,
        after: Option<&RunKey>,
        count_max: u32,
    ) -> Result<Vec<ConversationRow>> {
        let mut conditions = Conditions::default();
        if let Some(RunKey { org, run_id }) = after {
            conditions.add("(org, run_id) > (?, ?)", texts([org, run_id]));
        }
        let sql = format!(
            "SELECT {} FROM conversations {} ORDER BY org, run_id LIMIT ?",
            list::<ConversationRow>(""),
            conditions.sql
        );
        conditions.values.push(Value::Int(count_max.into()));
        self.select(Query::rows("listing conversations", sql, conditions.values)).await
    }

    async fn conversation(&self, run: &RunKey) -> Result<Option<String>> {
        let sql = "SELECT state FROM conversations WHERE org = ? AND run_id = ?";
        let values = texts([&run.org, &run.run_id]);
        self.find(Query::column("reading a conversation", sql, values)).await
    }

    async fn find_conversation(
        &self,
        org: &str,
        by: ConversationKey,
        any_of: &[String],
    ) -> Result<Option<String>> {
        let column = by.column();
        // One index lookup per key. The partial index requires the condition on an empty value.
        let lookup = |place: usize| {
            format!(
                "SELECT {place} AS place, (SELECT run_id FROM conversations WHERE org = ? AND {column} = ?
                    AND {column} <> '' ORDER BY at_ms DESC LIMIT 1) AS run_id"
            )
        };
        for any_of in any_of.chunks(MAX_LOOKUPS) {
            let lookups: Vec<String> = (0..any_of.len()).map(lookup).collect();
            let sql = format!(
                "SELECT run_id FROM ({}) AS k WHERE run_id IS NOT NULL ORDER BY place LIMIT 1",
                lookups.join(" UNION ALL ")
            );
            let values: Vec<Value<'static>> =
                any_of.iter().flat_map(|known| texts([org, known])).collect();
            let found = self.find(Query::column("finding a conversation", sql, values)).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}
