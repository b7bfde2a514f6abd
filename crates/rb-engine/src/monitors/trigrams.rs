//! Sets of three-character pieces, to tell how much two texts have in common.
//!
//! A set of any text is a sorted list of pieces, each packed into one number without loss (three times 21 bits). It
//! keeps at most [`PIECES_MAX`]: up to that size everything is exact; a larger text is represented by a sample of its
//! pieces chosen by their value, the same sample for every text, so that shares stay comparable and memory stays
//! bounded. A set of short ASCII text, which is nearly every edit, needs no sorting: see [`Table`].

use std::borrow::Cow;
use std::cmp::Ordering;

/// How many pieces a sorted set keeps.
const PIECES_MAX: usize = 8_192;

/// ASCII text up to this many bytes is kept as a table, which then takes less memory than a full sorted set.
const TABLE_BYTES_MAX: usize = 2_048;

/// The three-character pieces of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Trigrams {
    Table(Table),
    Sorted(Sorted),
}

impl Trigrams {
    fn sorted(&self) -> Cow<'_, Sorted> {
        match self {
            Self::Table(table) => Cow::Owned(table.sorted()),
            Self::Sorted(sorted) => Cow::Borrowed(sorted),
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Table(table) => {
                table.starts.capacity() * size_of::<u16>()
                    + table.ends.capacity() * size_of::<Ends>()
            }
            Self::Sorted(sorted) => sorted.pieces.capacity() * size_of::<u64>(),
        }
    }
}

/// The pieces of a text that is to be compared with others.
pub(super) struct Fresh {
    pieces: Trigrams,
    /// Of the table, if it is one.
    index: Index,
}

impl Fresh {
    pub(super) fn of(text: &str) -> Self {
        if text.len() <= TABLE_BYTES_MAX && text.is_ascii() {
            let (table, index) = Table::of(text.as_bytes());
            return Self { pieces: Trigrams::Table(table), index };
        }
        Self { pieces: Trigrams::Sorted(Sorted::of(text.chars())), index: Index::default() }
    }

    /// The share of pieces that both have, of those that either has; 0 when one has none.
    pub(super) fn overlap(&self, other: &Trigrams) -> f64 {
        match (&self.pieces, other) {
            (Trigrams::Table(mine), Trigrams::Table(theirs)) => mine.overlap(&self.index, theirs),
            (mine, theirs) => mine.sorted().overlap(&theirs.sorted()),
        }
    }

    /// What is worth keeping.
    pub(super) fn into_pieces(self) -> Trigrams {
        self.pieces
    }
}

/// How many pairs of ASCII characters there are.
const PAIRS: usize = 128 * 128;

/// The third characters that occur after one pair: a bit each.
type Ends = [u64; 2];

/// Where every pair stands in a table; 0 for a pair that does not occur.
type Index = Box<[u16]>;

/// The pieces of an ASCII text by their first two characters.
///
/// A pair is a number below [`PAIRS`], so an index of all pairs finds its ends at once. The index is only needed while
/// the text is new; what is kept is a list. There are no branches on what a text holds, because nobody can guess them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Table {
    /// The pairs that occur, in order of appearance, after one that stands for all others.
    starts: Vec<u16>,
    /// For each of them, what comes after it.
    ends: Vec<Ends>,
    /// How many pieces there are.
    pieces: u32,
}

impl Table {
    fn of(text: &[u8]) -> (Self, Index) {
        let mut index = vec![0_u16; PAIRS].into_boxed_slice();
        let mut starts = vec![0_u16; text.len() + 1];
        let mut ends: Vec<Ends> = vec![[0; 2]; text.len() + 1];
        let mut next = 1_u16;
        for piece in text.windows(3) {
            let &[a, b, c] = piece else { continue };
            let start = u16::from(a) * 128 + u16::from(b);
            let Some(place) = index.get_mut(usize::from(start)) else { continue };
            let is_new = *place == 0;
            *place = if is_new { next } else { *place };
            let place = usize::from(*place);
            if let (Some(kept), Some(ends)) = (starts.get_mut(place), ends.get_mut(place)) {
                *kept = start;
                ends[usize::from(c / 64) % 2] |= 1 << (c % 64);
            }
            next += u16::from(is_new);
        }
        starts.truncate(next.into());
        ends.truncate(next.into());
        starts.shrink_to_fit();
        ends.shrink_to_fit();
        let pieces = ends.iter().map(count).sum();
        (Self { starts, ends, pieces }, index)
    }

    /// `index` is this table's own.
    fn overlap(&self, index: &[u16], other: &Self) -> f64 {
        let mut both = 0;
        for (start, theirs) in other.starts.iter().zip(&other.ends) {
            let place = index.get(usize::from(*start)).map_or(0, |place| usize::from(*place));
            if let Some(mine) = self.ends.get(place) {
                both += count(&[mine[0] & theirs[0], mine[1] & theirs[1]]);
            }
        }
        share(both, self.pieces + other.pieces - both)
    }

    fn sorted(&self) -> Sorted {
        let mut pieces = Vec::with_capacity(self.pieces as usize);
        for (start, ends) in self.starts.iter().zip(&self.ends) {
            let (a, b) = (start / 128, start % 128);
            let after = (0..128_u64).filter(|c| ends[usize::from(*c >= 64)] >> (c % 64) & 1 == 1);
            pieces.extend(after.map(|c| (u64::from(a) << 42) | (u64::from(b) << 21) | c));
        }
        pieces.sort_unstable();
        Sorted { pieces, sampling: 0 }
    }
}

fn count(ends: &Ends) -> u32 {
    ends[0].count_ones() + ends[1].count_ones()
}

/// The pieces of any text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sorted {
    /// Sorted, each once.
    pieces: Vec<u64>,
    /// Only pieces whose mixed value ends in this many zero bits are kept.
    sampling: u32,
}

impl Sorted {
    fn of(text: impl Iterator<Item = char>) -> Self {
        let mut set = Self::default();
        let mut piece = 0_u64;
        for (at, c) in text.enumerate() {
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

    fn overlap(&self, other: &Self) -> f64 {
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
        if any_mine && any_theirs { share(both, either) } else { 0.0 }
    }
}

/// Where one of two sets is empty, so is what both have, and the share is 0.
fn share(both: u32, either: u32) -> f64 {
    if both == 0 { 0.0 } else { f64::from(both) / f64::from(either) }
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
                    let overlap = Fresh::of(mine).overlap(&Fresh::of(theirs).into_pieces());
                    prop_assert_eq!(overlap, naive(mine, theirs));
                }
            }
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
        let (set_a, set_b) = (Fresh::of(&a), Fresh::of(&b));
        assert!(set_a.pieces.heap_bytes() <= PIECES_MAX * 8 && set_a.pieces.sorted().sampling > 0);
        assert!((set_a.overlap(&set_b.pieces) - naive(&a, &b)).abs() < 0.03);
        assert!((set_a.overlap(&set_a.pieces) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_table_of_nothing_but_new_pairs_stays_small() {
        let pairs = (0..128_u8).flat_map(|a| (a..128).flat_map(move |b| [a, b]));
        let text: String = pairs.map(char::from).take(TABLE_BYTES_MAX).collect();
        let set = Fresh::of(&text);
        assert!(matches!(set.pieces, Trigrams::Table(_)));
        assert!(set.pieces.heap_bytes() <= PIECES_MAX * 8);
        assert_eq!(set.overlap(&set.pieces), 1.0);
    }
}
