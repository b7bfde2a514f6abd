//! API keys, of which only the hash is stored, settings, organisations and their usage.

use super::table::list;
use super::{Database, Query, Value, texts};
use crate::{KeyRow, Keys, Result, UsageDay};

#[async_trait::async_trait]
impl<D: Database> Keys for D {
    async fn keys(&self) -> Result<Vec<KeyRow>> {
        let sql = format!("SELECT {} FROM keys ORDER BY created_ms, key_id", list::<KeyRow>(""));
        self.select(Query::rows("listing keys", sql, [])).await
    }

    async fn key(&self, hash: &str) -> Result<Option<KeyRow>> {
        let sql = format!("SELECT {} FROM keys WHERE hash = ?", list::<KeyRow>(""));
        self.find(Query::rows("looking up a key", sql, texts([hash]))).await
    }

    async fn usage(&self, org: &str, since_day: i64) -> Result<Vec<UsageDay>> {
        // PostgreSQL has several rows per day. A day whose steps were all subtracted has no usage.
        let sql = "SELECT day, CAST(sum(interventions) AS bigint), CAST(sum(steps) AS bigint),
                CAST(sum(tokens) AS bigint)
            FROM usage WHERE org = ? AND day >= ? GROUP BY day HAVING sum(steps) > 0 ORDER BY day";
        let values = [Value::text(org), Value::Int(since_day)];
        self.select(Query::rows("reading usage", sql, values)).await
    }

    async fn setting(&self, name: &str) -> Result<Option<String>> {
        let sql = "SELECT value FROM settings WHERE name = ?";
        self.find(Query::column("reading a setting", sql, texts([name]))).await
    }

    async fn settings(&self) -> Result<Vec<(String, String)>> {
        let sql = "SELECT name, value FROM settings ORDER BY name";
        self.select(Query::pairs("listing settings", sql, [])).await
    }

    async fn orgs(&self) -> Result<Vec<String>> {
        let sql = "SELECT org FROM runs UNION SELECT org FROM usage UNION SELECT org FROM findings
            UNION SELECT org FROM keys ORDER BY org";
        self.select(Query::column("listing organisations", sql, [])).await
    }
}
