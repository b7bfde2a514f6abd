//! `hedge`: the agent's wording becomes uncertain, or the agent retracts a statement.
//!
//! **Rule.** A retraction ("I was wrong", "never mind") scores 1 for the rest of the run. Otherwise, with fewer than
//! four thoughts, the score is the number of hedges relative to the number of words. From four thoughts on, it compares
//! the density of hedges in the later half with the earlier half: up to twice scores 0, four times scores 1.
//!
//! **Fires at** 0.6: a retraction, or about 2.8 times the density.
//!
//! **State.** Sums for both halves, and the counts of each thought of the later half, because the border moves through
//! them. At most `LATE_BLOCKS_MAX` counts are stored: up to 16,384 thoughts every sum is exact, beyond that the border
//! is rounded to blocks of two thoughts, then four, and so on. Cost per step: constant.
//!
//! **Blind spots.** Words are matched inside other words (`await` contains `wait`), and a retraction counts for the
//! rest of the run. `claim_contradiction` examines claims.

use std::collections::VecDeque;

use super::{Monitor, MonitorSpec, SettingsError, Signal, Suite, in_range};
use crate::analysis::features::StepFeatures;
use crate::evidence::Evidence;
use crate::step::StepIndex;

pub(super) static SPEC: MonitorSpec = MonitorSpec {
    id: "hedge",
    suite: Suite::Heuristic,
    summary: "The agent's words grow doubtful, or it takes something back.",
    fire_at: super::DEFAULT_FIRE_THRESHOLD,
    failure_type: "losing_confidence",
    build: |settings| Box::new(Hedge { settings: settings.hedge, ..Hedge::default() }),
    advice,
};

/// User settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HedgeSettings {
    /// Density of hedges that scores 1 if the earlier half has none.
    pub full_density: f64,
    /// Ratio of densities up to which the score is 0.
    pub quiet_ratio: f64,
    /// Ratio of densities from which the score is 1.
    pub full_ratio: f64,
}

impl Default for HedgeSettings {
    fn default() -> Self {
        Self { full_density: 0.05, quiet_ratio: 2.0, full_ratio: 4.0 }
    }
}

impl HedgeSettings {
    pub(super) fn check(self) -> Result<(), SettingsError> {
        in_range("hedge.full_density", self.full_density, 1e-6, 1.0)?;
        in_range("hedge.full_ratio", self.full_ratio, 1.0 + 1e-6, 1e6)?;
        in_range("hedge.quiet_ratio", self.quiet_ratio, 1.0, self.full_ratio)
    }
}

/// Number of thoughts from which the halves are compared.
const THOUGHTS_FOR_HALVES: u32 = 4;
/// Maximum number of blocks of the later half.
const LATE_BLOCKS_MAX: usize = 8_192;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Count {
    hedges: u32,
    words: u32,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.hedges = self.hedges.saturating_add(other.hedges);
        self.words = self.words.saturating_add(other.words);
    }

    fn density(self) -> f64 {
        f64::from(self.hedges) / f64::from(self.words.max(1))
    }
}

struct Hedge {
    settings: HedgeSettings,
    retracted: Option<(StepIndex, &'static str)>,
    thoughts: u32,
    /// Number of thoughts before the border.
    early_thoughts: u32,
    early: Count,
    late: Count,
    /// The later half, oldest first; each block covers `block_thoughts` thoughts.
    blocks: VecDeque<Count>,
    block_thoughts: u32,
    /// The latest thoughts, which do not fill a block yet.
    open: Count,
    open_thoughts: u32,
    last: StepIndex,
}

impl Default for Hedge {
    fn default() -> Self {
        Self {
            settings: HedgeSettings::default(),
            retracted: None,
            thoughts: 0,
            early_thoughts: 0,
            early: Count::default(),
            late: Count::default(),
            blocks: VecDeque::new(),
            block_thoughts: 1,
            open: Count::default(),
            open_thoughts: 0,
            last: StepIndex(0),
        }
    }
}

impl Monitor for Hedge {
    fn observe(&mut self, at: StepIndex, features: &StepFeatures<'_>) -> Signal {
        if self.retracted.is_none() && !features.step.thought.is_empty() {
            self.last = at;
            self.retracted = features.thought.retraction.map(|phrase| (at, phrase));
            self.count(Count { hedges: features.thought.hedges, words: features.thought.words });
        }
        if let Some((at, phrase)) = self.retracted {
            self.blocks = VecDeque::new(); // Never read again.
            return Signal::new(1.0, || Evidence::new("retraction", 1).at([at]).phrase(phrase));
        }
        Signal::new(self.score(), || {
            let kind = if self.thoughts < THOUGHTS_FOR_HALVES { "doubt" } else { "growing_doubt" };
            Evidence::new(kind, self.late.hedges).at([self.last])
        })
    }

    fn heap_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Count>()
    }
}

impl Hedge {
    fn count(&mut self, thought: Count) {
        self.thoughts = self.thoughts.saturating_add(1);
        self.late.add(thought);
        self.open.add(thought);
        self.open_thoughts += 1;
        if self.open_thoughts == self.block_thoughts {
            self.close_block();
        }
        self.move_border();
    }

    fn close_block(&mut self) {
        if self.blocks.len() == LATE_BLOCKS_MAX {
            self.merge_blocks();
        }
        if self.open_thoughts == self.block_thoughts {
            self.blocks.push_back(std::mem::take(&mut self.open));
            self.open_thoughts = 0;
        }
    }

    /// Halves the number of blocks by joining neighbours.
    fn merge_blocks(&mut self) {
        let mut pairs = std::mem::take(&mut self.blocks).into_iter();
        while let Some(mut block) = pairs.next() {
            if let Some(next) = pairs.next() {
                block.add(next);
            }
            self.blocks.push_back(block);
        }
        self.block_thoughts = self.block_thoughts.saturating_mul(2);
    }

    fn move_border(&mut self) {
        while self.early_thoughts + self.block_thoughts <= self.thoughts / 2 {
            let Some(block) = self.blocks.pop_front() else { return };
            self.early.add(block);
            self.late.hedges = self.late.hedges.saturating_sub(block.hedges);
            self.late.words = self.late.words.saturating_sub(block.words);
            self.early_thoughts += self.block_thoughts;
        }
    }

    fn score(&self) -> f64 {
        if self.thoughts < THOUGHTS_FOR_HALVES {
            let mut all = self.early;
            all.add(self.late);
            return (f64::from(all.hedges) / (f64::from(all.words.max(1)) * 0.05 + 1.0)).min(1.0);
        }
        let (early, late) = (self.early.density(), self.late.density());
        if self.early.hedges == 0 {
            return (late / self.settings.full_density).min(1.0);
        }
        let ratio = late / early;
        if ratio <= self.settings.quiet_ratio {
            return 0.0;
        }
        ((ratio - 1.0) / (self.settings.full_ratio - 1.0)).min(1.0)
    }
}

fn advice(seen: &Evidence) -> String {
    let step = seen.steps_in_words();
    match seen.phrase.as_deref() {
        Some(phrase) => format!(
            "an earlier statement was taken back at {step} (\"{phrase}\"). Before building on the new \
             view, it may help to note which earlier conclusions rested on the old one, and to check the \
             new one against something observed.",
        ),
        None => format!(
            "the wording has become clearly less certain than earlier in the run (up to {step}, {} words of \
             doubt). It may help to name the open question, pick the observation that would settle it, and \
             make that the next step.",
            seen.count,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_util::check;

    #[test]
    fn a_retraction_fires_for_the_rest_of_the_run() {
        check(
            "hedge",
            "
            think reading the parser        | 0.00
            think I was wrong about that    | 1.00 FIRED
            think all clear now             | 1.00 FIRED
            ",
        );
    }

    #[test]
    fn hedges_count_relative_to_words() {
        check(
            "hedge",
            "
            think maybe it is the cache, perhaps the lock   | 1.00 FIRED
            run x => done                                   | 1.00 FIRED
            ",
        );
    }

    #[test]
    fn growing_uncertainty_fires_and_constant_uncertainty_does_not() {
        check(
            "hedge",
            "
            think maybe one two three four five six seven eight nine ten eleven   | 0.62 FIRED
            think maybe one two three four five six seven eight nine ten eleven   | 0.91 FIRED
            think maybe one two three four five six seven eight nine ten eleven   | 1.00 FIRED
            think maybe one two three four five six seven eight nine ten eleven   | 0.00
            think maybe perhaps might could wait                                  | 0.63 FIRED
            ",
        );
    }

    #[test]
    fn blocks_double_when_the_run_is_very_long() {
        let mut hedge = Hedge::default();
        for n in 0..100_000_u32 {
            hedge.count(Count { hedges: u32::from(n >= 50_000), words: 20 });
        }
        assert!(hedge.blocks.len() <= LATE_BLOCKS_MAX && hedge.block_thoughts > 1);
        assert!(hedge.heap_bytes() <= super::super::HEAP_BYTES_MAX);
        let total = hedge.early.words + hedge.late.words;
        assert_eq!(total, 2_000_000);
        assert!(hedge.thoughts / 2 - hedge.early_thoughts < 2 * hedge.block_thoughts);
    }
}
