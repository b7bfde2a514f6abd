//! What the machine takes away. A virtual machine shares its processors with others, and while they work, ours stand
//! still: that is in every latency, and none of our doing.
//!
//! So a figure is measured until the machine was ours, a few times at most, and the quietest time counts. How much was
//! taken away even then is told beside the figures.

use std::fs;

use anyhow::Result;

use super::load::Load;

/// A figure is measured so often at most.
const ROUNDS_MAX: usize = 10;
/// A machine that takes away less is as good as ours alone.
const QUIET_BELOW: f64 = 0.005;

/// Time of all processors, and the part of it that others had.
#[derive(Clone, Copy, Default)]
pub(super) struct Clock {
    all: u64,
    stolen: u64,
}

impl Clock {
    /// Until now; nothing where the system does not tell.
    pub(super) fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        Self::read(stat.lines().next().unwrap_or_default())
    }

    /// The first line of `/proc/stat`: user, nice, system, idle, waiting, interrupts, soft interrupts, stolen. What comes
    /// after is counted in user and nice already.
    fn read(line: &str) -> Self {
        let times: Vec<u64> = line.split(' ').filter_map(|time| time.parse().ok()).collect();
        let times = times.get(..8).unwrap_or_default();
        Self { all: times.iter().sum(), stolen: times.last().copied().unwrap_or_default() }
    }

    /// The share of time since then that others had.
    pub(super) fn stolen_since(self, then: Self) -> f64 {
        // Some of these counters may step back a little.
        let ticks = |now: u64, then: u64| {
            f64::from(u32::try_from(now.saturating_sub(then)).unwrap_or(u32::MAX))
        };
        let all = ticks(self.all, then.all);
        if all > 0.0 { ticks(self.stolen, then.stolen) / all } else { 0.0 }
    }
}

/// Measures until the machine was quiet, and gives the quietest.
pub(super) fn quietest(mut measure: impl FnMut() -> Result<Load>) -> Result<Load> {
    let mut best = measure()?;
    for _ in 1..ROUNDS_MAX {
        if best.stolen < QUIET_BELOW {
            break;
        }
        let next = measure()?;
        if next.stolen < best.stolen {
            best = next;
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_had_is_a_share_of_all() {
        let then = Clock::read("cpu  100 0 50 800 10 0 5 35 0 0");
        let now = Clock::read("cpu  140 0 60 840 10 0 5 45 7 0");
        assert_eq!((then.all, then.stolen), (1_000, 35));
        assert!((now.stolen_since(then) - 0.1).abs() < 1e-9);
        for (now, then) in [("", ""), ("", "cpu  100 0 50 800 10 0 5 35 0 0")] {
            assert!(
                Clock::read(now).stolen_since(Clock::read(then)).abs() < 1e-9,
                "nothing is told"
            );
        }
    }

    #[test]
    fn the_quietest_counts_and_a_quiet_one_ends_it() {
        let load = |stolen| Load { seconds: 1.0, stolen, ..Load::default() };
        let mut noisy = vec![0.1; ROUNDS_MAX];
        noisy[1] = 0.03;
        noisy.push(0.0); // one round too late
        let cases: [(&[f64], f64, usize); 3] =
            [(&noisy, 0.03, ROUNDS_MAX), (&[0.1, 0.001, 0.0], 0.001, 2), (&[0.0, 0.1], 0.0, 1)];
        for (seen, best, rounds) in cases {
            let mut left = seen.iter();
            let found = quietest(|| Ok(load(*left.next().unwrap()))).unwrap();
            assert!((found.stolen - best).abs() < 1e-9, "{seen:?}");
            assert_eq!(seen.len() - left.len(), rounds, "{seen:?}");
        }
    }
}
