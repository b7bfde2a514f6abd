//! How long those who write wait for company.
//!
//! A commit costs much the same for one change as for ten: pages that runs share are written once, and the disk is waited
//! for once. Where many write, a few milliseconds bring several more into a commit, and all of them are served sooner for
//! it. Where few do, waiting brings nobody, and nobody waits.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::Receiver;

/// The mean is over about so many commits.
const REMEMBERED: u32 = 8;

/// How closely requests follow each other, and what follows from it.
pub(crate) struct Crowd {
    /// How long company is waited for.
    wait: Duration,
    /// It is worth waiting when so many more are to be expected.
    worth: u32,
    /// The last commit began.
    left: Instant,
    /// From one request to the next, in the mean.
    gap: Duration,
}

impl Crowd {
    /// Waits so long where that brings so many more.
    pub(crate) fn new(wait: Duration, worth: u32, now: Instant) -> Self {
        Self { wait, worth, left: now, gap: Duration::from_secs(1) }
    }

    /// How long to wait before these are committed.
    pub(crate) fn wait(&self, waiting: usize, now: Instant) -> Option<Duration> {
        let gap = self.gap_with(waiting, now);
        (gap.saturating_mul(self.worth) <= self.wait).then_some(self.wait)
    }

    /// So many are committed now.
    pub(crate) fn leaves(&mut self, together: usize, now: Instant) {
        self.gap = self.gap_with(together, now);
        self.left = now;
    }

    fn gap_with(&self, requests: usize, now: Instant) -> Duration {
        let requests = u32::try_from(requests).unwrap_or(u32::MAX).max(1);
        let newest = now.saturating_duration_since(self.left) / requests;
        (self.gap / REMEMBERED * (REMEMBERED - 1)).saturating_add(newest / REMEMBERED)
    }
}

/// Takes what came meanwhile, up to so many in all.
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

    /// Whether the thread waits after so many commits of so many requests, one every so often.
    fn waits(commits: u32, requests: usize, every: Duration) -> bool {
        let mut now = Instant::now();
        let mut crowd = Crowd::new(Duration::from_millis(2), 4, now);
        for _ in 0..commits {
            now += every;
            crowd.leaves(requests, now);
        }
        crowd.wait(requests, now + every).is_some()
    }

    #[test]
    fn only_a_crowd_is_waited_for() {
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
    fn a_crowd_that_has_gone_is_not_waited_for() {
        let mut now = Instant::now();
        let mut crowd = Crowd::new(Duration::from_millis(2), 4, now);
        for _ in 0..1000 {
            now += Duration::from_micros(100);
            crowd.leaves(1, now);
        }
        assert!(crowd.wait(1, now).is_some());
        let later = now + Duration::from_mins(1);
        assert!(crowd.wait(1, later).is_none());
        crowd.leaves(1, later);
        assert!(
            crowd.wait(1, later + Duration::from_micros(100)).is_none(),
            "one quick one is no crowd"
        );
    }
}
