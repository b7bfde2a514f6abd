//! Chance from a seed: the same seed gives the same draws on every machine.
//!
//! The generator is SplitMix64. It is not for secrets; it is for places, wordings and resamples.

/// A stream of draws.
#[derive(Debug, Clone)]
pub(crate) struct Dice {
    state: u64,
}

impl Dice {
    /// A stream of its own for one purpose, so that adding a run does not change the draws of the others.
    pub(crate) fn for_purpose(seed: u64, parts: &[&str]) -> Self {
        let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
        for part in parts {
            state = state.rotate_left(17) ^ hash(part);
        }
        Self { state }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `n`; 0 when `n` is 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let wide = u128::from(self.next()) * (n as u128);
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// A number from `low` up to, not including, `high`; `low` when there is none.
    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low))
    }

    /// One time in `n`.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of them; the default when there is none.
    pub(crate) fn pick<T: Copy + Default>(&mut self, from: &[T]) -> T {
        from.get(self.below(from.len())).copied().unwrap_or_default()
    }
}

/// FNV-1a: stable across releases, unlike the standard hasher, because splits are drawn by it.
pub(crate) fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_fixed_and_in_range() {
        let mut dice = Dice { state: 0 };
        assert_eq!(dice.next(), 0xe220_a839_7b1d_cdaf, "the published first value of SplitMix64");
        assert!((0..1000).all(|_| dice.below(7) < 7 && (3..5).contains(&dice.between(3, 5))));
        assert_eq!((dice.below(0), dice.between(4, 4), dice.pick::<u8>(&[])), (0, 4, 0));
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c, "the published value of FNV-1a");
    }
}
