//! A set of fingerprints in bounded memory.

/// Bits of one generation.
const BITS: usize = 1 << 16;
/// Number of new fingerprints after which a generation is full.
const GENERATION_CAPACITY: u32 = 5_000;
/// Maximum number of bits that are stored as positions, which take an eighth of the memory.
const SPARSE_MAX: usize = 512;

/// Bloom filter with two generations: it contains every recent fingerprint, forgets old ones, and reports about one in a
/// hundred unknown fingerprints as known.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecencyFilter {
    current: Bits,
    previous: Bits,
    count: u32,
}

impl RecencyFilter {
    pub(crate) fn contains(&self, fingerprint: u64) -> bool {
        self.contains_bits(positions(fingerprint))
    }

    fn contains_bits(&self, positions: [u16; 2]) -> bool {
        self.current.has_all(positions) || self.previous.has_all(positions)
    }

    /// Inserts a fingerprint and returns whether it is new.
    pub(crate) fn insert(&mut self, fingerprint: u64) -> bool {
        let positions = positions(fingerprint);
        if self.count < GENERATION_CAPACITY && self.current.has_all(positions) {
            return false;
        }
        let is_new = !self.contains_bits(positions);
        if self.count >= GENERATION_CAPACITY {
            self.previous = std::mem::take(&mut self.current);
            self.count = 0;
        }
        for position in positions {
            self.current.set(position);
        }
        self.count += u32::from(is_new);
        is_new
    }

    /// Inserts the recent fingerprints of another filter, which is empty afterwards.
    pub(crate) fn merge(&mut self, other: &mut Self) {
        let other = std::mem::take(other);
        if other.current.is_empty() {
            return;
        }
        if self.count.saturating_add(other.count) > GENERATION_CAPACITY || self.current.is_empty() {
            self.previous = std::mem::replace(&mut self.current, other.current);
            self.count = other.count;
        } else {
            self.current.merge(other.current);
            self.count += other.count;
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.current.heap_bytes() + self.previous.heap_bytes()
    }
}

/// The bits of one generation.
#[derive(Debug, Clone)]
enum Bits {
    /// Sorted positions of the set bits, at most [`SPARSE_MAX`].
    Sparse(Vec<u16>),
    Dense(Box<[u64]>),
}

impl Default for Bits {
    fn default() -> Self {
        Self::Sparse(Vec::new())
    }
}

impl Bits {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Sparse(positions) if positions.is_empty())
    }

    fn has_all(&self, all: [u16; 2]) -> bool {
        all.into_iter().all(|position| match self {
            Self::Sparse(positions) => positions.binary_search(&position).is_ok(),
            Self::Dense(words) => words[usize::from(position / 64)] >> (position % 64) & 1 == 1,
        })
    }

    fn set(&mut self, position: u16) {
        match self {
            Self::Sparse(positions) => {
                if let Err(at) = positions.binary_search(&position) {
                    positions.insert(at, position);
                }
                if positions.len() > SPARSE_MAX {
                    let mut dense = Self::Dense(vec![0; BITS / 64].into());
                    for position in positions {
                        dense.set(*position);
                    }
                    *self = dense;
                }
            }
            Self::Dense(words) => words[usize::from(position / 64)] |= 1 << (position % 64),
        }
    }

    fn merge(&mut self, mut other: Self) {
        if let (Self::Sparse(_), Self::Dense(_)) = (&*self, &other) {
            std::mem::swap(self, &mut other);
        }
        match (&mut *self, other) {
            (Self::Dense(mine), Self::Dense(theirs)) => {
                mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine |= theirs);
            }
            (_, Self::Sparse(positions)) => {
                for position in positions {
                    self.set(position);
                }
            }
            (Self::Sparse(_), Self::Dense(_)) => {} // Swapped above.
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Self::Sparse(positions) => positions.capacity() * size_of::<u16>(),
            Self::Dense(words) => size_of_val(&**words),
        }
    }
}

/// The two bits of a fingerprint.
fn positions(fingerprint: u64) -> [u16; 2] {
    let mixed = fingerprint.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [mixed >> 48, (mixed >> 24) & 0xffff].map(|position| u16::try_from(position).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(n: u64) -> u64 {
        n.wrapping_mul(0x1234_5678_9abc_def1)
    }

    fn filled(range: std::ops::Range<u64>) -> RecencyFilter {
        let mut filter = RecencyFilter::default();
        range.for_each(|n| {
            filter.insert(spread(n));
        });
        filter
    }

    #[test]
    fn inserted_fingerprints_are_known_and_few_others_are() {
        let mut filter = RecencyFilter::default();
        assert!(!filter.contains(7) && filter.insert(7) && !filter.insert(7) && filter.contains(7));
        let filter = filled(0..4_000);
        assert!((0..4_000).all(|n| filter.contains(spread(n))));
        let mistaken = (4_000..8_000).filter(|n| filter.contains(spread(*n))).count();
        assert!(mistaken < 80, "{mistaken}");
    }

    #[test]
    fn merging_equals_inserting() {
        for (mine, theirs) in
            [(0..10, 5..20), (0..10, 0..600), (0..600, 590..620), (0..400, 300..900), (0..0, 0..9)]
        {
            let (mut filter, mut other) = (filled(mine.clone()), filled(theirs.clone()));
            filter.merge(&mut other);
            let expected = filled(mine.start..theirs.end.max(mine.end));
            for n in 0..2_000 {
                let known = (filter.contains(spread(n)), expected.contains(spread(n)));
                assert_eq!(known.0, known.1, "{n} after {mine:?} and {theirs:?}");
            }
            assert_eq!(other.heap_bytes(), 0);
        }
        // A full filter drops its own oldest fingerprints, not the merged ones.
        let mut filter = filled(0..10);
        filter.merge(&mut filled(10..5_010));
        assert!((0..5_010).all(|n| filter.contains(spread(n))));
    }

    #[test]
    fn memory_is_bounded_and_old_fingerprints_are_forgotten() {
        assert!(filled(0..100).heap_bytes() <= 1_024);
        let filter = filled(0..100_000);
        assert_eq!(filter.heap_bytes(), 2 * BITS / 8);
        assert!(filter.contains(spread(99_999)));
        assert!((0..1_000).filter(|n| filter.contains(spread(*n))).count() < 100);
    }
}
