//! Undelivered operator messages.

use super::table::list;
use super::{Database, Query, Value, texts};
use crate::{OperatorMessageRow, OperatorMessages, Result, RunKey};

#[async_trait::async_trait]
impl<D: Database> OperatorMessages for D {
    async fn operator_messages(&self, run: &RunKey) -> Result<Vec<OperatorMessageRow>> {
        let sql = format!(
            "SELECT {} FROM operator_messages WHERE org = ? AND run_id = ? ORDER BY at_ms, message_id",
            list::<OperatorMessageRow>("")
        );
        let values = texts([&run.org, &run.run_id]);
        self.select(Query::rows("reading operator messages", sql, values)).await
    }

    async fn runs_with_messages(&self, since_ms: i64) -> Result<Vec<RunKey>> {
        let sql = "SELECT DISTINCT org, run_id FROM operator_messages WHERE at_ms >= ? ORDER BY org, run_id";
        self.select(Query::column("listing operator messages", sql, [Value::Int(since_ms)])).await
    }
}
