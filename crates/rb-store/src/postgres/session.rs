//! A connection in somebody's hands: statements are prepared once and stay prepared.

use std::time::Duration;

use deadpool_postgres::{Client, Object, Pool};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, RowStream, Statement};

use super::fault::{Fault, Sql};

/// What statements are executed with.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection of a pool, which goes back when this is dropped.
pub(super) struct Session {
    client: Client,
}

impl Session {
    pub(super) async fn of(pool: &Pool) -> Sql<Self> {
        Ok(Self { client: pool.get().await? })
    }

    /// Does something with a connection of the pool, for at most `within`. A connection that did not answer in time is
    /// closed: nobody knows what it is still doing.
    pub(super) async fn with<T>(
        pool: &Pool,
        within: Duration,
        work: impl AsyncFnOnce(&Self) -> Sql<T>,
    ) -> Sql<T> {
        let session = Self::of(pool).await?;
        if let Ok(done) = tokio::time::timeout(within, work(&session)).await {
            return done;
        }
        drop(Object::take(session.client));
        Err(Fault::Late(within.as_secs()))
    }

    /// Statements without values, one after the other.
    pub(super) async fn batch(&self, sql: &str) -> Sql<()> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// Prepares a statement, so that sending it later does not wait: what is sent together arrives in order.
    pub(super) async fn prepare(&self, sql: &str) -> Sql<Statement> {
        Ok(self.client.prepare_cached(sql).await?)
    }

    /// Sends a prepared statement and says how many rows it touched.
    pub(super) async fn send(&self, statement: &Statement, values: Values<'_>) -> Sql<u64> {
        Ok(self.client.execute(statement, values).await?)
    }

    /// Sends a prepared query and gives all its rows.
    pub(super) async fn ask(&self, query: &Statement, values: Values<'_>) -> Sql<Vec<Row>> {
        Ok(self.client.query(query, values).await?)
    }

    /// How many rows a statement touched.
    pub(super) async fn execute(&self, sql: &str, values: Values<'_>) -> Sql<u64> {
        self.send(&self.prepare(sql).await?, values).await
    }

    /// All rows of a query.
    pub(super) async fn select(&self, sql: &str, values: Values<'_>) -> Sql<Vec<Row>> {
        self.ask(&self.prepare(sql).await?, values).await
    }

    /// The rows of a query as they come.
    pub(super) async fn stream(
        &self,
        sql: &str,
        values: Vec<&(dyn ToSql + Sync)>,
    ) -> Sql<RowStream> {
        let statement = self.prepare(sql).await?;
        Ok(self.client.query_raw(&statement, values).await?)
    }
}
