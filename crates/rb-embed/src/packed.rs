//! The embedder inside the binary: one vector per piece of the vocabulary, a text is their mean.
//!
//! **What it is.** 30,522 pieces by 256 dimensions, eight bits each and one scale per row, distilled
//! from all-MiniLM-L6-v2 (see `NOTICE`). No start-up work, no allocation but the answer.
//!
//! **What it is good for.** Telling a reworded text from an unrelated one.
//!
//! **What it cannot do.** It does not read order ("a before b" is "b before a"), negation weighs
//! no more than any other word, and *same* is barely told from *related*: "session timeout" is as
//! near to "request timeout" as to "session expiry". Decide nothing on one cosine alone.

use std::hint::black_box;
use std::sync::LazyLock;

use fearless_simd::{Level, dispatch};

use crate::pieces::Pieces;
use crate::record;
use crate::vector::Vector;
use crate::vocabulary::vector;

/// Dimensions of the packed vectors.
pub const DIMS: usize = record::DIMS;

/// The direction of `text`: the mean of its pieces' vectors, at unit length.
///
/// Zero when no word is known. Reads at most [`PIECES_MAX`](crate::PIECES_MAX) pieces and
/// [`TEXT_BYTES_MAX`](crate::TEXT_BYTES_MAX) bytes.
pub fn embed(text: &str) -> Vector {
    let pieces = Pieces::of(text);
    let rows = pieces.rows();
    touch(rows);
    // The mean and the sum point the same way. What differs between processors is how many numbers are added at a time;
    // each sum is made in the order of the text, with the same bits everywhere.
    Vector::from_values(dispatch!(*LEVEL, _simd => sums_of(rows)))
}

/// What this processor can do.
static LEVEL: LazyLock<Level> = LazyLock::new(Level::new);

/// Looks at every part of every row. Memory is asked for many of them at a time, as it is not while they are added up.
fn touch(rows: &[u16]) {
    const LINE: usize = 64;
    for row in rows {
        let (bytes, _) = vector(*row);
        black_box(bytes.iter().step_by(LINE).fold(bytes[DIMS - 1], |all, byte| all ^ byte));
    }
}

/// Dimensions that are added up together: so many sums stay in registers while all rows go by.
const BLOCK: usize = 32;

#[expect(
    clippy::inline_always,
    reason = "only what is inlined into the choice of the processor is made for it"
)]
#[inline(always)]
fn sums_of(rows: &[u16]) -> [f32; DIMS] {
    let mut all = [0.0_f32; DIMS];
    for (block, place) in all.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
        // Its own array until it is done: the sums of `all` were kept in memory in some builds.
        let mut sums = [0.0_f32; BLOCK];
        for row in rows {
            let (bytes, scale) = vector(*row);
            let bytes = &bytes.as_chunks::<BLOCK>().0[block];
            for (sum, byte) in sums.iter_mut().zip(bytes) {
                *sum += f32::from(byte.cast_signed()) * scale;
            }
        }
        *place = sums;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures the vectors were delivered with.
    #[test]
    fn cosines_are_those_the_vectors_were_delivered_with() {
        for (a, b, expected) in [
            ("session timeout", "session expiry", 0.65),
            ("session timeout", "session token expiration", 0.57),
            ("session expiry", "session token expiration", 0.76),
            ("session timeout", "database connection pool size", 0.18),
            ("session timeout", "request timeout", 0.67),
        ] {
            let cosine = embed(a).cosine(&embed(b));
            assert!((cosine - expected).abs() < 0.01, "{a} / {b}: {cosine:.3}, not {expected}");
        }
    }

    #[test]
    fn a_text_without_known_words_is_zero() {
        for text in ["", " \n\t", "\u{1f600}", "\u{10a0}"] {
            assert!(embed(text).is_zero(), "{text:?}");
        }
    }

    #[test]
    fn spelling_of_names_does_not_matter() {
        let plain = embed("max retry count");
        for name in ["maxRetryCount", "max_retry_count", "MAX_RETRY_COUNT", "Max  retry\ncount"] {
            assert_eq!(embed(name), plain, "{name}");
        }
    }
}
