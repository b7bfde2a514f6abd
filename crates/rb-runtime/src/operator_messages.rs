//! Operator messages: queued in the store for a run until its next model call claims them.
//!
//! The call may arrive at another node or after a restart. Each node caches which runs have messages, so that calls of
//! other runs do not query the store; messages of other nodes are known within `REFRESH_INTERVAL`. Messages that were
//! claimed but not delivered are put back. Messages expire after an hour.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use parking_lot::Mutex;
use rb_store::{Change, OperatorMessageRow, RunKey, Scope, Store, StoreError};

use crate::clock::now_ms;

/// Maximum characters of a message, about the length of other guidance.
pub const MAX_MESSAGE_CHARS: usize = 1_500;
/// Maximum pending messages of a run.
const MAX_PENDING: usize = 3;
/// Messages per minute and run.
const RATE_PER_MINUTE: NonZeroU32 = NonZeroU32::new(6).unwrap();
const MESSAGE_TTL: Duration = Duration::from_hours(1);
/// Runs in memory; beyond this, idle ones are dropped.
const MAX_RUNS: usize = 10_000;
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time a model call waits for its messages.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// Queue of operator messages.
pub struct OperatorMessages {
    store: Arc<dyn Store>,
    /// Runs that may have pending messages.
    pending: Mutex<HashSet<RunKey>>,
    rates: DefaultKeyedRateLimiter<RunKey>,
}

/// Reason why a message was rejected.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    #[error("there is no such run")]
    UnknownRun,
    #[error("this run is over; nobody would read it")]
    RunFinished,
    #[error("there is nothing to say; write some words")]
    Empty,
    #[error("longer than {MAX_MESSAGE_CHARS} characters; shorten it")]
    TooLong,
    #[error("three messages wait for this run already; the next model call takes them")]
    QueueFull,
    #[error("this run was spoken to often; wait a moment")]
    RateLimited,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Messages removed from the queue for delivery.
#[derive(Debug, Clone, Default)]
pub struct Claimed(Vec<OperatorMessageRow>);

impl Claimed {
    pub fn texts(&self) -> Vec<String> {
        self.0.iter().map(|row| row.text.clone()).collect()
    }
}

impl OperatorMessages {
    /// Reads the runs with pending messages; an unavailable store is asked again later.
    pub async fn new(store: Arc<dyn Store>) -> Self {
        let rates = RateLimiter::keyed(Quota::per_minute(RATE_PER_MINUTE));
        let messages = Self { store, pending: Mutex::default(), rates };
        messages.refresh().await;
        messages
    }

    /// Refreshes periodically until the task is aborted.
    pub async fn run_refresh(&self) {
        loop {
            tokio::time::sleep(REFRESH_INTERVAL).await;
            self.refresh().await;
        }
    }

    /// Reads which runs have messages from other nodes.
    pub async fn refresh(&self) {
        match self.store.runs_with_messages(oldest_ms()).await {
            // Known runs stay: a message may have been added since the query.
            Ok(runs) => {
                let mut pending = self.pending.lock();
                if pending.len() > MAX_RUNS {
                    pending.clear();
                }
                pending.extend(runs);
            }
            Err(error) => tracing::debug!(%error, "pending operator messages not read"),
        }
    }

    /// Queues a message for an unfinished run in `scope` and returns the number of pending messages.
    pub async fn send(
        &self,
        scope: &Scope,
        run_id: &str,
        text: &str,
    ) -> Result<(RunKey, usize), MessageError> {
        let row = self.store.run(scope, run_id).await?.ok_or(MessageError::UnknownRun)?;
        if row.finished_ms.is_some() {
            return Err(MessageError::RunFinished);
        }
        let pending = self.add(&row.run, text).await?;
        tracing::info!(run = row.run.run_id, "operator message queued");
        Ok((row.run, pending))
    }

    /// Queues a message and returns the number of pending messages.
    pub async fn add(&self, run: &RunKey, text: &str) -> Result<usize, MessageError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(MessageError::Empty);
        }
        if text.chars().count() > MAX_MESSAGE_CHARS {
            return Err(MessageError::TooLong);
        }
        let pending = self.unexpired(run).await?.len();
        if pending >= MAX_PENDING {
            return Err(MessageError::QueueFull);
        }
        if self.rates.len() > MAX_RUNS {
            self.rates.retain_recent();
        }
        if self.rates.check_key(run).is_err() {
            return Err(MessageError::RateLimited);
        }
        let row = OperatorMessageRow {
            run: run.clone(),
            message_id: uuid::Uuid::now_v7().simple().to_string(),
            text: text.to_owned(),
            at_ms: now_ms(),
        };
        let expire = Change::ExpireOperatorMessages { before_ms: oldest_ms() };
        self.store.apply(vec![expire, Change::PutOperatorMessage(Box::new(row))]).await?;
        self.pending.lock().insert(run.clone());
        Ok(pending + 1)
    }

    /// Claims the pending messages of a run. After a timeout they stay queued.
    pub async fn claim(self: &Arc<Self>, run: &RunKey) -> Claimed {
        if !self.pending.lock().contains(run) {
            return Claimed::default();
        }
        let (messages, key) = (Arc::clone(self), run.clone());
        let mut claiming = tokio::spawn(async move { messages.claim_now(&key).await });
        if let Ok(claimed) = tokio::time::timeout(STORE_TIMEOUT, &mut claiming).await {
            return claimed.unwrap_or_default();
        }
        let messages = Arc::clone(self);
        tokio::spawn(async move {
            if let Ok(late) = claiming.await {
                messages.put_back(late).await;
            }
        });
        Claimed::default()
    }

    async fn claim_now(&self, run: &RunKey) -> Claimed {
        self.pending.lock().remove(run);
        let claimed = self.try_claim(run).await.unwrap_or_else(|error| {
            tracing::warn!(%error, run = run.run_id, "operator messages not claimed");
            self.pending.lock().insert(run.clone());
            Vec::new()
        });
        Claimed(claimed)
    }

    /// Removes the messages and returns those that no other node removed first.
    async fn try_claim(&self, run: &RunKey) -> Result<Vec<OperatorMessageRow>, StoreError> {
        let rows = self.unexpired(run).await?;
        if rows.is_empty() {
            return Ok(rows);
        }
        let take = |row: &OperatorMessageRow| Change::TakeOperatorMessage {
            run: run.clone(),
            message_id: row.message_id.clone(),
        };
        let touched = self.store.apply(rows.iter().map(take).collect()).await?;
        let claimed = rows.into_iter().zip(touched).filter(|(_, touched)| *touched > 0);
        Ok(claimed.map(|(row, _)| row).collect())
    }

    /// Returns undelivered messages to the queue.
    pub async fn put_back(self: &Arc<Self>, Claimed(rows): Claimed) {
        let Some(run) = rows.first().map(|row| row.run.clone()) else { return };
        let messages = Arc::clone(self);
        let putting = tokio::spawn(async move {
            let rows =
                rows.into_iter().map(|row| Change::PutOperatorMessage(Box::new(row))).collect();
            match messages.store.apply(rows).await {
                Ok(_) => drop(messages.pending.lock().insert(run)),
                Err(error) => {
                    tracing::warn!(%error, run = run.run_id, "operator message lost");
                }
            }
        });
        // The task continues after the timeout.
        let _ = tokio::time::timeout(STORE_TIMEOUT, putting).await;
    }

    /// Texts of the pending messages.
    pub async fn pending_texts(&self, run: &RunKey) -> Vec<String> {
        let rows = self.unexpired(run).await.unwrap_or_default();
        rows.into_iter().map(|row| row.text).collect()
    }

    async fn unexpired(&self, run: &RunKey) -> Result<Vec<OperatorMessageRow>, StoreError> {
        let oldest_ms = oldest_ms();
        let rows = self.store.operator_messages(run).await?;
        Ok(rows.into_iter().filter(|row| row.at_ms >= oldest_ms).collect())
    }
}

/// Creation time of the oldest message that has not expired.
fn oldest_ms() -> i64 {
    now_ms().saturating_sub(i64::try_from(MESSAGE_TTL.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> RunKey {
        RunKey { org: "o".to_owned(), run_id: id.to_owned() }
    }

    async fn node(store: &Arc<dyn Store>) -> Arc<OperatorMessages> {
        Arc::new(OperatorMessages::new(Arc::clone(store)).await)
    }

    async fn store() -> Arc<dyn Store> {
        rb_store::open("sqlite::memory:").await.unwrap()
    }

    #[tokio::test]
    async fn messages_are_claimed_once_by_their_run() {
        let messages = node(&store().await).await;
        assert_eq!(messages.add(&key("a"), "  Look there. ").await.unwrap(), 1);
        assert_eq!(messages.add(&key("a"), "And there.").await.unwrap(), 2);
        assert!(messages.claim(&key("b")).await.texts().is_empty());
        let claimed = messages.claim(&key("a")).await;
        assert_eq!(claimed.texts(), ["Look there.", "And there."]);
        assert!(messages.claim(&key("a")).await.texts().is_empty());
        messages.add(&key("a"), "Third.").await.unwrap();
        messages.put_back(claimed).await;
        assert_eq!(
            messages.pending_texts(&key("a")).await,
            ["Look there.", "And there.", "Third."]
        );
    }

    #[tokio::test]
    async fn messages_survive_a_restart_and_reach_one_node() {
        let store = store().await;
        let (here, there) = (node(&store).await, node(&store).await);
        here.add(&key("a"), "Look there.").await.unwrap();
        let restarted = node(&store).await;
        there.refresh().await;
        let mut texts = Vec::new();
        for node in [&restarted, &there, &here] {
            texts.extend(node.claim(&key("a")).await.texts());
        }
        assert_eq!(texts, ["Look there."]);
    }

    #[tokio::test]
    async fn expired_messages_are_not_claimed() {
        let store = store().await;
        let messages = node(&store).await;
        messages.add(&key("a"), "Now.").await.unwrap();
        let old = OperatorMessageRow {
            run: key("a"),
            message_id: "old".to_owned(),
            ..OperatorMessageRow::default()
        };
        store.apply(vec![Change::PutOperatorMessage(Box::new(old))]).await.unwrap();
        assert_eq!(messages.pending_texts(&key("a")).await, ["Now."]);
        assert_eq!(messages.claim(&key("a")).await.texts(), ["Now."]);
    }

    #[tokio::test]
    async fn empty_long_and_frequent_messages_are_rejected() {
        let messages = node(&store().await).await;
        let run = key("r");
        for wrong in [" \n", &"x".repeat(MAX_MESSAGE_CHARS + 1)] {
            assert!(matches!(
                messages.add(&run, wrong).await,
                Err(MessageError::Empty | MessageError::TooLong)
            ));
        }
        for count in 1..=MAX_PENDING {
            assert_eq!(messages.add(&run, "words").await.unwrap(), count);
        }
        assert!(matches!(messages.add(&run, "words").await, Err(MessageError::QueueFull)));
        for _ in MAX_PENDING..6 {
            messages.claim(&run).await;
            messages.add(&run, "words").await.unwrap();
        }
        messages.claim(&run).await;
        assert!(matches!(messages.add(&run, "words").await, Err(MessageError::RateLimited)));
    }
}
