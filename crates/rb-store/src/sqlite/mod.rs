//! The embedded database: one SQLite file, one thread that writes, a few that read.
//!
//! **Layout.** `writer` owns the only connection that writes and commits for many callers at once; `reader` holds
//! the connections that read. Neither blocks the async runtime: both are threads behind a queue. Each kind of row has
//! a file with its statements; `migrate` holds the schema together.
//!
//! **Schema.** `migrations/sqlite/0001_first.sql` explains every table. Three things are worth knowing before reading
//! a statement. Steps lie in the order they came in and are found by run and index.
//! A run's row holds the sums over its steps (`tally`), kept exact by adding what a step brings and taking away what
//! it brought before; lists, health and reports read runs and never steps. And a run's place in a list is
//! `(started_ms, org, run_id)`, which every index over runs ends with, so that a page is read from where it begins.

/// How values lie in a cell.
mod cell;
/// The thread that puts the journal into the database.
mod checkpoint;
/// Opening connections.
mod connect;
/// What the gateway remembers.
mod conversations;
/// Experiments and their runs.
mod experiments;
/// What SQLite complains about, in our words.
mod fault;
/// What agents learned about codebases.
mod findings;
/// The runs that are written to.
mod heads;
/// How runs fare.
mod health;
/// Keys and settings.
mod keys;
/// Which runs a list shows.
mod lists;
/// The schema and its versions.
mod migrate;
/// Guidance.
mod patterns;
/// Weights under a name.
mod profiles;
/// The threads that read.
mod reader;
/// Runs begin, end and go.
mod runs;
/// Whose rows a statement sees.
mod scope;
/// Steps are put and read.
mod steps;
/// A run's steps in numbers.
mod tally;
/// What was used on which day.
mod usage;
/// What people want to say to runs.
mod waiting;
/// The thread that writes.
mod writer;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, Result as Sql};
use tokio::sync::{mpsc, oneshot};

use self::checkpoint::Checkpointer;
use self::connect::Place;
use self::fault::{stopped, while_doing};
use self::heads::Heads;
use self::reader::Readers;
use self::writer::Writer;
use crate::{
    Change, ConversationRow, ExperimentRun, FindingRow, Health, KeyRow, KnownBy, PatternChange,
    PatternFilter, PatternRow, ProfileRow, Result, RunFilter, RunKey, RunRow, Scope, StepRow,
    Store, UsageDay, WaitingRow,
};

/// A store in one file, or in memory. Fields drop in this order: whoever reads is done before the writer closes.
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
        let writer = Writer::start(Place::File(path.clone())).await?;
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
        let writer = Writer::start(Place::Memory).await?;
        Ok(Self { readers: None, _checkpointer: None, writer, _database: None })
    }

    /// Runs a query on a thread that reads; where the data is in memory, on the one that writes.
    async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        query: impl FnOnce(&Connection) -> Sql<T> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move |connection: &Connection| {
            // Nobody waits any more when the caller has given up.
            if !answer.is_closed() {
                drop(answer.send(query(connection)));
            }
        });
        match &self.readers {
            Some(readers) => readers.read(job).await?,
            None => self.writer.read(job).await?,
        }
        answered.await.map_err(|_| stopped(doing))?.map_err(while_doing(doing))
    }
}

/// Makes one change and says how many rows it touched: runs, patterns and so on, not what hangs on them.
fn write(connection: &Connection, heads: &mut Heads, change: &Change) -> Sql<u64> {
    match change {
        Change::Expect { run, version } => runs::expect(connection, heads, run, *version),
        Change::PutStep(step) => steps::put(connection, heads, step, 1),
        Change::AmendStep(step) => steps::put(connection, heads, step, 0),
        Change::StartRun(start) => {
            heads.settle(connection, &start.run)?;
            runs::start(connection, start)
        }
        Change::FinishRun { run, at_ms, outcome } => {
            heads.settle(connection, run)?;
            runs::finish(connection, run, *at_ms, outcome)
        }
        Change::DeleteRun(run) => {
            heads.settle(connection, run)?;
            runs::delete(connection, run)
        }
        Change::ExpireRuns { before_ms, runs_max } => {
            heads.settle_all(connection)?;
            runs::expire(connection, *before_ms, *runs_max)
        }
        Change::SetVersion { run, version } => {
            heads.settle(connection, run)?;
            runs::set_version(connection, run, *version)
        }
        Change::SetUsage { org, day } => {
            heads.settle_all(connection)?;
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
        Change::PutWaiting(row) => waiting::put(connection, row),
        Change::TakeWaiting { run, words_id } => waiting::take(connection, run, words_id),
        Change::ExpireWaiting { before_ms } => waiting::expire(connection, *before_ms),
    }
}

/// Executes a statement, prepared once, and says how many rows it touched.
fn execute(connection: &Connection, sql: &str, params: impl rusqlite::Params) -> Sql<u64> {
    let rows = connection.prepare_cached(sql)?.execute(params)?;
    Ok(u64::try_from(rows).unwrap_or(u64::MAX))
}

/// All rows of a query, prepared once.
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
        self.read("reading changes of patterns", query).await
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

    async fn conversation_known_by(
        &self,
        org: &str,
        by: KnownBy,
        any_of: &[String],
    ) -> Result<Option<String>> {
        let (org, any_of) = (org.to_owned(), any_of.to_vec());
        let query = move |db: &Connection| conversations::known_by(db, &org, by, &any_of);
        self.read("finding a conversation", query).await
    }

    async fn waiting(&self, run: &RunKey) -> Result<Vec<WaitingRow>> {
        let run = run.clone();
        self.read("reading what waits", move |db| waiting::list(db, &run)).await
    }

    async fn runs_waited_for(&self, since_ms: i64) -> Result<Vec<RunKey>> {
        self.read("listing what waits", move |db| waiting::runs(db, since_ms)).await
    }

    async fn tell(&self, _node: &str, _messages: Vec<String>) -> Result<()> {
        Ok(())
    }

    fn hear(&self, _node: &str) -> Option<mpsc::Receiver<String>> {
        None
    }

    async fn ping(&self) -> Result<()> {
        // Both kinds of thread must be there; writing nothing does not touch the disk.
        self.writer.apply(Vec::new()).await?;
        let query = |db: &Connection| db.query_row("SELECT count(*) FROM keys", (), |_| Ok(()));
        self.read("asking the database", query).await
    }
}
