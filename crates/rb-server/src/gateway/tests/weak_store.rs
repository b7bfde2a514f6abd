//! A store that fails when it is told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use rb_store::{
    Change, ConversationKey, ConversationRow, ExperimentRun, FindingRow, Health, KeyRow,
    OperatorMessageRow, PatternChange, PatternFilter, PatternRow, ProfileRow, Result, RunFilter,
    RunKey, RunRow, Scope, StepRow, Store, StoreError, UsageDay,
};
use tokio::sync::mpsc;

/// How it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weakness {
    None,
    /// Every call fails at once.
    Away,
    /// Every call takes longer than anybody waits.
    Locked,
    /// What is stored can be read, and nothing can be written.
    Full,
    /// Every call panics, but for writing.
    Panics,
}

const ALL: [Weakness; 5] =
    [Weakness::None, Weakness::Away, Weakness::Locked, Weakness::Full, Weakness::Panics];

pub(super) struct WeakStore {
    inner: Arc<dyn Store>,
    weakness: AtomicU8,
    is_shared: AtomicBool,
}

impl WeakStore {
    pub(super) fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner, weakness: AtomicU8::new(0), is_shared: AtomicBool::new(false) })
    }

    /// From now on other nodes use it too.
    pub(super) fn share(&self) {
        self.is_shared.store(true, Ordering::SeqCst);
    }

    pub(super) fn set(&self, weakness: Weakness) {
        self.weakness.store(weakness as u8, Ordering::SeqCst);
    }

    async fn suffer(&self, is_write: bool) -> Result<()> {
        match ALL[usize::from(self.weakness.load(Ordering::SeqCst))] {
            Weakness::Away => Err(StoreError::Unavailable("it is away".to_owned())),
            Weakness::Locked => {
                tokio::time::sleep(Duration::from_secs(3)).await;
                Err(StoreError::Unavailable("database is locked".to_owned()))
            }
            Weakness::Full if is_write => {
                Err(StoreError::Unavailable("database or disk is full".to_owned()))
            }
            Weakness::Panics if !is_write => panic!("injected"),
            Weakness::None | Weakness::Full | Weakness::Panics => Ok(()),
        }
    }
}

/// Each method suffers first, and then does what the real store does.
macro_rules! weakly {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $gives:ty;)*) => {
        #[async_trait::async_trait]
        impl Store for WeakStore {
            async fn apply(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
                self.suffer(true).await?;
                self.inner.apply(changes).await
            }

            $(async fn $name(&self, $($argument: $kind),*) -> Result<$gives> {
                self.suffer(false).await?;
                self.inner.$name($($argument),*).await
            })*

            fn is_shared(&self) -> bool {
                self.is_shared.load(Ordering::SeqCst)
            }

            fn subscribe(&self, node: &str) -> Option<mpsc::Receiver<String>> {
                self.inner.subscribe(node)
            }
        }
    };
}

weakly! {
    run(scope: &Scope, run_id: &str) -> Option<RunRow>;
    runs(scope: &Scope, filter: &RunFilter) -> Vec<RunRow>;
    steps(run: &RunKey, from_index: u32, count_max: u32) -> Vec<StepRow>;
    health(scope: &Scope, since_ms: i64) -> Health;
    experiments(scope: &Scope) -> Vec<(String, u64)>;
    experiment(scope: &Scope, id: &str) -> Vec<ExperimentRun>;
    patterns(scope: &Scope, filter: &PatternFilter) -> Vec<PatternRow>;
    pattern(org: &str, tier: &str, pattern_id: &str) -> Option<PatternRow>;
    pattern_changes(after_version: u64, count_max: u32) -> Vec<(u64, PatternChange)>;
    findings(org: &str, codebase: &str) -> Vec<FindingRow>;
    codebases(scope: &Scope) -> Vec<String>;
    profiles(scope: &Scope) -> Vec<ProfileRow>;
    keys() -> Vec<KeyRow>;
    key(hash: &str) -> Option<KeyRow>;
    usage(org: &str, since_day: i64) -> Vec<UsageDay>;
    setting(name: &str) -> Option<String>;
    settings() -> Vec<(String, String)>;
    orgs() -> Vec<String>;
    conversations(after: Option<&RunKey>, count_max: u32) -> Vec<ConversationRow>;
    publish(node: &str, at_ms: i64, messages: Vec<String>) -> ();
    conversation(run: &RunKey) -> Option<String>;
    find_conversation(org: &str, by: ConversationKey, any_of: &[String]) -> Option<String>;
    operator_messages(run: &RunKey) -> Vec<OperatorMessageRow>;
    runs_with_messages(since_ms: i64) -> Vec<RunKey>;
    ping() -> ();
}
