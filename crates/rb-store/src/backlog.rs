//! A queue on disk before a database that may be away.
//!
//! What is told about runs is kept in a file of this node while the database cannot be reached, and brought over when
//! it is back; until then everything further goes the same way, so that nothing overtakes what was told before. Callers
//! are answered as if it were stored, because it is: in the file, as durable as the database. What cannot wait, such as
//! a new key, fails as it would without a queue.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{RwLock, mpsc};

use crate::copy::bring;
use crate::sqlite::Sqlite;
use crate::{
    Change, ConversationRow, ExperimentRun, FindingRow, Health, KeyRow, KnownBy, PatternChange,
    PatternFilter, PatternRow, ProfileRow, Result, RunFilter, RunKey, RunRow, Scope, StepRow,
    Store, StoreError, UsageDay, WaitingRow,
};

/// While something waits, the database is tried this often.
const TRIED_EVERY: Duration = Duration::from_millis(500);
/// What was put in so few calls is brought over while further callers wait.
const LITTLE: u64 = 50;
/// So often it is tried to leave only so few.
const PASSES_MAX: u32 = 10;

/// How much waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BacklogState {
    /// Whether anything waits at all.
    pub is_any: bool,
    /// The room it takes on disk.
    pub bytes: u64,
}

/// A store with a queue before it.
pub struct Backlog {
    store: Arc<dyn Store>,
    path: PathBuf,
    bytes_max: u64,
    /// What waits. Held for reading while something is put into it.
    file: RwLock<Option<Arc<dyn Store>>>,
    is_waiting: AtomicBool,
    /// How often something was put into the file.
    puts: AtomicU64,
}

impl Backlog {
    /// Puts a queue before a store: a file at `path`, which may grow to `bytes_max`. What waits there since an earlier
    /// time is brought over first.
    pub async fn before(
        store: Arc<dyn Store>,
        path: &Path,
        bytes_max: u64,
    ) -> Result<Arc<dyn Store>> {
        let waiting: Option<Arc<dyn Store>> =
            if path.exists() { Some(Arc::new(Sqlite::open(path).await?)) } else { None };
        let this = Arc::new(Self {
            store,
            path: path.to_owned(),
            bytes_max,
            is_waiting: AtomicBool::new(false),
            // Nobody knows how much there is.
            puts: AtomicU64::new(if waiting.is_some() { LITTLE + 1 } else { 0 }),
            file: RwLock::new(waiting),
        });
        this.is_waiting.store(this.bytes() > 0, Ordering::SeqCst);
        tokio::spawn(bring_over(Arc::downgrade(&this)));
        Ok(this)
    }

    fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::SeqCst)
    }

    /// Keeps changes in the file. What they expect of a run cannot be known there.
    async fn keep(&self, changes: &[Change]) -> Result<Vec<u64>> {
        let is_guard = |change: &&Change| matches!(change, Change::Expect { .. });
        let kept: Vec<Change> = changes.iter().filter(|one| !is_guard(one)).cloned().collect();
        if self.bytes() > self.bytes_max {
            let full = "the database is away, and what waits for it has used up its room on disk";
            return Err(StoreError::Unavailable(full.to_owned()));
        }
        loop {
            let file = self.file.read().await;
            if let Some(file) = &*file {
                file.apply(kept).await?;
                self.puts.fetch_add(1, Ordering::SeqCst);
                return Ok(vec![1; changes.len()]);
            }
            drop(file);
            let mut file = self.file.write().await;
            if file.is_none() {
                *file = Some(Arc::new(Sqlite::open(&self.path).await?));
                self.is_waiting.store(true, Ordering::SeqCst);
                tracing::warn!("the database is away: what is told about runs waits on disk");
            }
        }
    }

    /// Brings over what waits; then there is no file any more. More comes in meanwhile, into a new file each time, until
    /// there is so little of it that callers may wait for the last.
    async fn empty(&self) -> Result<()> {
        let mut steps = 0;
        for pass in 1.. {
            steps += self.bring_older().await?;
            let mut file = self.file.write().await;
            if pass < PASSES_MAX && self.puts.swap(0, Ordering::SeqCst) > LITTLE {
                self.set_aside(&mut file)?;
                continue;
            }
            if file.is_some() {
                self.set_aside(&mut file)?;
                steps += self.bring_older().await?;
            }
            self.is_waiting.store(false, Ordering::SeqCst);
            tracing::info!(steps, "the database is back and has what was told meanwhile");
            break;
        }
        Ok(())
    }

    /// Closes the file and gives it the name of the one that is brought over next.
    fn set_aside(&self, file: &mut Option<Arc<dyn Store>>) -> Result<()> {
        *file = None;
        for (name, older) in files(&self.path).into_iter().zip(files(&self.older())) {
            match std::fs::rename(&name, &older) {
                // Beside a file that was closed well there is nothing.
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    let cause = format!("`{}`: {error}", name.display());
                    return Err(StoreError::Failed { doing: "setting aside what waits", cause });
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    async fn bring_older(&self) -> Result<u64> {
        let older = self.older();
        if !older.exists() {
            return Ok(0);
        }
        let file: Arc<dyn Store> = Arc::new(Sqlite::open(&older).await?);
        let steps = bring(&file, &self.store).await?;
        drop(file);
        for file in files(&older) {
            // What stays is brought over once more, which changes nothing.
            let _ = std::fs::remove_file(file);
        }
        Ok(steps)
    }

    fn older(&self) -> PathBuf {
        self.path.with_extension("older.db")
    }

    fn bytes(&self) -> u64 {
        let length = |file: &PathBuf| std::fs::metadata(file).map_or(0, |about| about.len());
        files(&self.path).iter().chain(&files(&self.older())).map(length).sum()
    }
}

/// A database and what SQLite keeps beside it.
fn files(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        name.into()
    })
}

/// Tries the database for as long as the store is there.
async fn bring_over(backlog: Weak<Backlog>) {
    loop {
        let Some(this) = backlog.upgrade() else { return };
        if this.is_waiting()
            && this.store.ping().await.is_ok()
            && let Err(error) = this.empty().await
        {
            tracing::debug!(%error, "what waits on disk could not be brought over yet");
        }
        drop(this);
        tokio::time::sleep(TRIED_EVERY).await;
    }
}

/// Whether a change is about what happened in a run, which may be written later.
fn may_wait(change: &Change) -> bool {
    matches!(
        change,
        Change::Expect { .. }
            | Change::StartRun(_)
            | Change::PutStep(_)
            | Change::AmendStep(_)
            | Change::FinishRun { .. }
            | Change::PutConversation(_)
            | Change::PutSetting { .. }
    )
}

/// Methods that ask the database alone.
macro_rules! as_the_store {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $gives:ty;)*) => {
        #[async_trait::async_trait]
        impl Store for Backlog {
            async fn apply(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
                if !changes.iter().all(may_wait) {
                    return self.store.apply(changes).await;
                }
                if !self.is_waiting() {
                    match self.store.apply(changes.clone()).await {
                        Err(StoreError::Unavailable(_)) => {}
                        done => return done,
                    }
                }
                self.keep(&changes).await
            }

            /// A run that is told of while the database is away is known as far as this node was told.
            async fn run(&self, scope: &Scope, run_id: &str) -> Result<Option<RunRow>> {
                let found = self.store.run(scope, run_id).await;
                match (&found, &*self.file.read().await) {
                    (Err(StoreError::Unavailable(_)), Some(file)) => file.run(scope, run_id).await,
                    _ => found,
                }
            }

            async fn steps(&self, run: &RunKey, from: u32, count_max: u32) -> Result<Vec<StepRow>> {
                let found = self.store.steps(run, from, count_max).await;
                match (&found, &*self.file.read().await) {
                    (Err(StoreError::Unavailable(_)), Some(file)) => {
                        file.steps(run, from, count_max).await
                    }
                    _ => found,
                }
            }

            $(async fn $name(&self, $($argument: $kind),*) -> Result<$gives> {
                self.store.$name($($argument),*).await
            })*

            fn hear(&self, node: &str) -> Option<mpsc::Receiver<String>> {
                self.store.hear(node)
            }

            fn is_shared(&self) -> bool {
                self.store.is_shared()
            }

            fn backlog(&self) -> Option<BacklogState> {
                Some(BacklogState { is_any: self.is_waiting(), bytes: self.bytes() })
            }
        }
    };
}

as_the_store! {
    runs(scope: &Scope, filter: &RunFilter) -> Vec<RunRow>;
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
    conversation(run: &RunKey) -> Option<String>;
    conversation_known_by(org: &str, by: KnownBy, any_of: &[String]) -> Option<String>;
    waiting(run: &RunKey) -> Vec<WaitingRow>;
    runs_waited_for(since_ms: i64) -> Vec<RunKey>;
    tell(node: &str, messages: Vec<String>) -> ();
    ping() -> ();
}
