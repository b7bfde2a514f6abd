//! Sentence embeddings inside the binary.
mod packed;
mod piece_hash;
mod pieces;
mod vector;
mod words;

pub use packed::{DIMS, embed};
pub use pieces::{PIECES_MAX, TEXT_BYTES_MAX};
pub use vector::Vector;
