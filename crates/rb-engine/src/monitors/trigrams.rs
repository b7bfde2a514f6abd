//! Sets of three-character pieces, to tell how much two texts have in common.
//!
//! A piece is packed into one number without loss (three times 21 bits). A set keeps at most [`PIECES_MAX`]
//! pieces: up to that size everything is exact; a larger text is represented by a sample of its pieces chosen by
//! their value, the same sample for every text, so that shares stay comparable and memory stays bounded.

use std::cmp::Ordering;

/// How many pieces a set keeps.
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

    /// The share of pieces that both have, of those that either has; 0 when one has none.
    pub(super) fn overlap(&self, other: &Self) -> f64 {
        let sampling = self.sampling.max(other.sampling);
        let mut mine = self.pieces.iter().filter(|piece| kept(**piece, sampling)).peekable();
        let mut theirs = other.pieces.iter().filter(|piece| kept(**piece, sampling)).peekable();
        let (mut both, mut either) = (0_u32, 0_u32);
        let (mut any_mine, mut any_theirs) = (false, false);
        loop {
            let order = match (mine.peek(), theirs.peek()) {
                (Some(a), Some(b)) => a.cmp(b),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            either += 1;
            if order.is_le() {
                any_mine = true;
                mine.next();
            }
            if order.is_ge() {
                any_theirs = true;
                theirs.next();
            }
            both += u32::from(order.is_eq());
        }
        if any_mine && any_theirs { f64::from(both) / f64::from(either) } else { 0.0 }
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
        fn overlap_equals_the_sets(a in "[a-cé字]{0,40}", b in "[a-cé字]{0,40}") {
            prop_assert_eq!(Trigrams::of(&a).overlap(&Trigrams::of(&b)), naive(&a, &b));
        }
    }

    #[test]
    fn a_huge_text_is_sampled_and_still_compares_well() {
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
