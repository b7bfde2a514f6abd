//! Files the vocabulary while building, so that the program has no start-up work.
//!
//! Reads `assets`, writes a hash table and the records of all pieces into `OUT_DIR`, and touches nothing else.

use std::{env, error::Error, fs, path::PathBuf};

#[path = "src/piece_hash.rs"]
mod piece_hash;
#[path = "src/record.rs"]
mod record;

use piece_hash::{EMPTY, PLACES, PieceHash, Position};
use record::{DIMS, PIECE_BYTES_MAX, RECORD_BYTES, SCALE_AT, SPELLING_AT, VALUES_AT, label};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=assets");
    println!("cargo::rerun-if-changed=src/piece_hash.rs");
    println!("cargo::rerun-if-changed=src/record.rs");
    let vocabulary = fs::read_to_string("assets/vocab.txt")?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("records.u8"), records(&vocabulary)?)?;
    fs::write(out.join("places.u32"), places(&vocabulary)?)?;
    Ok(())
}

/// All records in the order of the vocabulary.
fn records(vocabulary: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let (vectors, scales) = (fs::read("assets/vectors.i8")?, fs::read("assets/scales.f32")?);
    let (vectors, scales) = (vectors.as_chunks::<DIMS>().0, scales.as_chunks::<4>().0);
    if [vectors.len(), scales.len()] != [vocabulary.lines().count(); 2] {
        return Err("the vocabulary, its vectors and its scales do not belong together".into());
    }
    let mut records = Vec::new();
    for ((line, vector), scale) in vocabulary.lines().zip(vectors).zip(scales) {
        let (position, spelling) = piece(line);
        if spelling.len() > PIECE_BYTES_MAX {
            return Err(format!("{line} is too long").into());
        }
        let mut record = [0; RECORD_BYTES];
        record[0] = u8::try_from(label(position, spelling))?;
        record[SPELLING_AT..][..spelling.len()].copy_from_slice(spelling);
        record[SCALE_AT..][..scale.len()].copy_from_slice(scale);
        record[VALUES_AT..].copy_from_slice(vector);
        records.extend(record);
    }
    Ok(records)
}

/// The table: fingerprint in the high half, row in the low half, the next free place on collision.
fn places(vocabulary: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut places = vec![EMPTY; PLACES];
    for (row, line) in vocabulary.lines().enumerate() {
        let (position, spelling) = piece(line);
        let hash = spelling.iter().copied().fold(PieceHash::new(position), PieceHash::with);
        let mut place = hash.place();
        while places[place] != EMPTY {
            place = (place + 1) % PLACES;
        }
        places[place] = u32::from(hash.fingerprint()) << 16 | u32::from(u16::try_from(row)?);
    }
    Ok(places.into_iter().flat_map(u32::to_le_bytes).collect())
}

/// Where the piece of a line may stand, and how it is spelled.
fn piece(line: &str) -> (Position, &[u8]) {
    match line.strip_prefix("##") {
        Some(spelling) if !spelling.is_empty() => (Position::Continuing, spelling.as_bytes()),
        _ => (Position::Opening, line.as_bytes()),
    }
}
