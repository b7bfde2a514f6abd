//! Sets of three-character pieces, to measure the overlap of two texts.
//!
//! A set is a sorted list of pieces, each packed into one number without loss (three times 21 bits). It holds at most
//! `PIECES_MAX` pieces. A larger text is represented by a sample that is chosen by the value of the pieces, so that
//! overlaps remain comparable and memory is bounded.

/// Maximum number of pieces in a set.
const PIECES_MAX: usize = 8_192;

/// The three-character pieces of a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Trigrams {
    /// Sorted, each once.
    pieces: Vec<u64>,
    /// Only pieces whose mixed value ends in this many zero bits are kept.
    sampling: u32,
}

impl Trigrams {
    pub(super) fn of(text: &str) -> Self {
        let mut set = Self::default();
        let mut piece = 0_u64;
        for (at, c) in text.chars().enumerate() {
            piece = ((piece << 21) | u64::from(u32::from(c))) & ((1 << 63) - 1);
            if at >= 2 && kept(piece, set.sampling) {
                set.pieces.push(piece);
                // Room for duplicates, so that sorting stays rare.
                if set.pieces.len() >= 4 * PIECES_MAX {
                    set.tidy();
                }
            }
        }
        set.tidy();
        set.pieces.shrink_to_fit();
        set
    }

    fn tidy(&mut self) {
        self.pieces.sort_unstable();
        self.pieces.dedup();
        while self.pieces.len() > PIECES_MAX {
            self.sampling += 1;
            let sampling = self.sampling;
            self.pieces.retain(|piece| kept(*piece, sampling));
        }
    }

    /// Number of pieces in both sets divided by the number in either; 0 if one set is empty.
    pub(super) fn overlap(&self, other: &Self) -> f64 {
        let sampling = self.sampling.max(other.sampling);
        let mut theirs = other.sampled(sampling).peekable();
        let is_shared = |piece: &&u64| {
            while theirs.next_if(|their| their < piece).is_some() {}
            theirs.next_if_eq(piece).is_some()
        };
        let both = self.sampled(sampling).filter(is_shared).count();
        if both == 0 {
            return 0.0;
        }
        let either = self.sampled(sampling).count() + other.sampled(sampling).count() - both;
        // At most `PIECES_MAX` each.
        let float = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        float(both) / float(either)
    }

    fn sampled(&self, sampling: u32) -> impl Iterator<Item = &u64> {
        self.pieces.iter().filter(move |piece| kept(**piece, sampling))
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.pieces.capacity() * size_of::<u64>()
    }
}

fn kept(piece: u64, sampling: u32) -> bool {
    sampling == 0 || (piece.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).trailing_zeros() >= sampling
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn naive(a: &str, b: &str) -> f64 {
        let pieces = |text: &str| -> BTreeSet<String> {
            let text: Vec<char> = text.chars().collect();
            text.windows(3).map(|piece| piece.iter().collect()).collect()
        };
        let (a, b) = (pieces(a), pieces(b));
        if a.is_empty() || b.is_empty() {
            return 0.0;
        }
        let both = u32::try_from(a.intersection(&b).count()).expect("small");
        let either = u32::try_from(a.union(&b).count()).expect("small");
        f64::from(both) / f64::from(either)
    }

    proptest! {
        #[test]
        fn overlap_equals_the_sets(
            a in "[a-cé字]{0,40}", b in "[a-cé字]{0,40}", c in "[a-c\\x00\\x7f]{0,40}", d in "[ -~]{0,400}",
        ) {
            for mine in [&a, &b, &c, &d] {
                for theirs in [&a, &b, &c, &d] {
                    let overlap = Trigrams::of(mine).overlap(&Trigrams::of(theirs));
                    prop_assert_eq!(overlap, naive(mine, theirs));
                }
            }
        }
    }

    #[test]
    fn large_texts_are_sampled_and_remain_comparable() {
        let text = |from: u32| -> String {
            (from..from + 60_000)
                .filter_map(|n| char::from_u32(0x4e00 + n % 20_000 * 7 % 20_000 + n / 20_000))
                .collect()
        };
        let (a, b) = (text(0), text(15_000));
        let (set_a, set_b) = (Trigrams::of(&a), Trigrams::of(&b));
        assert!(set_a.heap_bytes() <= PIECES_MAX * 8 && set_a.sampling > 0);
        assert!((set_a.overlap(&set_b) - naive(&a, &b)).abs() < 0.03);
        assert!((set_a.overlap(&set_a) - 1.0).abs() < f64::EPSILON);
    }
}
