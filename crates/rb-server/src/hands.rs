//! What people want to say to running agents: it waits in the store until the next model call takes it along.
//!
//! The call may come to another node, or after a restart. So that no call has to ask the store in vain, each node knows
//! which runs are waited for: of its own words at once, of those said elsewhere within a second. Whoever takes words
//! away and cannot deliver them puts them back; what nobody took for an hour is dropped, since the situation it was
//! about has passed.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use rb_store::{Change, OperatorMessageRow, RunKey, Store, StoreError};

use crate::clock::now_ms;
use crate::error::{ApiError, ApiResult, unprocessable};

/// Words may be this long; what a model reads of one piece of guidance is not much more.
pub(crate) const CHARS_MAX: usize = 1_500;
/// So many words may wait for one run.
const WAITING_MAX: usize = 3;
/// So many words a minute may be said to one run.
const A_MINUTE: NonZeroU32 = NonZeroU32::new(6).unwrap();
/// Words wait at most this long.
const WAIT_MAX: Duration = Duration::from_hours(1);
/// When more runs than this were spoken to, the old ones are forgotten.
const RUNS_MAX: usize = 10_000;
/// Words said elsewhere are known of after this long.
const LOOKED_EVERY: Duration = Duration::from_secs(1);
/// An agent's call waits this long for words, and no longer.
const STORE_WITHIN: Duration = Duration::from_secs(1);

/// The way to the words that wait.
pub(crate) struct Hands {
    store: Arc<dyn Store>,
    waited_for: Mutex<HashSet<RunKey>>,
    rates: DefaultKeyedRateLimiter<RunKey>,
}

/// Words that were taken away, to be said now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Taken(Vec<OperatorMessageRow>);

impl Taken {
    pub(crate) fn texts(&self) -> Vec<String> {
        self.0.iter().map(|row| row.text.clone()).collect()
    }
}

impl Hands {
    /// Knows what waits in the store, as far as that can be read.
    pub(crate) async fn new(store: Arc<dyn Store>) -> Self {
        let rates = RateLimiter::keyed(Quota::per_minute(A_MINUTE));
        let hands = Self { store, waited_for: Mutex::default(), rates };
        hands.look().await;
        hands
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<RunKey>> {
        self.waited_for.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns what was said elsewhere, for as long as the server runs.
    pub(crate) async fn keep_looking(&self) {
        loop {
            tokio::time::sleep(LOOKED_EVERY).await;
            self.look().await;
        }
    }

    pub(crate) async fn look(&self) {
        match self.store.runs_with_messages(oldest_ms()).await {
            // What is known stays: it may have been said since the store was asked.
            Ok(runs) => {
                let mut waited_for = self.lock();
                if waited_for.len() > RUNS_MAX {
                    waited_for.clear();
                }
                waited_for.extend(runs);
            }
            Err(error) => tracing::debug!(%error, "nobody knows what waits to be said"),
        }
    }

    /// Lets words wait for a run, and says how many wait now.
    pub(crate) async fn add(&self, run: &RunKey, words: &str) -> ApiResult<usize> {
        let words = words.trim();
        if words.is_empty() {
            return Err(unprocessable(
                &["body", "text"],
                "there is nothing to say; write some words",
            ));
        }
        if words.chars().count() > CHARS_MAX {
            let said = format!("longer than {CHARS_MAX} characters; shorten it");
            return Err(unprocessable(&["body", "text"], said));
        }
        let waiting = self.fresh(run).await?.len();
        if waiting >= WAITING_MAX {
            let said = "three messages wait for this run already; the next model call takes them";
            return Err(ApiError::Conflict(said.to_owned()));
        }
        if self.rates.len() > RUNS_MAX {
            self.rates.retain_recent();
        }
        if self.rates.check_key(run).is_err() {
            return Err(ApiError::TooSoon("this run was spoken to often; wait a moment"));
        }
        let row = OperatorMessageRow {
            run: run.clone(),
            message_id: uuid::Uuid::now_v7().simple().to_string(),
            text: words.to_owned(),
            at_ms: now_ms(),
        };
        let old = Change::ExpireOperatorMessages { before_ms: oldest_ms() };
        self.store.apply(vec![old, Change::PutOperatorMessage(Box::new(row))]).await?;
        self.lock().insert(run.clone());
        Ok(waiting + 1)
    }

    /// Takes what waits, to say it now. Where the store does not answer in time, it goes on waiting.
    pub(crate) async fn take(self: &Arc<Self>, run: &RunKey) -> Taken {
        if !self.lock().contains(run) {
            return Taken::default();
        }
        let (hands, asked) = (Arc::clone(self), run.clone());
        let mut taking = tokio::spawn(async move { hands.take_now(&asked).await });
        if let Ok(taken) = tokio::time::timeout(STORE_WITHIN, &mut taking).await {
            return taken.unwrap_or_default();
        }
        let hands = Arc::clone(self);
        tokio::spawn(async move {
            if let Ok(late) = taking.await {
                hands.put_back(late).await;
            }
        });
        Taken::default()
    }

    async fn take_now(&self, run: &RunKey) -> Taken {
        self.lock().remove(run);
        let taken = self.try_take(run).await.unwrap_or_else(|error| {
            tracing::warn!(%error, run = run.run_id, "what waits for a run could not be taken");
            self.lock().insert(run.clone());
            Vec::new()
        });
        Taken(taken)
    }

    /// What was there and nobody else took in the same moment.
    async fn try_take(&self, run: &RunKey) -> Result<Vec<OperatorMessageRow>, StoreError> {
        let rows = self.fresh(run).await?;
        if rows.is_empty() {
            return Ok(rows);
        }
        let take = |row: &OperatorMessageRow| Change::TakeOperatorMessage {
            run: run.clone(),
            message_id: row.message_id.clone(),
        };
        let touched = self.store.apply(rows.iter().map(take).collect()).await?;
        let ours = rows.into_iter().zip(touched).filter(|(_, touched)| *touched > 0);
        Ok(ours.map(|(row, _)| row).collect())
    }

    /// What was taken could not be said.
    pub(crate) async fn put_back(self: &Arc<Self>, Taken(rows): Taken) {
        let Some(run) = rows.first().map(|row| row.run.clone()) else { return };
        let hands = Arc::clone(self);
        let putting = tokio::spawn(async move {
            let rows =
                rows.into_iter().map(|row| Change::PutOperatorMessage(Box::new(row))).collect();
            match hands.store.apply(rows).await {
                Ok(_) => drop(hands.lock().insert(run)),
                Err(error) => {
                    tracing::warn!(%error, run = run.run_id, "what a person said is lost");
                }
            }
        });
        // It is put back even if nobody waits for it any more.
        let _ = tokio::time::timeout(STORE_WITHIN, putting).await;
    }

    /// What waits.
    pub(crate) async fn waiting(&self, run: &RunKey) -> Vec<String> {
        let rows = self.fresh(run).await.unwrap_or_default();
        rows.into_iter().map(|row| row.text).collect()
    }

    async fn fresh(&self, run: &RunKey) -> Result<Vec<OperatorMessageRow>, StoreError> {
        let oldest_ms = oldest_ms();
        let rows = self.store.operator_messages(run).await?;
        Ok(rows.into_iter().filter(|row| row.at_ms >= oldest_ms).collect())
    }
}

/// Words that wait since before then wait no more.
fn oldest_ms() -> i64 {
    now_ms().saturating_sub(i64::try_from(WAIT_MAX.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> RunKey {
        RunKey { org: "o".to_owned(), run_id: id.to_owned() }
    }

    async fn node(store: &Arc<dyn Store>) -> Arc<Hands> {
        Arc::new(Hands::new(Arc::clone(store)).await)
    }

    async fn store() -> Arc<dyn Store> {
        rb_store::open("sqlite::memory:").await.unwrap()
    }

    #[tokio::test]
    async fn words_wait_for_their_run_and_are_said_once() {
        let hands = node(&store().await).await;
        assert_eq!(hands.add(&key("a"), "  Look there. ").await.unwrap(), 1);
        assert_eq!(hands.add(&key("a"), "And there.").await.unwrap(), 2);
        assert!(hands.take(&key("b")).await.texts().is_empty());
        let taken = hands.take(&key("a")).await;
        assert_eq!(taken.texts(), ["Look there.", "And there."]);
        assert!(hands.take(&key("a")).await.texts().is_empty());
        hands.add(&key("a"), "Third.").await.unwrap();
        hands.put_back(taken).await;
        assert_eq!(hands.waiting(&key("a")).await, ["Look there.", "And there.", "Third."]);
    }

    #[tokio::test]
    async fn words_outlive_a_restart_and_reach_one_node() {
        let store = store().await;
        let (here, there) = (node(&store).await, node(&store).await);
        here.add(&key("a"), "Look there.").await.unwrap();
        let restarted = node(&store).await;
        there.look().await;
        let mut said = Vec::new();
        for node in [&restarted, &there, &here] {
            said.extend(node.take(&key("a")).await.texts());
        }
        assert_eq!(said, ["Look there."]);
    }

    #[tokio::test]
    async fn what_waited_too_long_is_not_said() {
        let store = store().await;
        let hands = node(&store).await;
        hands.add(&key("a"), "Now.").await.unwrap();
        let old = OperatorMessageRow {
            run: key("a"),
            message_id: "old".to_owned(),
            ..OperatorMessageRow::default()
        };
        store.apply(vec![Change::PutOperatorMessage(Box::new(old))]).await.unwrap();
        assert_eq!(hands.waiting(&key("a")).await, ["Now."]);
        assert_eq!(hands.take(&key("a")).await.texts(), ["Now."]);
    }

    #[tokio::test]
    async fn what_is_empty_too_long_or_too_much_is_refused() {
        let hands = node(&store().await).await;
        let run = key("r");
        for wrong in [" \n", &"x".repeat(CHARS_MAX + 1)] {
            assert!(matches!(hands.add(&run, wrong).await, Err(ApiError::Unprocessable(_))));
        }
        for count in 1..=WAITING_MAX {
            assert_eq!(hands.add(&run, "words").await.unwrap(), count);
        }
        assert!(matches!(hands.add(&run, "words").await, Err(ApiError::Conflict(_))));
        for _ in WAITING_MAX..6 {
            hands.take(&run).await;
            hands.add(&run, "words").await.unwrap();
        }
        hands.take(&run).await;
        assert!(matches!(hands.add(&run, "words").await, Err(ApiError::TooSoon(_))));
    }
}
