//! Files the vocabulary in a hash table while building, so that the program has no start-up work.
//!
//! Reads `assets/vocab.txt`, writes two tables into `OUT_DIR` and touches nothing else.

use std::{env, error::Error, fs, path::PathBuf};

#[path = "src/piece_hash.rs"]
mod piece_hash;

use piece_hash::{EMPTY, PLACES, PieceHash, Position};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=assets/vocab.txt");
    println!("cargo::rerun-if-changed=src/piece_hash.rs");
    let vocabulary = fs::read_to_string("assets/vocab.txt")?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("starts.u32"), starts(&vocabulary)?)?;
    fs::write(out.join("places.u32"), places(&vocabulary)?)?;
    Ok(())
}

/// Where each line starts, and one more: where the line after the last would.
fn starts(vocabulary: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut bytes = Vec::new();
    let mut start = 0;
    for line in vocabulary.split_inclusive('\n') {
        bytes.extend(u32::try_from(start)?.to_le_bytes());
        start += line.len();
    }
    bytes.extend(u32::try_from(start)?.to_le_bytes());
    Ok(bytes)
}

/// The table: fingerprint in the high half, row in the low half, the next free place on collision.
fn places(vocabulary: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut places = vec![EMPTY; PLACES];
    for (row, line) in vocabulary.lines().enumerate() {
        let (position, text) = match line.strip_prefix("##") {
            Some(text) if !text.is_empty() => (Position::Continuing, text),
            _ => (Position::Opening, line),
        };
        let hash = text.bytes().fold(PieceHash::new(position), PieceHash::with);
        let mut place = hash.place();
        while places[place] != EMPTY {
            place = (place + 1) % PLACES;
        }
        places[place] = u32::from(hash.fingerprint()) << 16 | u32::from(u16::try_from(row)?);
    }
    Ok(places.into_iter().flat_map(u32::to_le_bytes).collect())
}
