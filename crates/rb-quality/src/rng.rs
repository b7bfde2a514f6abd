//! Seeded random numbers, stable across machines and releases: `docs/figures.json` depends on every draw.

/// The `SplitMix64` generator.
#[derive(Debug, Clone)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// An independent stream per purpose, so that adding a run does not change the draws of the others.
    pub fn for_purpose(seed: u64, parts: &[&str]) -> Self {
        let state = seed ^ 0x9e37_79b9_7f4a_7c15;
        Self { state: parts.iter().fold(state, |state, part| state.rotate_left(17) ^ hash(part)) }
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from((u128::from(self.bits()) * (n as u128)) >> 64).unwrap_or(0)
    }

    /// An element, or the default value of an empty slice.
    pub fn pick<T: Copy + Default>(&mut self, from: &[T]) -> T {
        from.get(self.below(from.len())).copied().unwrap_or_default()
    }
}

/// FNV-1a.
pub fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_fixed_and_in_range() {
        let mut rng = Rng { state: 0 };
        assert_eq!(rng.bits(), 0xe220_a839_7b1d_cdaf, "the published first value of SplitMix64");
        assert!((0..1000).all(|_| rng.below(7) < 7));
        assert_eq!((rng.below(0), rng.pick::<u8>(&[])), (0, 0));
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c, "the published value of FNV-1a");
    }
}
