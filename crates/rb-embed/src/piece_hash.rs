//! The hash under which a piece of the vocabulary is filed.
//!
//! `build.rs` includes this file too: what is filed while building is found again while running,
//! because both sides run these very lines.

/// How many places the table has: a power of two, a little over twice the vocabulary, so that
/// most look-ups end at the first place they try.
pub(crate) const PLACES: usize = 1 << 16;

/// What an empty place holds. No entry looks like it: the vocabulary has no row 65,535.
pub(crate) const EMPTY: u64 = u64::MAX;

/// A piece that opens a word and one that continues it are different entries (`able`, `##able`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Position {
    Opening,
    Continuing,
}

/// Hash of all prefixes so far; one byte more is one multiplication more.
#[derive(Clone, Copy)]
pub(crate) struct PieceHash(u64);

impl PieceHash {
    pub(crate) const fn new(position: Position) -> Self {
        Self(match position {
            Position::Opening => 0xcbf2_9ce4_8422_2325,
            Position::Continuing => 0x2f0b_4c47_9d1e_a36b,
        })
    }

    pub(crate) fn with(self, byte: u8) -> Self {
        Self((self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    /// The place to look at first.
    pub(crate) fn place(self) -> usize {
        let [.., a, b] = self.mixed().to_le_bytes();
        usize::from(u16::from_le_bytes([a, b]))
    }

    /// What the table holds for a piece: the rest of its hash, and its row. Nobody looks at the spelling, which would be one
    /// more place in memory: place and rest are all 64 bits, and a word that is no piece has those of one about once in 10¹⁴.
    pub(crate) fn entry(self, row: u16) -> u64 {
        self.mixed() << 16 | u64::from(row)
    }

    fn mixed(self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}
