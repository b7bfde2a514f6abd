//! Keeps what must not be lost: runs and their steps, patterns, findings, profiles, keys.
//!
//! One trait, `Store`, and one suite of tests that every backend passes. What is written goes through one door,
//! `Store::apply`, as a list of `Change`s that take effect together; a change that was answered survives the end
//! of the process. What is read has a method each, and a `Scope` that says whose rows the caller may see.
//!
//! **Promises.** No HTTP. No ids and no times are made here: the caller says which id, and when.

/// A queue on disk before a database that may be away.
mod backlog;
/// What may be changed.
mod change;
/// What every backend keeps to, as checks.
pub mod contract;
/// From one store to another.
mod copy;
/// How long those who write wait for company.
mod crowd;
/// How many runs fare together.
mod fare;
/// Lists and maps, in a cell.
mod json;
/// What schemas are made of.
mod migration;
/// Counts and amounts, in a cell.
mod numbers;
/// From an address to a store.
mod open;
/// The database that many nodes share.
mod postgres;
/// What is kept, as it is read and written.
mod rows;
/// What runs say about themselves.
mod said;
/// The embedded database.
mod sqlite;
/// A run's steps in numbers.
mod tally;

use tokio::sync::mpsc;

pub use backlog::{Backlog, BacklogState};
pub use change::{Change, RunStart};
pub use copy::{Amounts, amounts, copy};
pub use open::open;
pub use rows::{
    ConversationRow, DayHealth, Evidence, ExperimentRun, FindingRow, Health, KeyRow, KnownBy,
    ModelTokens, MonitorHealth, OutcomeClass, PatternChange, PatternFilter, PatternRow, ProfileRow,
    RunAfter, RunFilter, RunKey, RunRow, Scope, Scores, StepRow, Tokens, UsageDay, WaitingRow,
};

/// Why something could not be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database is away, locked or full for the moment: the same call may succeed later.
    #[error("the database cannot be used at the moment: {0}")]
    Unavailable(String),
    /// Somebody else has changed the run since it was read: read it again, and decide again.
    #[error("the run was changed by somebody else in the meantime")]
    Moved,
    /// The data was written by a later version of the program.
    #[error(
        "the database has schema version {found}, this program knows {known}: \
         use the program that wrote it, or a newer one"
    )]
    TooNew { found: u32, known: u32 },
    /// Anything else, in the database's words and where it happened.
    #[error("{doing}: {cause}")]
    Failed { doing: &'static str, cause: String },
}

/// What a call to the store gives.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A place where things are kept.
#[async_trait::async_trait]
pub trait Store: Send + Sync + 'static {
    /// Makes changes that take effect together, in this order, and returns once they are durable: for each, how
    /// many rows it touched. Concurrent calls share a commit.
    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<u64>>;

    /// One run; of several organisations that chose the same id and are all in scope, the newest.
    async fn run(&self, scope: &Scope, run_id: &str) -> Result<Option<RunRow>>;
    /// Runs, newest first.
    async fn runs(&self, scope: &Scope, filter: &RunFilter) -> Result<Vec<RunRow>>;
    /// The steps of a run by index, from `from_index` on.
    async fn steps(&self, run: &RunKey, from_index: u32, count_max: u32) -> Result<Vec<StepRow>>;
    /// How the runs that began at `since_ms` or later fare.
    async fn health(&self, scope: &Scope, since_ms: i64) -> Result<Health>;
    /// The experiments in scope by name, with their number of runs.
    async fn experiments(&self, scope: &Scope) -> Result<Vec<(String, u64)>>;
    /// The runs of an experiment, oldest first.
    async fn experiment(&self, scope: &Scope, id: &str) -> Result<Vec<ExperimentRun>>;

    /// The patterns a scope may use: its own E1, all E2 and E3. By tier, then id.
    async fn patterns(&self, scope: &Scope, filter: &PatternFilter) -> Result<Vec<PatternRow>>;
    /// One pattern; `org` is empty for E2 and E3.
    async fn pattern(&self, org: &str, tier: &str, pattern_id: &str) -> Result<Option<PatternRow>>;
    /// What became of the library after a version, in order, each with the version it made. Whoever has heard of a
    /// version has heard of all before it; a pattern that changed twice is told once, as it is now.
    async fn pattern_changes(
        &self,
        after_version: u64,
        count_max: u32,
    ) -> Result<Vec<(u64, PatternChange)>>;
    /// The findings of a codebase, oldest first.
    async fn findings(&self, org: &str, codebase: &str) -> Result<Vec<FindingRow>>;
    /// The codebases in scope that have findings or runs, sorted. Findings belong to no project, so a scope with a
    /// project sees those of its runs alone.
    async fn codebases(&self, scope: &Scope) -> Result<Vec<String>>;
    /// The profiles in scope: of the organisation, and of the project where the scope has one, else of all its
    /// projects.
    async fn profiles(&self, scope: &Scope) -> Result<Vec<ProfileRow>>;

    /// All keys, revoked ones too, oldest first.
    async fn keys(&self) -> Result<Vec<KeyRow>>;
    /// The key with this hash, revoked or not.
    async fn key(&self, hash: &str) -> Result<Option<KeyRow>>;
    /// What an organisation used per day, from `since_day` on (days since 1970), oldest first; runs of experiments
    /// do not count.
    async fn usage(&self, org: &str, since_day: i64) -> Result<Vec<UsageDay>>;
    /// A value kept under a name.
    async fn setting(&self, name: &str) -> Result<Option<String>>;

    /// Everything that is kept under a name, by name.
    async fn settings(&self) -> Result<Vec<(String, String)>>;
    /// The organisations that have runs, usage, findings or keys, sorted.
    async fn orgs(&self) -> Result<Vec<String>>;
    /// All conversations by organisation and run, from behind one of them on.
    async fn conversations(
        &self,
        after: Option<&RunKey>,
        count_max: u32,
    ) -> Result<Vec<ConversationRow>>;
    /// What the gateway remembers of a run's conversation.
    async fn conversation(&self, run: &RunKey) -> Result<Option<String>>;
    /// The run of the newest conversation that is known by the first of these that any is known by.
    async fn conversation_known_by(
        &self,
        org: &str,
        by: KnownBy,
        any_of: &[String],
    ) -> Result<Option<String>>;

    /// What waits to be said to a run, oldest first.
    async fn waiting(&self, run: &RunKey) -> Result<Vec<WaitingRow>>;
    /// The runs that something waits for since `since_ms` or later, by organisation and id.
    async fn runs_waited_for(&self, since_ms: i64) -> Result<Vec<RunKey>>;

    /// Tells the other nodes that use this store; a file has none. A message that they miss is lost.
    async fn tell(&self, node: &str, messages: Vec<String>) -> Result<()>;
    /// What other nodes tell from now on, until the receiver is dropped; nothing where there are none.
    fn hear(&self, node: &str) -> Option<mpsc::Receiver<String>>;

    /// Whether the database answers: for health checks.
    async fn ping(&self) -> Result<()>;

    /// Whether other nodes may change the same runs.
    fn is_shared(&self) -> bool {
        false
    }

    /// What waits on this node for a database that is away; `None` where nothing can wait, without a [`Backlog`].
    fn backlog(&self) -> Option<BacklogState> {
        None
    }
}
