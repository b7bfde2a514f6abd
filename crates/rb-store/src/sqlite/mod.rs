//! SQLite backend: one file, one writer thread, a few reader threads.
//!
//! **Layout.** `writer` owns the only connection that writes and commits the changes of many callers together;
//! `reader` has the connections that read. Both are threads with a queue, so neither blocks the async runtime. The
//! reads are those of `sql`; `runs`, `steps` and `usage` write, and `migrate` has the schema.
//!
//! **Schema.** `migrations/sqlite/0001_first.sql` documents the tables. Steps are stored in order of arrival and
//! found by run and index. A run's row has the totals over its steps (`run_totals`), which are updated by adding the
//! contribution of a new step and subtracting that of a replaced one; lists, health and reports read runs and never
//! steps. Lists are ordered by `(started_ms, org, run_id)`, the last columns of every index over runs, so a page
//! starts with an index lookup.

/// WAL checkpoint thread.
mod checkpointer;
/// Connections.
mod connect;
/// Error conversion.
mod error;
/// Schema migration.
mod migrate;
/// Reader threads.
mod reader;
/// Write-back cache of runs.
mod run_cache;
/// Creation, end and deletion of runs.
mod runs;
/// Steps.
mod steps;
/// Daily usage.
mod usage;
/// Writer thread.
mod writer;

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Result as Sql, Row, ToSql, params_from_iter};
use tokio::sync::{mpsc, oneshot};

use self::checkpointer::Checkpointer;
use self::connect::Location;
use self::error::{stopped, with_context};
use self::reader::Readers;
use self::run_cache::RunCache;
use self::writer::Writer;
use crate::sql::{
    Columns, Converted, Database, Dialect, Query, Table as _, Value, ValueError, plain_writes,
    upsert,
};
use crate::{Change, ConversationRow, NodeEvents, Result, Store};

/// Store in one file or in memory. The order of fields is the drop order: readers end before the writer closes.
pub(crate) struct Sqlite {
    readers: Option<Readers>,
    _checkpointer: Option<Checkpointer>,
    writer: Writer,
    /// See [`connect::handle`].
    _database: Option<Arc<File>>,
}

impl Sqlite {
    pub(crate) async fn open(path: &Path) -> Result<Self> {
        let path = path.to_owned();
        let writer = Writer::start(Location::File(path.clone())).await?;
        let queue = writer.queue()?;
        let database = connect::handle(&path)?;
        let synced = Arc::clone(&database);
        let open = move || Ok((Readers::start(&path)?, Checkpointer::start(&path, synced, queue)?));
        let opened: Result<_> =
            tokio::task::spawn_blocking(open).await.map_err(|_| stopped("opening the database"))?;
        let (readers, checkpointer) = opened?;
        let (readers, checkpointer) = (Some(readers), Some(checkpointer));
        Ok(Self { readers, _checkpointer: checkpointer, writer, _database: Some(database) })
    }

    pub(crate) async fn in_memory() -> Result<Self> {
        let writer = Writer::start(Location::Memory).await?;
        Ok(Self { readers: None, _checkpointer: None, writer, _database: None })
    }

    /// Runs a query on a reader thread; on the writer thread if the database is in memory.
    async fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        query: impl FnOnce(&Connection) -> Sql<T> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move |connection: &Connection| {
            // Skip the query if the caller was dropped.
            if !answer.is_closed() {
                drop(answer.send(query(connection)));
            }
        });
        match &self.readers {
            Some(readers) => readers.read(job).await?,
            None => self.writer.read(job).await?,
        }
        answered.await.map_err(|_| stopped(operation))?.map_err(with_context(operation))
    }
}

/// Applies one change and returns the number of affected rows, without dependent rows.
#[expect(clippy::wildcard_enum_match_arm, reason = "`plain_writes` names all others")]
fn write(connection: &Connection, cache: &mut RunCache, change: &Change) -> Sql<u64> {
    match change {
        Change::ExpectVersion { run, version } => runs::expect(connection, cache, run, *version),
        Change::PutStep(step) => steps::put(connection, cache, step, 1),
        Change::AmendStep(step) => steps::put(connection, cache, step, 0),
        Change::StartRun(start) => {
            cache.flush_run(connection, &start.run)?;
            runs::start(connection, start)
        }
        Change::FinishRun { run, at_ms, outcome } => {
            cache.flush_run(connection, run)?;
            runs::finish(connection, run, *at_ms, outcome)
        }
        Change::DeleteRun(run) => {
            cache.flush_run(connection, run)?;
            runs::delete(connection, run)
        }
        Change::ExpireRuns { before_ms, runs_max } => {
            cache.flush_all(connection)?;
            runs::expire(connection, *before_ms, *runs_max)
        }
        Change::SetVersion { run, version } => {
            cache.flush_run(connection, run)?;
            runs::set_version(connection, run, *version)
        }
        Change::SetUsage { org, day } => {
            cache.flush_all(connection)?;
            usage::set(connection, org, *day)
        }
        Change::PutConversation(row) => {
            static SQL: LazyLock<String> = LazyLock::new(upsert::<ConversationRow>);
            let mut values = Vec::new();
            row.write(&mut values).map_err(conversion)?;
            execute(connection, &SQL, &values)
        }
        other => {
            let statements = plain_writes(other, Dialect::Sqlite).map_err(conversion)?;
            statements.iter().map(|one| execute(connection, &one.sql, &one.values)).sum()
        }
    }
}

/// Executes a cached statement and returns the number of affected rows.
fn execute(connection: &Connection, sql: &str, values: &[Value<'_>]) -> Sql<u64> {
    let rows = connection.prepare_cached(sql)?.execute(params_from_iter(values))?;
    Ok(u64::try_from(rows).unwrap_or(u64::MAX))
}

/// Runs a cached query and passes each row to a function.
fn for_each(
    connection: &Connection,
    sql: &str,
    values: &[Value<'_>],
    mut each: impl FnMut(&mut dyn Columns) -> Converted<()>,
) -> Sql<()> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        each(&mut RowColumns { row, position: 0 }).map_err(conversion)?;
    }
    Ok(())
}

/// Runs a cached query and returns its first row.
fn find<T>(
    connection: &Connection,
    sql: &str,
    values: &[Value<'_>],
    read: impl Fn(&mut dyn Columns) -> Converted<T>,
) -> Sql<Option<T>> {
    let mut found = None;
    for_each(connection, sql, values, |columns| {
        found = Some(read(columns)?);
        Ok(())
    })?;
    Ok(found)
}

fn conversion(error: ValueError) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(error.into())
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> Sql<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Bool(flag) => ValueRef::Integer((*flag).into()),
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

struct RowColumns<'row> {
    row: &'row Row<'row>,
    position: usize,
}

impl Columns for RowColumns<'_> {
    fn position(&self) -> usize {
        self.position
    }

    fn next(&mut self) -> Converted<Value<'_>> {
        let column = self.position;
        self.position += 1;
        let failed = |cause: String| ValueError::Database { column, cause };
        match self.row.get_ref(column).map_err(|error| failed(error.to_string()))? {
            ValueRef::Null => Ok(Value::Null),
            ValueRef::Integer(number) => Ok(Value::Int(number)),
            ValueRef::Real(number) => Ok(Value::Real(number)),
            ValueRef::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => Ok(Value::Text(text.into())),
                Err(error) => Err(failed(error.to_string())),
            },
            ValueRef::Blob(_) => Err(failed("unexpected blob".to_owned())),
        }
    }
}

impl Database for Sqlite {
    const DIALECT: Dialect = Dialect::Sqlite;

    async fn fold<T: 'static, A: Send + 'static>(
        &self,
        query: Query<T>,
        start: A,
        add: fn(&mut A, T),
    ) -> Result<A> {
        let Query { operation, sql, values, read } = query;
        self.read(operation, move |connection| {
            let mut sum = start;
            for_each(connection, &sql, &values, |columns| {
                add(&mut sum, read(columns)?);
                Ok(())
            })?;
            Ok(sum)
        })
        .await
    }
}

#[async_trait::async_trait]
impl Store for Sqlite {
    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
        self.writer.apply(changes).await
    }

    async fn ping(&self) -> Result<()> {
        // Checks both kinds of thread. An empty write does not touch the disk.
        self.writer.apply(Vec::new()).await?;
        let query = |db: &Connection| db.query_row("SELECT count(*) FROM keys", (), |_| Ok(()));
        self.read("checking the database", query).await
    }
}

/// Only one node can use the file, so there are no events.
#[async_trait::async_trait]
impl NodeEvents for Sqlite {
    async fn publish(&self, _node: &str, _at_ms: i64, _messages: Vec<String>) -> Result<()> {
        Ok(())
    }

    fn subscribe(&self, _node: &str) -> Option<mpsc::Receiver<String>> {
        None
    }
}
