//! The vocabulary inside the binary: a table in which pieces are found, and a record of each.

use crate::piece_hash::{EMPTY, PLACES, PieceHash};
use crate::record::{DIMS, SCALE_BYTES};

const RECORD_BYTES: usize = SCALE_BYTES + DIMS;

/// The number of a record is the number of its line in the vocabulary.
static RECORDS: &[[u8; RECORD_BYTES]] =
    include_bytes!(concat!(env!("OUT_DIR"), "/records.u8")).as_chunks::<RECORD_BYTES>().0;
static TABLE: &[[u8; 8]] =
    include_bytes!(concat!(env!("OUT_DIR"), "/places.u64")).as_chunks::<8>().0;

const _: () = assert!(TABLE.len() == PLACES);

/// The vector of a piece, eight bits a dimension, and the scale of its values.
#[inline]
pub(crate) fn vector(row: u16) -> (&'static [u8; DIMS], f32) {
    let (scale, vector) = RECORDS[usize::from(row)].split_at(SCALE_BYTES);
    (&vector.as_chunks().0[0], f32::from_le_bytes(scale.as_chunks().0[0]))
}

/// The row of the piece with this hash, if there is one.
pub(crate) fn row_of(hash: PieceHash) -> Option<u16> {
    let mut place = hash.place();
    loop {
        let entry = u64::from_le_bytes(TABLE[place]);
        if entry == EMPTY {
            return None;
        }
        // What is left of the entry is the row, if all the rest of it is the hash.
        if let Ok(row) = u16::try_from(entry ^ hash.entry(0)) {
            return Some(row);
        }
        place = (place + 1) % PLACES;
    }
}
