//! The database that many nodes share.
//!
//! **Layout.** `connect` makes two pools, for those who read and those who write. `writer` collects what waits into one
//! transaction: `batch` goes through the changes, `load` reads and locks the runs they are about, `ledger` works out in
//! memory what becomes of them, and `put` and `rows` write that as arrays, commit included, without waiting in between.
//! Whatever the number of callers, a transaction costs two round trips and one wait for the disk.
//! Each kind of row that is read has a file with its queries; `migrate` holds the schema together.
//!
//! **Many nodes.** Whoever changes a run holds the lock of its row from the first statement to the commit, and all
//! locks are taken in the order of names. So the sums of a run are exact whoever writes, and nobody waits in a circle.

/// One transaction for many callers.
mod batch;
/// From an address to connections.
mod connect;
/// What the gateway remembers.
mod conversations;
/// Experiments and their runs.
mod experiments;
/// What PostgreSQL complains about, in our words.
mod fault;
/// What agents learned about codebases.
mod findings;
/// How runs fare.
mod health;
/// Keys and settings.
mod keys;
/// What a transaction does to runs.
mod ledger;
/// Which runs a list shows.
mod lists;
/// Runs and steps, read to be changed.
mod load;
/// The schema and its versions.
mod migrate;
/// Guidance.
mod patterns;
/// Weights under a name.
mod profiles;
/// What was changed, written.
mod put;
/// Rows of runs and steps, as arrays.
mod rows;
/// Runs go.
mod runs;
/// Whose rows a statement sees.
mod scope;
/// A connection in use.
mod session;
/// Steps are read.
mod steps;
/// Texts and JSON.
mod text;
/// What nodes tell each other.
mod told;
/// What was used on which day.
mod usage;
/// What people want to say to runs.
mod waiting;
/// Those who write.
mod writer;

use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::sync::mpsc;
use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

use self::fault::{Fault, Sql};
use self::session::Session;
use self::writer::Writers;
use crate::{
    Change, ConversationRow, ExperimentRun, FindingRow, Health, KeyRow, KnownBy, PatternChange,
    PatternFilter, PatternRow, ProfileRow, Result, RunFilter, RunKey, RunRow, Scope, StepRow,
    Store, UsageDay, WaitingRow,
};

/// A read must be answered within this time.
const READ_WITHIN: Duration = Duration::from_secs(30);
/// Whether the database is there must be known sooner.
const PING_WITHIN: Duration = Duration::from_secs(2);

/// A store in PostgreSQL.
pub(crate) struct Postgres {
    readers: Pool,
    writers: Writers,
    /// For the connection that signals of other nodes arrive on.
    config: Config,
    tls: MakeRustlsConnect,
}

impl Postgres {
    /// Connects and brings the schema up to date.
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let config = connect::address(url)?;
        let tls = connect::tls(&config)?;
        let writing = connect::pool(&config, &tls, writer::WRITERS)?;
        let mut first = writing
            .get()
            .await
            .map_err(|error| Fault::Connection(error).while_doing("opening the database"))?;
        migrate::migrate(&mut first, migrate::ALL).await?;
        drop(first);
        Ok(Self {
            readers: connect::pool(&config, &tls, connect::READERS)?,
            writers: Writers::start(&writing),
            config,
            tls,
        })
    }

    async fn read<T>(
        &self,
        doing: &'static str,
        query: impl AsyncFnOnce(&Session) -> Sql<T>,
    ) -> Result<T> {
        let read = Session::with(&self.readers, READ_WITHIN, query).await;
        read.map_err(|fault| fault.while_doing(doing))
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
        self.read("reading changes of patterns", query).await
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

    async fn conversation_known_by(
        &self,
        org: &str,
        by: KnownBy,
        any_of: &[String],
    ) -> Result<Option<String>> {
        let query =
            async |session: &Session| conversations::known_by(session, org, by, any_of).await;
        self.read("finding a conversation", query).await
    }

    async fn waiting(&self, run: &RunKey) -> Result<Vec<WaitingRow>> {
        self.read("reading what waits", async |session| waiting::list(session, run).await).await
    }

    async fn runs_waited_for(&self, since_ms: i64) -> Result<Vec<RunKey>> {
        self.read("listing what waits", async |session| waiting::runs(session, since_ms).await)
            .await
    }

    async fn tell(&self, node: &str, messages: Vec<String>) -> Result<()> {
        let query = async |session: &Session| told::tell(session, node, &messages).await;
        self.read("telling other nodes", query).await
    }

    fn hear(&self, node: &str) -> Option<mpsc::Receiver<String>> {
        let (config, tls) = (self.config.clone(), self.tls.clone());
        Some(told::hear(self.readers.clone(), config, tls, node.to_owned()))
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn ping(&self) -> Result<()> {
        let query = async |session: &Session| session.batch("SELECT count(*) FROM keys").await;
        let answered = Session::with(&self.readers, PING_WITHIN, query).await;
        answered.map_err(|fault| fault.while_doing("asking the database"))
    }
}
