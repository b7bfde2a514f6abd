//! Hash function and entry format of the vocabulary table.
//!
//! `build.rs` includes this file, so the table is written and read with the same code.

/// Number of slots: a power of two, about twice the size of the vocabulary, so that most lookups probe one slot.
pub(crate) const TABLE_SLOTS: usize = 1 << 16;

/// Value of an empty slot. It cannot be an entry: the vocabulary has no row 65,535.
pub(crate) const EMPTY: u64 = u64::MAX;

/// Position of a piece in its word. `able` and `##able` are different vocabulary entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Position {
    Start,
    Continuation,
}

/// Incremental FNV-1a hash of a piece; adding a byte costs one multiplication.
#[derive(Clone, Copy)]
pub(crate) struct VocabHash(u64);

impl VocabHash {
    pub(crate) const fn new(position: Position) -> Self {
        Self(match position {
            Position::Start => 0xcbf2_9ce4_8422_2325,
            Position::Continuation => 0x2f0b_4c47_9d1e_a36b,
        })
    }

    pub(crate) fn with(self, byte: u8) -> Self {
        Self((self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    /// Returns the first slot to probe.
    pub(crate) fn slot(self) -> usize {
        let [.., a, b] = self.mixed().to_le_bytes();
        usize::from(u16::from_le_bytes([a, b]))
    }

    /// Returns the table entry: 48 bits of the hash and the row. The spelling is not stored or compared: slot and entry
    /// together hold the 64-bit hash, so the probability that an unknown word matches an entry is about 10⁻¹⁴.
    pub(crate) fn entry(self, row: u16) -> u64 {
        self.mixed() << 16 | u64::from(row)
    }

    fn mixed(self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}
