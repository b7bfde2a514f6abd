//! Persistent storage of runs, steps, patterns, findings, profiles and keys.
//!
//! The trait `Store`, made of one trait per area, has two backends, SQLite and PostgreSQL; both pass the contract
//! suite in `rb-testkit`. All
//! writes go through `Store::apply` as a list of `Change`s that is applied atomically and is durable when the
//! call returns. Each kind of read has its own method, most of them limited by a `Scope`.
//!
//! **Promises.** No HTTP. Ids and times come from the caller: the store reads no wall clock, and the row numbers that
//! the database assigns never leave it.

/// On-disk write queue for a database that is unavailable.
mod backlog;
/// Write operations.
mod change;
/// Copies between stores.
mod copy;
/// Signatures of the read methods, for wrappers.
mod delegate;
/// Adaptive group-commit delay.
mod group_commit;
/// Aggregation of run totals to health figures.
mod health_rollup;
/// Schema migrations.
mod migration;
/// Numeric columns.
mod numeric;
/// Opens a store by URL.
mod open;
/// PostgreSQL backend.
mod postgres;
/// Row types.
mod rows;
/// Metadata of runs.
mod run_metadata;
/// Aggregates over the steps of a run.
mod run_totals;
/// SQL of both backends.
mod sql;
/// SQLite backend.
mod sqlite;
/// Traits by area.
mod traits;

pub use backlog::{Backlog, BacklogState};
pub use change::{Change, RunStart};
pub use copy::{RowCounts, copy, count_rows};
pub use open::open;
pub use rows::{
    ConversationKey, ConversationRow, DayHealth, Evidence, ExperimentRun, FindingRow, Health,
    KeyRow, ModelTokens, MonitorHealth, OperatorMessageRow, OutcomeClass, PatternChange,
    PatternFilter, PatternRow, ProfileRow, RUN_IDLE_TIMEOUT_MS, RunAfter, RunFilter, RunKey,
    RunRow, Scope, Scores, StepRow, Tokens, UsageDay, is_running, run_status,
};
pub use traits::{
    Conversations, Keys, Library, NodeEvents, OperatorMessages, RunLists, Runs, Store,
};

/// Error of a store operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database is unreachable, locked or out of space; the same call may succeed later.
    #[error("database unavailable: {0}")]
    Unavailable(String),
    /// The run has changed since it was read; read it again and retry.
    #[error("version conflict: the run has changed since it was read; read it again and retry")]
    VersionConflict,
    /// The schema was written by a newer version of the program.
    #[error(
        "the database has schema version {found}, this program knows {known}: \
         use the program that wrote it, or a newer one"
    )]
    TooNew { found: u32, known: u32 },
    /// Any other error, with the operation that failed.
    #[error("{operation}: {cause}")]
    Failed { operation: &'static str, cause: String },
}

/// Result of a store operation.
pub type Result<T> = std::result::Result<T, StoreError>;
