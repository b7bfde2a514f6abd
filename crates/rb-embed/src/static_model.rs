//! Static embedding model compiled into the binary: the embedding of a text is the mean of its word-piece vectors.
//!
//! **Data.** 30,522 pieces with 256 dimensions, one byte per value and one scale per row, distilled from
//! all-MiniLM-L6-v2 (see `NOTICE`). The model needs no initialisation and allocates only the result.
//!
//! **Strength.** It separates rephrased texts from unrelated ones.
//!
//! **Limits.** Word order is ignored ("a before b" equals "b before a"), a negation weighs no more than any other word,
//! and *same* is hardly separated from *related*: "session timeout" is as close to "request timeout" as to "session
//! expiry". Do not base a decision on one cosine alone.

use std::sync::LazyLock;

use fearless_simd::{Level, dispatch};

use crate::vector::Vector;
use crate::vocabulary::{self, vector};
use crate::wordpiece::Pieces;

/// Dimensions of the static model's vectors.
pub const DIMS: usize = vocabulary::DIMS;

/// Returns the embedding of `text`: the mean of its pieces' vectors, normalised to unit length.
///
/// Returns the zero vector if no word is known. Reads at most [`MAX_PIECES`](crate::MAX_PIECES) pieces and
/// [`MAX_TEXT_BYTES`](crate::MAX_TEXT_BYTES) bytes.
pub fn embed(text: &str) -> Vector {
    let pieces = Pieces::of(text);
    let rows = pieces.rows();
    // `from_values` normalises, so the sum is as good as the mean. Each dimension is summed in the order of the text:
    // the SIMD level changes how many dimensions are added at a time, never the bits of the result.
    Vector::from_values(dispatch!(*LEVEL, _simd => sum_vectors(rows)))
}

/// SIMD level of this processor.
static LEVEL: LazyLock<Level> = LazyLock::new(Level::new);

/// Number of dimensions summed together: small enough that the sums stay in registers while all rows are read.
const BLOCK: usize = 32;

#[expect(
    clippy::inline_always,
    reason = "only code inlined into `dispatch!` is compiled for the selected SIMD level"
)]
#[inline(always)]
fn sum_vectors(rows: &[u16]) -> [f32; DIMS] {
    let mut all = [0.0_f32; DIMS];
    for (block, block_sums) in all.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
        // A local array, because some builds kept the sums of `all` in memory instead of registers.
        let mut sums = [0.0_f32; BLOCK];
        for row in rows {
            let (bytes, scale) = vector(*row);
            let bytes = &bytes.as_chunks::<BLOCK>().0[block];
            for (sum, byte) in sums.iter_mut().zip(bytes) {
                *sum += f32::from(byte.cast_signed()) * scale;
            }
        }
        *block_sums = sums;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference values published with the vectors.
    #[test]
    fn cosines_match_the_published_values() {
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
    fn identifier_spelling_does_not_matter() {
        let plain = embed("max retry count");
        for name in ["maxRetryCount", "max_retry_count", "MAX_RETRY_COUNT", "Max  retry\ncount"] {
            assert_eq!(embed(name), plain, "{name}");
        }
    }
}
