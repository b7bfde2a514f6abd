//! Runs that are going on: the engine's state of each, rebuilt from the stored steps when it is not there.
//!
//! A run is a fold over its steps, so this memory is only a matter of speed. Whoever works on a run has its *turn*:
//! requests for one run go one after the other, in the order they came, and other runs never wait. State that was
//! changed and then not stored is thrown away, so memory is never ahead of the store.

/// One run's state.
mod state;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::metrics::gauge::Gauge;
use rb_store::RunKey;
use tokio::sync::OwnedMutexGuard;

pub(crate) use state::{Live, is_same_step, step_of, stored};

/// When there are too many runs, one in so many goes at once: making room is rare then.
const ROOM_SHARE: usize = 16;
/// Runs at rest are looked for this often.
const SWEEP_EVERY: Duration = Duration::from_secs(30);

/// The right to work on a run, and its state if it is in memory.
pub(crate) type Turn = OwnedMutexGuard<Option<Live>>;

/// The runs in memory.
pub(crate) struct LiveRuns {
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
    turn: Arc<tokio::sync::Mutex<Option<Live>>>,
    used: Instant,
}

impl Slot {
    /// Nobody has the run's turn or waits for it. Turns are only handed out under the lock of the slots.
    fn is_free(&self) -> bool {
        Arc::strong_count(&self.turn) == 1
    }
}

impl LiveRuns {
    /// At most `runs_max` runs, each for at most `idle` after it was last heard of; `count` tells how many.
    pub(crate) fn new(runs_max: usize, idle: Duration, count: Gauge) -> Self {
        let slots = Slots { by_run: HashMap::new(), swept: Instant::now() };
        Self { slots: Mutex::new(slots), runs_max, idle, count }
    }

    /// Waits for the run's turn. Dropping it passes the turn on.
    pub(crate) async fn turn(&self, run: &RunKey) -> Turn {
        let turn = self.slot(run, Instant::now());
        turn.lock_owned().await
    }

    fn slot(&self, run: &RunKey, now: Instant) -> Arc<tokio::sync::Mutex<Option<Live>>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if now.duration_since(slots.swept) >= SWEEP_EVERY {
            slots.swept = now;
            slots
                .by_run
                .retain(|_, slot| !slot.is_free() || now.duration_since(slot.used) < self.idle);
            self.count(&slots);
        }
        if let Some(slot) = slots.by_run.get_mut(run) {
            slot.used = now;
            return Arc::clone(&slot.turn);
        }
        if slots.by_run.len() >= self.runs_max {
            slots.make_room(self.runs_max);
        }
        let turn = Arc::default();
        slots.by_run.insert(run.clone(), Slot { turn: Arc::clone(&turn), used: now });
        self.count(&slots);
        turn
    }

    fn count(&self, slots: &Slots) {
        self.count.set(i64::try_from(slots.by_run.len()).unwrap_or(i64::MAX));
    }
}

impl Slots {
    /// Those that were silent for longest go, except where somebody has the turn.
    fn make_room(&mut self, runs_max: usize) {
        let mut free: Vec<(Instant, RunKey)> = self
            .by_run
            .iter()
            .filter(|(_, slot)| slot.is_free())
            .map(|(run, slot)| (slot.used, run.clone()))
            .collect();
        free.sort();
        for (_, run) in free.into_iter().take(runs_max.div_ceil(ROOM_SHARE)) {
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
        let slots = runs.slots.lock().unwrap();
        let mut ids: Vec<String> = slots.by_run.keys().map(|run| run.run_id.clone()).collect();
        ids.sort();
        ids
    }

    #[tokio::test]
    async fn the_runs_silent_for_longest_go_first_and_none_in_use() {
        let runs = LiveRuns::new(3, Duration::from_mins(1), Gauge::default());
        let held = runs.turn(&key("a")).await;
        for run in ["b", "c", "d", "e"] {
            drop(runs.turn(&key(run)).await);
        }
        assert_eq!(runs_in(&runs), ["a", "d", "e"], "`a` is the oldest, but in use");
        drop(held);
        drop(runs.turn(&key("f")).await);
        assert_eq!(runs_in(&runs), ["d", "e", "f"]);
    }

    #[tokio::test]
    async fn a_run_at_rest_is_forgotten() {
        let runs = LiveRuns::new(10, Duration::from_mins(1), Gauge::default());
        let now = Instant::now();
        runs.slot(&key("a"), now);
        runs.slot(&key("b"), now + Duration::from_secs(50));
        assert_eq!(runs_in(&runs), ["a", "b"]);
        runs.slot(&key("b"), now + Duration::from_secs(90));
        assert_eq!(runs_in(&runs), ["b"]);
    }

    #[tokio::test]
    async fn turns_are_taken_in_the_order_they_were_asked_for() {
        let runs = Arc::new(LiveRuns::new(10, Duration::from_mins(1), Gauge::default()));
        let first = runs.turn(&key("a")).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for position in 0..20 {
            let (runs, order) = (Arc::clone(&runs), Arc::clone(&order));
            waiting.push(tokio::spawn(async move {
                let _turn = runs.turn(&key("a")).await;
                order.lock().unwrap().push(position);
            }));
            tokio::task::yield_now().await; // on one thread this lets the task ask for its turn
        }
        drop(first);
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }
}
