//! Embedded vocabulary: the hash table of all pieces, and the quantised vector and scale of each.

use crate::vocab_hash::{EMPTY, TABLE_SLOTS, VocabHash};

/// Dimensions of the embedded vectors.
pub(crate) const DIMS: usize = 256;

/// One vector per line of `vocab.txt`, in the same order.
static VECTORS: &[[u8; DIMS]] = include_bytes!("../assets/vectors.i8").as_chunks::<DIMS>().0;
/// One little-endian `f32` scale per vector.
static SCALES: &[[u8; 4]] = include_bytes!("../assets/scales.f32").as_chunks::<4>().0;
static TABLE: &[[u8; 8]] =
    include_bytes!(concat!(env!("OUT_DIR"), "/vocab_table.u64")).as_chunks::<8>().0;

const _: () = assert!(TABLE.len() == TABLE_SLOTS);
const _: () = assert!(VECTORS.len() == SCALES.len());

/// Returns the vector of a piece (one signed byte per dimension) and its scale.
#[inline]
pub(crate) fn vector(row: u16) -> (&'static [u8; DIMS], f32) {
    let row = usize::from(row);
    (&VECTORS[row], f32::from_le_bytes(SCALES[row]))
}

/// Returns the row of the piece with this hash.
pub(crate) fn row_of(hash: VocabHash) -> Option<u16> {
    let mut slot = hash.slot();
    loop {
        let entry = u64::from_le_bytes(TABLE[slot]);
        if entry == EMPTY {
            return None;
        }
        // If the hash bits are equal, the XOR leaves only the row.
        if let Ok(row) = u16::try_from(entry ^ hash.entry(0)) {
            return Some(row);
        }
        slot = (slot + 1) % TABLE_SLOTS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vocabulary_line_has_a_vector() {
        assert_eq!(include_str!("../assets/vocab.txt").lines().count(), VECTORS.len());
    }
}
