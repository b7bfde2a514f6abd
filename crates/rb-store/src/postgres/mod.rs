//! PostgreSQL backend, for several nodes.
//!
//! **Layout.** `connect` creates a pool for readers and one for writers. `writer` collects queued requests into one
//! transaction: `batch` iterates over the changes, `load` reads and locks the runs, `unit_of_work` computes their new
//! state in memory, and `flush` writes it as arrays, pipelined with the commit. A transaction needs two round trips and
//! one disk sync, whatever the number of requests. The reads are those of `sql`, and `migrate` has the schema.
//!
//! **Concurrency.** A writer holds the row lock of each run from the first statement to the commit, and locks are
//! acquired in order of keys. So totals are exact with any number of nodes, and there are no deadlocks.

/// Transaction over many requests.
mod batch;
/// Connection pools.
mod connect;
/// Error conversion.
mod error;
/// Writes a unit of work.
mod flush;
/// Loads a unit of work.
mod load;
/// Schema migration.
mod migrate;
/// Events between nodes.
mod node_events;
/// Deletion of runs.
mod runs;
/// Pooled connection with prepared statements.
mod session;
/// In-memory state of a transaction.
mod unit_of_work;
/// Daily usage.
mod usage;
/// Parameters and columns.
mod values;
/// Writer tasks.
mod writer;

use std::pin::pin;
use std::time::Duration;

use deadpool_postgres::Pool;
use futures_util::TryStreamExt as _;
use tokio::sync::mpsc;
use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

use self::error::{DbError, Sql};
use self::session::Session;
use self::values::RowColumns;
use self::writer::Writers;
use crate::migration::migrations;
use crate::sql::{Database, Dialect, Query};
use crate::{Change, NodeEvents, Result, Store};

/// Timeout of a read.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of a health check.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Store in a PostgreSQL database.
pub(crate) struct Postgres {
    readers: Pool,
    writers: Writers,
    /// For the connection that receives notifications.
    config: Config,
    tls: MakeRustlsConnect,
}

impl Postgres {
    /// Connects and migrates the schema.
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let config = connect::address(url)?;
        let tls = connect::tls(&config)?;
        let writing = connect::pool(&config, &tls, writer::WRITERS)?;
        let mut first = writing
            .get()
            .await
            .map_err(|error| DbError::Connection(error).with_context("opening the database"))?;
        migrate::migrate(&mut first, &migrations(Dialect::Postgres)).await?;
        drop(first);
        Ok(Self {
            readers: connect::pool(&config, &tls, connect::MAX_READERS)?,
            writers: Writers::start(&writing),
            config,
            tls,
        })
    }

    async fn read<T>(
        &self,
        operation: &'static str,
        query: impl AsyncFnOnce(&Session) -> Sql<T>,
    ) -> Result<T> {
        let read = Session::with(&self.readers, READ_TIMEOUT, query).await;
        read.map_err(|error| error.with_context(operation))
    }
}

impl Database for Postgres {
    const DIALECT: Dialect = Dialect::Postgres;

    async fn fold<T: 'static, A: Send + 'static>(
        &self,
        query: Query<T>,
        start: A,
        add: fn(&mut A, T),
    ) -> Result<A> {
        let Query { operation, sql, values, read } = query;
        let mut sum = start;
        self.read(operation, async |session| {
            let mut rows = pin!(session.stream(&sql, &values).await?);
            while let Some(row) = rows.try_next().await? {
                add(&mut sum, read(&mut RowColumns::of(&row))?);
            }
            Ok(())
        })
        .await?;
        Ok(sum)
    }
}

#[async_trait::async_trait]
impl Store for Postgres {
    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
        self.writers.apply(changes).await
    }

    async fn ping(&self) -> Result<()> {
        let query = async |session: &Session| session.batch("SELECT count(*) FROM keys").await;
        let answered = Session::with(&self.readers, PING_TIMEOUT, query).await;
        answered.map_err(|error| error.with_context("checking the database"))
    }

    fn is_shared(&self) -> bool {
        true
    }
}

#[async_trait::async_trait]
impl NodeEvents for Postgres {
    async fn publish(&self, node: &str, at_ms: i64, messages: Vec<String>) -> Result<()> {
        let query =
            async |session: &Session| node_events::publish(session, node, at_ms, &messages).await;
        self.read("publishing events", query).await
    }

    fn subscribe(&self, node: &str) -> Option<mpsc::Receiver<String>> {
        let (config, tls) = (self.config.clone(), self.tls.clone());
        Some(node_events::subscribe(self.readers.clone(), config, tls, node.to_owned()))
    }
}
