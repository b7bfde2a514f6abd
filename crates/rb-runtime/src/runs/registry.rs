//! Registry of live runs: one lock per run, which holds the run's engine state.
//!
//! A run is a fold over its steps, so the state is only a cache. Requests for one run are serialised in order of arrival
//! by its `RunGuard`; other runs are not affected. State that was changed but not stored is dropped, so memory is
//! never ahead of the store.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use rb_store::RunKey;
use tokio::sync::OwnedMutexGuard;

use super::live_run::LiveRun;

/// Divisor of the runs evicted at once, so that evictions are rare.
const EVICTION_DIVISOR: usize = 16;
/// Interval between two scans for idle runs.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// Exclusive access to a run, with its state if it is in memory.
pub type RunGuard = OwnedMutexGuard<Option<LiveRun>>;

/// Run locks and states in memory.
pub struct LiveRuns {
    slots: Mutex<Slots>,
    runs_max: usize,
    idle: Duration,
    count: Gauge,
}

struct Slots {
    by_run: HashMap<RunKey, Slot>,
    swept: Instant,
}

struct Slot {
    lock: Arc<tokio::sync::Mutex<Option<LiveRun>>>,
    used: Instant,
}

impl Slot {
    /// Returns `true` if no guard exists or is awaited. Guards are requested under the mutex of the slots only.
    fn is_free(&self) -> bool {
        Arc::strong_count(&self.lock) == 1
    }
}

impl LiveRuns {
    /// Holds at most `runs_max` runs, each for at most `idle` after its last use, and reports the number to `count`.
    pub fn new(runs_max: usize, idle: Duration, count: Gauge) -> Self {
        let slots = Slots { by_run: HashMap::new(), swept: Instant::now() };
        Self { slots: Mutex::new(slots), runs_max, idle, count }
    }

    /// Waits for exclusive access to a run; dropping the guard releases it.
    pub async fn lock(&self, run: &RunKey) -> RunGuard {
        let lock = self.slot(run, Instant::now());
        lock.lock_owned().await
    }

    fn slot(&self, run: &RunKey, now: Instant) -> Arc<tokio::sync::Mutex<Option<LiveRun>>> {
        let mut slots = self.slots.lock();
        if now.duration_since(slots.swept) >= SWEEP_INTERVAL {
            slots.swept = now;
            slots
                .by_run
                .retain(|_, slot| !slot.is_free() || now.duration_since(slot.used) < self.idle);
            self.count(&slots);
        }
        if let Some(slot) = slots.by_run.get_mut(run) {
            slot.used = now;
            return Arc::clone(&slot.lock);
        }
        if slots.by_run.len() >= self.runs_max {
            slots.evict(self.runs_max);
        }
        let lock = Arc::default();
        slots.by_run.insert(run.clone(), Slot { lock: Arc::clone(&lock), used: now });
        self.count(&slots);
        lock
    }

    fn count(&self, slots: &Slots) {
        self.count.set(i64::try_from(slots.by_run.len()).unwrap_or(i64::MAX));
    }
}

impl Slots {
    /// Evicts the least recently used runs that are not locked.
    fn evict(&mut self, runs_max: usize) {
        let mut free: Vec<(Instant, RunKey)> = self
            .by_run
            .iter()
            .filter(|(_, slot)| slot.is_free())
            .map(|(run, slot)| (slot.used, run.clone()))
            .collect();
        free.sort();
        for (_, run) in free.into_iter().take(runs_max.div_ceil(EVICTION_DIVISOR)) {
            self.by_run.remove(&run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(run_id: &str) -> RunKey {
        RunKey { org: "o".to_owned(), run_id: run_id.to_owned() }
    }

    fn runs_in(runs: &LiveRuns) -> Vec<String> {
        let slots = runs.slots.lock();
        let mut ids: Vec<String> = slots.by_run.keys().map(|run| run.run_id.clone()).collect();
        ids.sort();
        ids
    }

    #[tokio::test]
    async fn the_least_recently_used_unlocked_runs_are_evicted() {
        let runs = LiveRuns::new(3, Duration::from_mins(1), Gauge::default());
        let held = runs.lock(&key("a")).await;
        for run in ["b", "c", "d", "e"] {
            drop(runs.lock(&key(run)).await);
        }
        assert_eq!(runs_in(&runs), ["a", "d", "e"], "`a` is the oldest, but in use");
        drop(held);
        drop(runs.lock(&key("f")).await);
        assert_eq!(runs_in(&runs), ["d", "e", "f"]);
    }

    #[tokio::test]
    async fn idle_runs_are_evicted() {
        let runs = LiveRuns::new(10, Duration::from_mins(1), Gauge::default());
        let now = Instant::now();
        runs.slot(&key("a"), now);
        runs.slot(&key("b"), now + Duration::from_secs(50));
        assert_eq!(runs_in(&runs), ["a", "b"]);
        runs.slot(&key("b"), now + Duration::from_secs(90));
        assert_eq!(runs_in(&runs), ["b"]);
    }

    #[tokio::test]
    async fn locks_are_granted_in_the_order_of_requests() {
        let runs = Arc::new(LiveRuns::new(10, Duration::from_mins(1), Gauge::default()));
        let first = runs.lock(&key("a")).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for position in 0..20 {
            let (runs, order) = (Arc::clone(&runs), Arc::clone(&order));
            waiting.push(tokio::spawn(async move {
                let _guard = runs.lock(&key("a")).await;
                order.lock().push(position);
            }));
            tokio::task::yield_now().await; // on one thread this lets the task request the lock
        }
        drop(first);
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*order.lock(), (0..20).collect::<Vec<_>>());
    }
}
