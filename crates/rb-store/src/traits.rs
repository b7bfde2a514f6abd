//! Traits of the store, one per area.
//!
//! The backends implement the reads once for both (`sql`). Wrappers implement them with
//! [`for_each_store_read`](crate::for_each_store_read).

use tokio::sync::mpsc;

use crate::{
    BacklogState, Change, ConversationKey, ConversationRow, ExperimentRun, FindingRow, Health,
    KeyRow, OperatorMessageRow, PatternChange, PatternFilter, PatternRow, ProfileRow, Result,
    RunFilter, RunKey, RunRow, Scope, StepRow, UsageDay,
};

/// Persistent storage that several tasks, and with PostgreSQL several nodes, use at the same time.
#[async_trait::async_trait]
pub trait Store:
    Runs + RunLists + Library + Keys + Conversations + OperatorMessages + NodeEvents
{
    /// Applies changes atomically and in order, and returns when they are durable. Returns the number of affected
    /// rows for each change. Concurrent calls may share a commit.
    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<u64>>;

    /// Checks that the database answers.
    async fn ping(&self) -> Result<()>;

    /// Returns true if other nodes may change the same runs.
    fn is_shared(&self) -> bool {
        false
    }

    /// Returns the state of the on-disk write queue; `None` without a [`Backlog`](crate::Backlog).
    fn backlog(&self) -> Option<BacklogState> {
        None
    }
}

/// Single runs and their steps.
#[async_trait::async_trait]
pub trait Runs: Send + Sync + 'static {
    /// Returns a run. If several organisations in scope use the same id, returns the newest run.
    async fn run(&self, scope: &Scope, run_id: &str) -> Result<Option<RunRow>>;
    /// Lists the steps of a run in order of index, starting with `from_index`.
    async fn steps(&self, run: &RunKey, from_index: u32, count_max: u32) -> Result<Vec<StepRow>>;
}

/// Lists of runs and aggregates over them.
#[async_trait::async_trait]
pub trait RunLists: Send + Sync + 'static {
    /// Lists runs, newest first.
    async fn runs(&self, scope: &Scope, filter: &RunFilter) -> Result<Vec<RunRow>>;
    /// Aggregates the runs that started at `since_ms` or later.
    async fn health(&self, scope: &Scope, since_ms: i64) -> Result<Health>;
    /// Lists the experiments in scope by name, with their number of runs.
    async fn experiments(&self, scope: &Scope) -> Result<Vec<(String, u64)>>;
    /// Lists the runs of an experiment, oldest first.
    async fn experiment(&self, scope: &Scope, id: &str) -> Result<Vec<ExperimentRun>>;
}

/// Patterns, findings and profiles.
#[async_trait::async_trait]
pub trait Library: Send + Sync + 'static {
    /// Lists the patterns that a scope may use (its own E1, all E2 and E3) by tier and id.
    async fn patterns(&self, scope: &Scope, filter: &PatternFilter) -> Result<Vec<PatternRow>>;
    /// Returns a pattern; `org` is empty for E2 and E3.
    async fn pattern(&self, org: &str, tier: &str, pattern_id: &str) -> Result<Option<PatternRow>>;
    /// Lists the library changes after a version in order, each with its version. Changes become visible in order of
    /// version, and a pattern that changed several times is listed once, in its current form.
    async fn pattern_changes(
        &self,
        after_version: u64,
        count_max: u32,
    ) -> Result<Vec<(u64, PatternChange)>>;
    /// Lists the findings of a codebase, oldest first.
    async fn findings(&self, org: &str, codebase: &str) -> Result<Vec<FindingRow>>;
    /// Lists the codebases in scope that have findings or runs, sorted. Findings have no project, so a scope with a
    /// project includes only the codebases of its runs.
    async fn codebases(&self, scope: &Scope) -> Result<Vec<String>>;
    /// Lists the profiles of the organisation, and those of the scope's project or, without one, of all its projects.
    async fn profiles(&self, scope: &Scope) -> Result<Vec<ProfileRow>>;
}

/// API keys, settings, and organisations with their usage.
#[async_trait::async_trait]
pub trait Keys: Send + Sync + 'static {
    /// Lists all keys, including revoked ones, oldest first.
    async fn keys(&self) -> Result<Vec<KeyRow>>;
    /// Returns the key with a hash, revoked or not.
    async fn key(&self, hash: &str) -> Result<Option<KeyRow>>;
    /// Lists the daily usage of an organisation from `since_day` (days since 1970), oldest first, without experiment
    /// runs.
    async fn usage(&self, org: &str, since_day: i64) -> Result<Vec<UsageDay>>;
    /// Returns the value of a setting.
    async fn setting(&self, name: &str) -> Result<Option<String>>;
    /// Lists all settings by name.
    async fn settings(&self) -> Result<Vec<(String, String)>>;
    /// Lists the organisations that have runs, usage, findings or keys, sorted.
    async fn orgs(&self) -> Result<Vec<String>>;
}

/// Gateway state of conversations.
#[async_trait::async_trait]
pub trait Conversations: Send + Sync + 'static {
    /// Lists all conversations after a given one, by organisation and run.
    async fn conversations(
        &self,
        after: Option<&RunKey>,
        count_max: u32,
    ) -> Result<Vec<ConversationRow>>;
    /// Returns the gateway's state of a run's conversation.
    async fn conversation(&self, run: &RunKey) -> Result<Option<String>>;
    /// Returns the run of the newest conversation that matches the first matching key of `any_of`.
    async fn find_conversation(
        &self,
        org: &str,
        by: ConversationKey,
        any_of: &[String],
    ) -> Result<Option<String>>;
}

/// Undelivered operator messages.
#[async_trait::async_trait]
pub trait OperatorMessages: Send + Sync + 'static {
    /// Lists the undelivered operator messages of a run, oldest first.
    async fn operator_messages(&self, run: &RunKey) -> Result<Vec<OperatorMessageRow>>;
    /// Lists the runs with operator messages from `since_ms` or later, by organisation and id.
    async fn runs_with_messages(&self, since_ms: i64) -> Result<Vec<RunKey>>;
}

/// Events between the nodes that share a store.
#[async_trait::async_trait]
pub trait NodeEvents: Send + Sync + 'static {
    /// Publishes events to the other nodes that share this store. Delivery is best effort, and events expire a minute
    /// after `at_ms`. Does nothing on a store that only one node can use.
    async fn publish(&self, node: &str, at_ms: i64, messages: Vec<String>) -> Result<()>;
    /// Subscribes to the events that other nodes publish from now on, until the receiver is dropped. Returns `None` on a
    /// store that only one node can use.
    fn subscribe(&self, node: &str) -> Option<mpsc::Receiver<String>>;
}
