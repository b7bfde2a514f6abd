//! What is kept of one piece of the vocabulary: its spelling, its scale and its vector, end to end.
//!
//! They are needed together, one piece at a time, out of megabytes that are seldom in a cache: side by side they are one
//! place in memory, and apart they were four. `build.rs` includes this file too: both sides agree on these very lines.

use crate::piece_hash::Position;

/// Dimensions of the packed vectors.
pub(crate) const DIMS: usize = 256;

/// No piece of the vocabulary is longer.
pub(crate) const PIECE_BYTES_MAX: usize = 18;

/// Where the parts of a record begin; the first byte is its [`label`].
pub(crate) const SPELLING_AT: usize = 1;
pub(crate) const SCALE_AT: usize = 20;
pub(crate) const VALUES_AT: usize = 24;
pub(crate) const RECORD_BYTES: usize = VALUES_AT + DIMS;

const _: () = assert!(SPELLING_AT + PIECE_BYTES_MAX <= SCALE_AT);

/// How long a piece is and where it may stand.
pub(crate) fn label(position: Position, spelling: &[u8]) -> usize {
    spelling.len()
        + match position {
            Position::Opening => 0,
            Position::Continuing => 0x80,
        }
}
