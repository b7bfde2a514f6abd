//! PostgreSQL backend, for several nodes.
//!
//! **Layout.** `connect` creates a pool for readers and one for writers. `writer` collects queued requests into one
//! transaction: `batch` iterates over the changes, `load` reads and locks the runs, `unit_of_work` computes their new
//! state in memory, and `flush` and `rows` write it as arrays, pipelined with the commit. A transaction needs two
//! round trips and one disk sync, whatever the number of requests. Each kind of row has a module with its queries,
//! and `migrate` has the schema.
//!
//! **Concurrency.** A writer holds the row lock of each run from the first statement to the commit, and locks are
//! acquired in order of keys. So totals are exact with any number of nodes, and there are no deadlocks.

/// Transaction over many requests.
mod batch;
/// Connection pools.
mod connect;
/// Gateway state of conversations.
mod conversations;
/// Error conversion.
mod error;
/// Experiments and their runs.
mod experiments;
/// Findings about codebases.
mod findings;
/// Writes a unit of work.
mod flush;
/// Health of runs.
mod health;
/// Keys and settings.
mod keys;
/// Lists of runs.
mod lists;
/// Loads a unit of work.
mod load;
/// Schema migration.
mod migrate;
/// Events between nodes.
mod node_events;
/// Operator messages.
mod operator_messages;
/// Patterns.
mod patterns;
/// Profiles.
mod profiles;
/// Batched writes of runs and steps.
mod rows;
/// Deletion of runs.
mod runs;
/// SQL conditions of a scope.
mod scope;
/// Pooled connection with prepared statements.
mod session;
/// Steps.
mod steps;
/// Text and JSON columns.
mod text;
/// In-memory state of a transaction.
mod unit_of_work;
/// Daily usage.
mod usage;
/// Writer tasks.
mod writer;

use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::sync::mpsc;
use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

use self::error::{DbError, Sql};
pub(crate) use self::migrate::MIGRATIONS;
use self::session::Session;
use self::writer::Writers;
use crate::{
    Change, ConversationKey, ConversationRow, ExperimentRun, FindingRow, Health, KeyRow,
    OperatorMessageRow, PatternChange, PatternFilter, PatternRow, ProfileRow, Result, RunFilter,
    RunKey, RunRow, Scope, StepRow, Store, UsageDay,
};

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
        migrate::migrate(&mut first, MIGRATIONS).await?;
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

#[async_trait::async_trait]
impl Store for Postgres {
    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
        self.writers.apply(changes).await
    }

    async fn run(&self, scope: &Scope, run_id: &str) -> Result<Option<RunRow>> {
        self.read("reading a run", async |session| lists::run(session, scope, run_id).await).await
    }

    async fn runs(&self, scope: &Scope, filter: &RunFilter) -> Result<Vec<RunRow>> {
        self.read("listing runs", async |session| lists::runs(session, scope, filter).await).await
    }

    async fn steps(&self, run: &RunKey, from_index: u32, count_max: u32) -> Result<Vec<StepRow>> {
        let query =
            async |session: &Session| steps::list(session, run, from_index, count_max).await;
        self.read("reading steps", query).await
    }

    async fn health(&self, scope: &Scope, since_ms: i64) -> Result<Health> {
        let query = async |session: &Session| health::health(session, scope, since_ms).await;
        self.read("reading health", query).await
    }

    async fn experiments(&self, scope: &Scope) -> Result<Vec<(String, u64)>> {
        let query = async |session: &Session| experiments::names(session, scope).await;
        self.read("listing experiments", query).await
    }

    async fn experiment(&self, scope: &Scope, id: &str) -> Result<Vec<ExperimentRun>> {
        let query = async |session: &Session| experiments::runs(session, scope, id).await;
        self.read("reading an experiment", query).await
    }

    async fn patterns(&self, scope: &Scope, filter: &PatternFilter) -> Result<Vec<PatternRow>> {
        let query = async |session: &Session| patterns::list(session, scope, filter).await;
        self.read("listing patterns", query).await
    }

    async fn pattern(&self, org: &str, tier: &str, pattern_id: &str) -> Result<Option<PatternRow>> {
        let query = async |session: &Session| patterns::find(session, org, tier, pattern_id).await;
        self.read("reading a pattern", query).await
    }

    async fn pattern_changes(
        &self,
        after_version: u64,
        count_max: u32,
    ) -> Result<Vec<(u64, PatternChange)>> {
        let query =
            async |session: &Session| patterns::changes(session, after_version, count_max).await;
        self.read("reading pattern changes", query).await
    }

    async fn findings(&self, org: &str, codebase: &str) -> Result<Vec<FindingRow>> {
        let query = async |session: &Session| findings::list(session, org, codebase).await;
        self.read("listing findings", query).await
    }

    async fn codebases(&self, scope: &Scope) -> Result<Vec<String>> {
        let query = async |session: &Session| findings::codebases(session, scope).await;
        self.read("listing codebases", query).await
    }

    async fn profiles(&self, scope: &Scope) -> Result<Vec<ProfileRow>> {
        self.read("listing profiles", async |session| profiles::list(session, scope).await).await
    }

    async fn keys(&self) -> Result<Vec<KeyRow>> {
        self.read("listing keys", async |session| keys::list(session).await).await
    }

    async fn key(&self, hash: &str) -> Result<Option<KeyRow>> {
        self.read("looking up a key", async |session| keys::find(session, hash).await).await
    }

    async fn usage(&self, org: &str, since_day: i64) -> Result<Vec<UsageDay>> {
        let query = async |session: &Session| usage::list(session, org, since_day).await;
        self.read("reading usage", query).await
    }

    async fn setting(&self, name: &str) -> Result<Option<String>> {
        self.read("reading a setting", async |session| keys::setting(session, name).await).await
    }

    async fn settings(&self) -> Result<Vec<(String, String)>> {
        self.read("listing settings", async |session| keys::settings(session).await).await
    }

    async fn orgs(&self) -> Result<Vec<String>> {
        self.read("listing organisations", async |session| lists::orgs(session).await).await
    }

    async fn conversations(
        &self,
        after: Option<&RunKey>,
        count_max: u32,
    ) -> Result<Vec<ConversationRow>> {
        let query = async |session: &Session| conversations::list(session, after, count_max).await;
        self.read("listing conversations", query).await
    }

    async fn conversation(&self, run: &RunKey) -> Result<Option<String>> {
        let query = async |session: &Session| conversations::find(session, run).await;
        self.read("reading a conversation", query).await
    }

    async fn find_conversation(
        &self,
        org: &str,
        by: ConversationKey,
        any_of: &[String],
    ) -> Result<Option<String>> {
        let query =
            async |session: &Session| conversations::find_by_key(session, org, by, any_of).await;
        self.read("finding a conversation", query).await
    }

    async fn operator_messages(&self, run: &RunKey) -> Result<Vec<OperatorMessageRow>> {
        self.read("reading operator messages", async |session| {
            operator_messages::list(session, run).await
        })
        .await
    }

    async fn runs_with_messages(&self, since_ms: i64) -> Result<Vec<RunKey>> {
        self.read("listing operator messages", async |session| {
            operator_messages::runs(session, since_ms).await
        })
        .await
    }

    async fn publish(&self, node: &str, at_ms: i64, messages: Vec<String>) -> Result<()> {
        let query =
            async |session: &Session| node_events::publish(session, node, at_ms, &messages).await;
        self.read("publishing events", query).await
    }

    fn subscribe(&self, node: &str) -> Option<mpsc::Receiver<String>> {
        let (config, tls) = (self.config.clone(), self.tls.clone());
        Some(node_events::subscribe(self.readers.clone(), config, tls, node.to_owned()))
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn ping(&self) -> Result<()> {
        let query = async |session: &Session| session.batch("SELECT count(*) FROM keys").await;
        let answered = Session::with(&self.readers, PING_TIMEOUT, query).await;
        answered.map_err(|error| error.with_context("checking the database"))
    }
}
