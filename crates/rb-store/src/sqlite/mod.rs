//! SQLite backend: one file, one writer thread, a few reader threads.
//!
//! **Layout.** `writer` owns the only connection that writes and commits the changes of many callers together;
//! `reader` has the connections that read. Both are threads with a queue, so neither blocks the async runtime. Each
//! kind of row has a module with its statements, and `migrate` has the schema.
//!
//! **Schema.** `migrations/sqlite/0001_first.sql` documents the tables. Steps are stored in order of arrival and
//! found by run and index. A run's row has the totals over its steps (`run_totals`), which are updated by adding the
//! contribution of a new step and subtracting that of a replaced one; lists, health and reports read runs and never
//! steps. Lists are ordered by `(started_ms, org, run_id)`, the last columns of every index over runs, so a page
//! starts with an index lookup.

/// WAL checkpoint thread.
mod checkpointer;
/// Column conversion.
mod columns;
/// Connections.
mod connect;
/// Gateway state of conversations.
mod conversations;
/// Error conversion.
mod error;
/// Experiments and their runs.
mod experiments;
/// Findings about codebases.
mod findings;
/// Health of runs.
mod health;
/// Keys and settings.
mod keys;
/// Lists of runs.
mod lists;
/// Schema migration.
mod migrate;
/// Operator messages.
mod operator_messages;
/// Patterns.
mod patterns;
/// Profiles.
mod profiles;
/// Reader threads.
mod reader;
/// Write-back cache of runs.
mod run_cache;
/// Columns of the run totals.
mod run_totals;
/// Creation, end and deletion of runs.
mod runs;
/// SQL conditions of a scope.
mod scope;
/// Steps.
mod steps;
/// Daily usage.
mod usage;
/// Writer thread.
mod writer;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, Result as Sql};
use tokio::sync::{mpsc, oneshot};

use self::checkpointer::Checkpointer;
use self::connect::Location;
use self::error::{stopped, with_context};
#[cfg(test)]
pub(crate) use self::migrate::MIGRATIONS;
use self::reader::Readers;
use self::run_cache::RunCache;
use self::writer::Writer;
use crate::{
    Change, ConversationKey, ConversationRow, ExperimentRun, FindingRow, Health, KeyRow,
    OperatorMessageRow, PatternChange, PatternFilter, PatternRow, ProfileRow, Result, RunFilter,
    RunKey, RunRow, Scope, StepRow, Store, UsageDay,
};

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
        Change::PutPattern(pattern) => patterns::put(connection, pattern),
        Change::DeletePattern { org, tier, pattern_id } => {
            patterns::delete(connection, org, tier, pattern_id)
        }
        Change::UsePatterns { used, at_ms } => patterns::mark_used(connection, used, *at_ms),
        Change::PutFinding(finding) => findings::put(connection, finding),
        Change::DeleteFinding { org, codebase, finding_id } => {
            findings::delete(connection, org, codebase, finding_id)
        }
        Change::InvalidateFindings { org, codebase, file_paths } => {
            findings::invalidate(connection, org, codebase, file_paths)
        }
        Change::ClearFindings { org, codebase } => findings::clear(connection, org, codebase),
        Change::PutProfile(profile) => profiles::put(connection, profile),
        Change::DeleteProfile { org, project, profile_id } => {
            profiles::delete(connection, org, project, profile_id)
        }
        Change::PutKey(key) => keys::put(connection, key),
        Change::RevokeKey { key_id, at_ms } => keys::revoke(connection, key_id, *at_ms),
        Change::PutSetting { name, value } => keys::put_setting(connection, name, value),
        Change::PutConversation(row) => conversations::put(connection, row),
        Change::PutOperatorMessage(row) => operator_messages::put(connection, row),
        Change::TakeOperatorMessage { run, message_id } => {
            operator_messages::take(connection, run, message_id)
        }
        Change::ExpireOperatorMessages { before_ms } => {
            operator_messages::expire(connection, *before_ms)
        }
    }
}

/// Executes a cached statement and returns the number of affected rows.
fn execute(connection: &Connection, sql: &str, params: impl rusqlite::Params) -> Sql<u64> {
    let rows = connection.prepare_cached(sql)?.execute(params)?;
    Ok(u64::try_from(rows).unwrap_or(u64::MAX))
}

/// Runs a cached query and returns all rows.
fn select<T>(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    row: impl FnMut(&rusqlite::Row<'_>) -> Sql<T>,
) -> Sql<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(params, row)?.collect()
}

#[async_trait::async_trait]
impl Store for Sqlite {
    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
        self.writer.apply(changes).await
    }

    async fn run(&self, scope: &Scope, run_id: &str) -> Result<Option<RunRow>> {
        let (scope, run_id) = (scope.clone(), run_id.to_owned());
        self.read("reading a run", move |db| lists::run(db, &scope, &run_id)).await
    }

    async fn runs(&self, scope: &Scope, filter: &RunFilter) -> Result<Vec<RunRow>> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read("listing runs", move |db| lists::runs(db, &scope, &filter)).await
    }

    async fn steps(&self, run: &RunKey, from_index: u32, count_max: u32) -> Result<Vec<StepRow>> {
        let run = run.clone();
        self.read("reading steps", move |db| steps::list(db, &run, from_index, count_max)).await
    }

    async fn health(&self, scope: &Scope, since_ms: i64) -> Result<Health> {
        let scope = scope.clone();
        self.read("reading health", move |db| health::health(db, &scope, since_ms)).await
    }

    async fn experiments(&self, scope: &Scope) -> Result<Vec<(String, u64)>> {
        let scope = scope.clone();
        self.read("listing experiments", move |db| experiments::names(db, &scope)).await
    }

    async fn experiment(&self, scope: &Scope, id: &str) -> Result<Vec<ExperimentRun>> {
        let (scope, id) = (scope.clone(), id.to_owned());
        self.read("reading an experiment", move |db| experiments::runs(db, &scope, &id)).await
    }

    async fn patterns(&self, scope: &Scope, filter: &PatternFilter) -> Result<Vec<PatternRow>> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read("listing patterns", move |db| patterns::list(db, &scope, &filter)).await
    }

    async fn pattern(&self, org: &str, tier: &str, pattern_id: &str) -> Result<Option<PatternRow>> {
        let (org, tier, id) = (org.to_owned(), tier.to_owned(), pattern_id.to_owned());
        self.read("reading a pattern", move |db| patterns::find(db, &org, &tier, &id)).await
    }

    async fn pattern_changes(
        &self,
        after_version: u64,
        count_max: u32,
    ) -> Result<Vec<(u64, PatternChange)>> {
        let query = move |db: &Connection| patterns::changes(db, after_version, count_max);
        self.read("reading pattern changes", query).await
    }

    async fn findings(&self, org: &str, codebase: &str) -> Result<Vec<FindingRow>> {
        let (org, codebase) = (org.to_owned(), codebase.to_owned());
        self.read("listing findings", move |db| findings::list(db, &org, &codebase)).await
    }

    async fn codebases(&self, scope: &Scope) -> Result<Vec<String>> {
        let scope = scope.clone();
        self.read("listing codebases", move |db| findings::codebases(db, &scope)).await
    }

    async fn profiles(&self, scope: &Scope) -> Result<Vec<ProfileRow>> {
        let scope = scope.clone();
        self.read("listing profiles", move |db| profiles::list(db, &scope)).await
    }

    async fn keys(&self) -> Result<Vec<KeyRow>> {
        self.read("listing keys", keys::list).await
    }

    async fn key(&self, hash: &str) -> Result<Option<KeyRow>> {
        let hash = hash.to_owned();
        self.read("looking up a key", move |db| keys::find(db, &hash)).await
    }

    async fn usage(&self, org: &str, since_day: i64) -> Result<Vec<UsageDay>> {
        let org = org.to_owned();
        self.read("reading usage", move |db| usage::list(db, &org, since_day)).await
    }

    async fn setting(&self, name: &str) -> Result<Option<String>> {
        let name = name.to_owned();
        self.read("reading a setting", move |db| keys::setting(db, &name)).await
    }

    async fn settings(&self) -> Result<Vec<(String, String)>> {
        self.read("listing settings", keys::settings).await
    }

    async fn orgs(&self) -> Result<Vec<String>> {
        self.read("listing organisations", lists::orgs).await
    }

    async fn conversations(
        &self,
        after: Option<&RunKey>,
        count_max: u32,
    ) -> Result<Vec<ConversationRow>> {
        let after = after.cloned();
        let query = move |db: &Connection| conversations::list(db, after.as_ref(), count_max);
        self.read("listing conversations", query).await
    }

    async fn conversation(&self, run: &RunKey) -> Result<Option<String>> {
        let run = run.clone();
        self.read("reading a conversation", move |db| conversations::find(db, &run)).await
    }

    async fn find_conversation(
        &self,
        org: &str,
        by: ConversationKey,
        any_of: &[String],
    ) -> Result<Option<String>> {
        let (org, any_of) = (org.to_owned(), any_of.to_vec());
        let query = move |db: &Connection| conversations::find_by_key(db, &org, by, &any_of);
        self.read("finding a conversation", query).await
    }

    async fn operator_messages(&self, run: &RunKey) -> Result<Vec<OperatorMessageRow>> {
        let run = run.clone();
        self.read("reading operator messages", move |db| operator_messages::list(db, &run)).await
    }

    async fn runs_with_messages(&self, since_ms: i64) -> Result<Vec<RunKey>> {
        self.read("listing operator messages", move |db| operator_messages::runs(db, since_ms))
            .await
    }

    async fn publish(&self, _node: &str, _at_ms: i64, _messages: Vec<String>) -> Result<()> {
        Ok(())
    }

    fn subscribe(&self, _node: &str) -> Option<mpsc::Receiver<String>> {
        None
    }

    async fn ping(&self) -> Result<()> {
        // Checks both kinds of thread. An empty write does not touch the disk.
        self.writer.apply(Vec::new()).await?;
        let query = |db: &Connection| db.query_row("SELECT count(*) FROM keys", (), |_| Ok(()));
        self.read("checking the database", query).await
    }
}
