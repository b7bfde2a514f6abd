//! Embedding vectors and the interface of embedders.
//!
//! The engine contains no vocabulary. A host passes an `Embedder`; the fallback `TrigramEmbedder` compares
//! spellings, which detects repetitions but no rewording.

use std::fmt;

use crate::analysis::text::is_word;

/// Dimensions of a vector.
pub const DIMS: usize = 256;

/// A unit vector, or the zero vector of an empty text.
#[derive(Clone, PartialEq)]
pub struct Vector(Box<[f32; DIMS]>);

impl fmt::Debug for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vector({:.3}, {:.3}, …)", self.0[0], self.0[1])
    }
}

impl Vector {
    /// Returns the zero vector.
    pub fn zero() -> Self {
        Self(Box::new([0.0; DIMS]))
    }

    /// Normalises the values to a unit vector; missing values are zero, surplus ones are dropped.
    pub fn of(values: &[f32]) -> Self {
        let mut vector = Self::zero();
        for (mine, given) in vector.0.iter_mut().zip(values) {
            *mine = if given.is_finite() { *given } else { 0.0 };
        }
        vector.normalise();
        vector
    }

    fn normalise(&mut self) {
        let length = self.dot(self).sqrt();
        if length > 0.0 {
            self.0.iter_mut().for_each(|value| *value /= length);
        }
    }

    /// Sixteen independent sums, which the compiler vectorises.
    fn dot(&self, other: &Self) -> f32 {
        const LANES: usize = 16;
        let (mine, others) = (self.0.as_chunks::<LANES>().0, other.0.as_chunks::<LANES>().0);
        let mut sums = [0.0_f32; LANES];
        for (mine, others) in mine.iter().zip(others) {
            for (sum, (a, b)) in sums.iter_mut().zip(mine.iter().zip(others)) {
                *sum += a * b;
            }
        }
        sums.into_iter().sum()
    }

    /// Returns the cosine, from 0 to 1. The cosine with the zero vector is 0.
    pub fn cosine(&self, other: &Self) -> f64 {
        f64::from(self.dot(other)).clamp(0.0, 1.0)
    }

    /// Returns the highest cosine with one of several vectors; 0 without any.
    pub(crate) fn closest<'v>(&self, others: impl Iterator<Item = &'v Self>) -> f64 {
        others.map(|other| self.cosine(other)).fold(0.0, f64::max)
    }

    /// Moves the vector towards another by a share of the distance. The zero vector takes the other value.
    pub(crate) fn lerp(&mut self, other: &Self, share: f32) {
        let share = if self.is_zero() { 1.0 } else { share };
        for (mine, given) in self.0.iter_mut().zip(other.0.iter()) {
            *mine += share * (given - *mine);
        }
        self.normalise();
    }

    /// Reports whether this is the zero vector.
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|value| *value == 0.0)
    }
}

/// Converts texts to vectors. The same text must always give the same vector.
pub trait Embedder: Send + Sync {
    /// Embeds a short text.
    fn embed(&self, text: &str) -> Vector;

    /// Returns whether two short texts with similar vectors ask for the same thing, according to a second, more precise
    /// model. `None` without such a model. May be slow: it is called only when an alarm depends on it.
    fn second_opinion(&self, _a: &str, _b: &str) -> Option<bool> {
        None
    }
}

impl<F: Fn(&str) -> Vector + Send + Sync> Embedder for F {
    fn embed(&self, text: &str) -> Vector {
        self(text)
    }
}

/// Compares spellings: a text is the sum of the trigrams of its words.
#[derive(Debug, Clone, Copy, Default)]
pub struct TrigramEmbedder;

impl Embedder for TrigramEmbedder {
    fn embed(&self, text: &str) -> Vector {
        let mut vector = Vector::zero();
        let mut window = [' '; 3];
        for c in text.chars().map(|c| if is_word(c) { c.to_ascii_lowercase() } else { ' ' }) {
            window.rotate_left(1);
            window[2] = c;
            if window[1] != ' ' {
                let piece = window
                    .iter()
                    .fold(0_u32, |piece, c| piece.wrapping_mul(0x0100_0193) ^ u32::from(*c));
                let mixed = piece.wrapping_mul(0x9e37_79b9) >> 24;
                vector.0[mixed as usize % DIMS] += 1.0;
            }
        }
        vector.normalise();
        vector
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_spellings_have_a_high_cosine() {
        let like = |a: &str, b: &str| TrigramEmbedder.embed(a).cosine(&TrigramEmbedder.embed(b));
        assert!(like("session timeout", "Session  timeouts") > 0.9);
        assert!(like("session timeout", "paint a fence") < 0.3);
        assert!(like("", "x") == 0.0 && TrigramEmbedder.embed(" ").is_zero());
    }

    #[test]
    fn the_closest_equals_the_maximum_of_single_cosines() {
        let texts =
            ["session timeout", "the parser", "session token", "x", "timeouts of a session", ""];
        let of: Vec<Vector> = texts.iter().map(|text| TrigramEmbedder.embed(text)).collect();
        let mine = TrigramEmbedder.embed("a timeout of the session");
        for count in 0..=of.len() {
            let alone = of[..count].iter().map(|other| other.cosine(&mine)).fold(0.0, f64::max);
            assert_eq!(mine.closest(of[..count].iter()).to_bits(), alone.to_bits(), "{count}");
        }
    }

    #[test]
    fn lerp_keeps_unit_length() {
        let (north, east) = (Vector::of(&[1.0]), Vector::of(&[0.0, 1.0]));
        let mut way = Vector::zero();
        way.lerp(&north, 0.1);
        assert!((way.cosine(&north) - 1.0).abs() < 1e-5);
        way.lerp(&east, 0.1);
        assert!(way.cosine(&north) > 0.9 && way.cosine(&east) > 0.1);
        assert!((way.cosine(&way) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn vectors_accept_any_values() {
        assert!(Vector::of(&[f32::NAN, f32::INFINITY]).is_zero());
        let one = Vector::of(&[3.0; 1_000]);
        assert!((one.cosine(&one) - 1.0).abs() < 1e-5);
    }
}
