//! Files the vocabulary while building, so that the program has no start-up work.
//!
//! Reads `assets`, writes a hash table and the records of all pieces into `OUT_DIR`, and touches nothing else.

use std::{env, error::Error, fs, path::PathBuf};

#[path = "src/piece_hash.rs"]
mod piece_hash;
#[path = "src/record.rs"]
mod record;

use piece_hash::{EMPTY, PLACES, PieceHash, Position};
use record::{DIMS, SCALE_BYTES};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=assets");
    println!("cargo::rerun-if-changed=src/piece_hash.rs");
    println!("cargo::rerun-if-changed=src/record.rs");
    let vocabulary = fs::read_to_string("assets/vocab.txt")?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("records.u8"), records(vocabulary.lines().count())?)?;
    fs::write(out.join("places.u64"), places(&vocabulary)?)?;
    Ok(())
}

/// All records in the order of the vocabulary.
fn records(pieces: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let (vectors, scales) = (fs::read("assets/vectors.i8")?, fs::read("assets/scales.f32")?);
    let (vectors, scales) = (vectors.as_chunks::<DIMS>().0, scales.as_chunks::<SCALE_BYTES>().0);
    if [vectors.len(), scales.len()] != [pieces; 2] {
        return Err("the vocabulary, its vectors and its scales do not belong together".into());
    }
    let both = scales.iter().zip(vectors);
    Ok(both.flat_map(|(scale, vector)| [&scale[..], &vector[..]].concat()).collect())
}

/// The table; on collision, the next free place.
fn places(vocabulary: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut places = vec![EMPTY; PLACES];
    for (row, line) in vocabulary.lines().enumerate() {
        let (position, spelling) = match line.strip_prefix("##") {
            Some(spelling) if !spelling.is_empty() => (Position::Continuing, spelling),
            _ => (Position::Opening, line),
        };
        let hash = spelling.bytes().fold(PieceHash::new(position), PieceHash::with);
        let mut place = hash.place();
        while places[place] != EMPTY {
            place = (place + 1) % PLACES;
        }
        places[place] = hash.entry(u16::try_from(row)?);
    }
    Ok(places.into_iter().flat_map(u64::to_le_bytes).collect())
}
