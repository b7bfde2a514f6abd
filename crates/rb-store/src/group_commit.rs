//! Adaptive group-commit delay.
//!
//! A commit costs about the same for one change as for ten: shared pages are written once and the disk is synced
//! once. Under concurrent load a delay of a few milliseconds adds several requests to each commit and lowers the mean
//! latency; otherwise there is no delay.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::Receiver;

/// Approximate number of commits in the moving average.
const MEAN_WINDOW: u32 = 8;

/// Decides from the arrival rate whether to delay a commit.
pub(crate) struct CommitDelay {
    /// Length of the delay.
    wait: Duration,
    /// Minimum number of further requests to expect within the delay.
    min_expected: u32,
    /// Start of the last commit.
    left: Instant,
    /// Moving average of the time between two requests.
    gap: Duration,
}

impl CommitDelay {
    /// Delays commits by `wait` if at least `min_expected` further requests are expected within it.
    pub(crate) fn new(wait: Duration, min_expected: u32, now: Instant) -> Self {
        Self { wait, min_expected, left: now, gap: Duration::from_secs(1) }
    }

    /// Returns the delay before a batch of `waiting` requests is committed, if any.
    pub(crate) fn wait(&self, waiting: usize, now: Instant) -> Option<Duration> {
        let gap = self.gap_with(waiting, now);
        (gap.saturating_mul(self.min_expected) <= self.wait).then_some(self.wait)
    }

    /// Records a commit of a batch.
    pub(crate) fn on_commit(&mut self, together: usize, now: Instant) {
        self.gap = self.gap_with(together, now);
        self.left = now;
    }

    fn gap_with(&self, requests: usize, now: Instant) -> Duration {
        let requests = u32::try_from(requests).unwrap_or(u32::MAX).max(1);
        let newest = now.saturating_duration_since(self.left) / requests;
        (self.gap / MEAN_WINDOW * (MEAN_WINDOW - 1)).saturating_add(newest / MEAN_WINDOW)
    }
}

/// Adds queued requests to a batch of at most `count_max`.
pub(crate) fn fill<T>(batch: &mut Vec<T>, count_max: usize, queue: &mut Receiver<T>) {
    while batch.len() < count_max
        && let Ok(more) = queue.try_recv()
    {
        batch.push(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if a commit is delayed after `commits` batches of `requests`, one per interval.
    fn waits(commits: u32, requests: usize, every: Duration) -> bool {
        let mut now = Instant::now();
        let mut delay = CommitDelay::new(Duration::from_millis(2), 4, now);
        for _ in 0..commits {
            now += every;
            delay.on_commit(requests, now);
        }
        delay.wait(requests, now + every).is_some()
    }

    #[test]
    fn commits_are_delayed_only_under_load() {
        let ms = Duration::from_millis;
        let us = Duration::from_micros;
        for (name, commits, requests, every, expected) in [
            ("the first of all", 0, 1, ms(1), false),
            ("one client, as fast as it goes", 1000, 1, us(700), false),
            ("two clients in step", 1000, 2, us(1_100), false),
            ("many clients, one at a time", 1000, 1, us(300), true),
            ("many clients, already together", 1000, 40, ms(9), true),
            ("many at long intervals", 1000, 40, ms(900), false),
        ] {
            assert_eq!(waits(commits, requests, every), expected, "{name}");
        }
    }

    #[test]
    fn the_delay_ends_with_the_load() {
        let mut now = Instant::now();
        let mut delay = CommitDelay::new(Duration::from_millis(2), 4, now);
        for _ in 0..1000 {
            now += Duration::from_micros(100);
            delay.on_commit(1, now);
        }
        assert!(delay.wait(1, now).is_some());
        let later = now + Duration::from_mins(1);
        assert!(delay.wait(1, later).is_none());
        delay.on_commit(1, later);
        assert!(
            delay.wait(1, later + Duration::from_micros(100)).is_none(),
            "one quick one is no delay"
        );
    }
}
