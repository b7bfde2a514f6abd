//! The vocabulary inside the binary: a table in which pieces are found, and a record of each.

use crate::piece_hash::{EMPTY, PLACES, PieceHash, Position};
use crate::record::{DIMS, RECORD_BYTES, SCALE_AT, SPELLING_AT, VALUES_AT, label};

/// The number of a record is the number of its line in the vocabulary.
static RECORDS: &[[u8; RECORD_BYTES]] =
    include_bytes!(concat!(env!("OUT_DIR"), "/records.u8")).as_chunks::<RECORD_BYTES>().0;
static TABLE: &[[u8; 4]] =
    include_bytes!(concat!(env!("OUT_DIR"), "/places.u32")).as_chunks::<4>().0;

const _: () = assert!(TABLE.len() == PLACES);

/// The vector of a piece, eight bits a dimension, and the scale of its values.
#[inline]
pub(crate) fn vector(row: u16) -> (&'static [u8; DIMS], f32) {
    let record = &RECORDS[usize::from(row)];
    let scale = [SCALE_AT, SCALE_AT + 1, SCALE_AT + 2, SCALE_AT + 3].map(|at| record[at]);
    (&record[VALUES_AT..].as_chunks().0[0], f32::from_le_bytes(scale))
}

/// The row of the piece that is spelled so, if there is one.
pub(crate) fn row_of(position: Position, spelling: &[u8], hash: PieceHash) -> Option<u16> {
    let mut place = hash.place();
    loop {
        let entry = u32::from_le_bytes(TABLE[place]);
        if entry == EMPTY {
            return None;
        }
        let [low, high, print_low, print_high] = entry.to_le_bytes();
        let row = u16::from_le_bytes([low, high]);
        if u16::from_le_bytes([print_low, print_high]) == hash.fingerprint()
            && is_spelled(row, position, spelling)
        {
            return Some(row);
        }
        place = (place + 1) % PLACES;
    }
}

fn is_spelled(row: u16, position: Position, spelling: &[u8]) -> bool {
    let record = &RECORDS[usize::from(row)];
    usize::from(record[0]) == label(position, spelling)
        && record[SPELLING_AT..].starts_with(spelling)
}
