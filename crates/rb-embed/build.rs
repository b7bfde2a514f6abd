//! Builds the hash table of the vocabulary at compile time, so that the program needs no initialisation.
//!
//! Reads `assets/vocab.txt` and writes `vocab_table.u64` into `OUT_DIR`.

use std::{env, error::Error, fs, path::PathBuf};

#[path = "src/vocab_hash.rs"]
mod vocab_hash;

use vocab_hash::{EMPTY, Position, TABLE_SLOTS, VocabHash};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=assets/vocab.txt");
    println!("cargo::rerun-if-changed=src/vocab_hash.rs");
    let vocabulary = fs::read_to_string("assets/vocab.txt")?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("vocab_table.u64"), hash_table(&vocabulary)?)?;
    Ok(())
}

/// Returns the open-addressing table (linear probing) in little-endian bytes.
fn hash_table(vocabulary: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut table = vec![EMPTY; TABLE_SLOTS];
    for (row, line) in vocabulary.lines().enumerate() {
        let (position, spelling) = match line.strip_prefix("##") {
            Some(spelling) if !spelling.is_empty() => (Position::Continuation, spelling),
            _ => (Position::Start, line),
        };
        let hash = spelling.bytes().fold(VocabHash::new(position), VocabHash::with);
        let mut slot = hash.slot();
        while table[slot] != EMPTY {
            slot = (slot + 1) % TABLE_SLOTS;
        }
        table[slot] = hash.entry(u16::try_from(row)?);
    }
    Ok(table.into_iter().flat_map(u64::to_le_bytes).collect())
}
