//! The hash under which a piece of the vocabulary is filed.
//!
//! `build.rs` includes this file too: what is filed while building is found again while running,
//! because both sides run these very lines.

/// How many places the table has: a power of two, a little over twice the vocabulary, so that
/// most look-ups end at the first place they try.
pub(crate) const PLACES: usize = 1 << 16;

/// What an empty place holds. No entry looks like it: the vocabulary has no row 65,535.
pub(crate) const EMPTY: u32 = u32::MAX;

/// A piece that opens a word and one that continues it are different entries (`able`, `##able`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Position {
    Opening,
    Continuing,
}

/// Hash of all prefixes so far; one byte more is one multiplication more.
#[derive(Clone, Copy)]
pub(crate) struct PieceHash(u32);

impl PieceHash {
    pub(crate) fn new(position: Position) -> Self {
        Self(match position {
            Position::Opening => 0x811c_9dc5,
            Position::Continuing => 0x2f0b_4c47,
        })
    }

    pub(crate) fn with(self, byte: u8) -> Self {
        Self((self.0 ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }

    /// The place to look at first.
    pub(crate) fn place(self) -> usize {
        usize::from(self.mixed().0)
    }

    /// Sixteen bits stored beside the row: a stranger is turned away without reading its text.
    pub(crate) fn fingerprint(self) -> u16 {
        self.mixed().1
    }

    fn mixed(self) -> (u16, u16) {
        let [a, b, c, d, ..] = u64::from(self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
    }
}
