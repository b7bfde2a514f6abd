//! Pooled connection with cached prepared statements.

use std::time::Duration;

use deadpool_postgres::{Client, Object, Pool};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, RowStream, Statement};

use super::error::{DbError, Sql};
use crate::sql::Value;

/// Parameters of a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Pooled connection, returned to the pool on drop.
pub(super) struct Session {
    client: Client,
}

impl Session {
    pub(super) async fn of(pool: &Pool) -> Sql<Self> {
        Ok(Self { client: pool.get().await? })
    }

    /// Runs `work` with a connection of the pool. A connection that exceeds the timeout is closed, since its state is
    /// unknown.
    pub(super) async fn with<T>(
        pool: &Pool,
        timeout: Duration,
        work: impl AsyncFnOnce(&Self) -> Sql<T>,
    ) -> Sql<T> {
        let session = Self::of(pool).await?;
        if let Ok(done) = tokio::time::timeout(timeout, work(&session)).await {
            return done;
        }
        drop(Object::take(session.client));
        Err(DbError::TimedOut(timeout.as_secs()))
    }

    /// Executes statements without parameters in sequence.
    pub(super) async fn batch(&self, sql: &str) -> Sql<()> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// Prepares a statement. A prepared statement is sent without awaiting a response, so it can be pipelined.
    pub(super) async fn prepare(&self, sql: &str) -> Sql<Statement> {
        Ok(self.client.prepare_cached(sql).await?)
    }

    /// Executes a prepared statement and returns the number of affected rows.
    pub(super) async fn send(&self, statement: &Statement, values: Values<'_>) -> Sql<u64> {
        Ok(self.client.execute(statement, values).await?)
    }

    /// Runs a prepared query and returns all rows.
    pub(super) async fn ask(&self, query: &Statement, values: Values<'_>) -> Sql<Vec<Row>> {
        Ok(self.client.query(query, values).await?)
    }

    /// Executes a statement and returns the number of affected rows.
    pub(super) async fn execute(&self, sql: &str, values: Values<'_>) -> Sql<u64> {
        self.send(&self.prepare(sql).await?, values).await
    }

    /// Runs a query and returns all rows.
    pub(super) async fn select(&self, sql: &str, values: Values<'_>) -> Sql<Vec<Row>> {
        self.ask(&self.prepare(sql).await?, values).await
    }

    /// Executes a prepared statement with an array per column.
    pub(super) async fn send_all(
        &self,
        statement: &Statement,
        columns: &[Vec<Value<'_>>],
    ) -> Sql<u64> {
        let columns: Vec<_> = columns.iter().map(|column| column as &(dyn ToSql + Sync)).collect();
        self.send(statement, &columns).await
    }

    /// Executes a statement with `?` for each value and returns the number of affected rows.
    pub(super) async fn run(&self, sql: &str, values: &[Value<'_>]) -> Sql<u64> {
        let values: Vec<_> = values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        self.execute(&numbered(sql), &values).await
    }

    /// Runs a query with `?` for each value and streams its rows, since there may be millions.
    pub(super) async fn stream(&self, sql: &str, values: &[Value<'_>]) -> Sql<RowStream> {
        let statement = self.prepare(&numbered(sql)).await?;
        Ok(self.client.query_raw(&statement, values).await?)
    }
}

/// Replaces each `?` by `$1`, `$2`, ….
fn numbered(sql: &str) -> String {
    let mut parts = sql.split('?');
    let first = parts.next().unwrap_or_default().to_owned();
    (1..).zip(parts).fold(first, |text, (at, part)| format!("{text}${at}{part}"))
}
