//! A direction in meaning: the one type all embedders return.

use std::fmt;

/// A unit vector, or the zero vector of a text that says nothing.
///
/// The constructor normalises, so a cosine is a dot product and no other length is ever seen.
#[derive(Clone, PartialEq)]
pub struct Vector(Box<[f32]>);

impl Vector {
    /// Takes the direction of `values`. Without one (all zero, or not finite) it is the zero vector.
    pub fn from_values(values: impl Into<Box<[f32]>>) -> Self {
        let mut values = values.into();
        let length = dot(&values, &values).sqrt();
        if length.is_normal() {
            let shrink = length.recip();
            values.iter_mut().for_each(|value| *value *= shrink);
        } else {
            values.fill(0.0);
        }
        Self(values)
    }

    /// How alike two directions are, from -1 to 1. The zero vector is like nothing: 0.
    ///
    /// Vectors of different embedders have nothing to say about each other; when the number of
    /// dimensions shows it, the answer is 0.
    pub fn cosine(&self, other: &Self) -> f32 {
        if self.dims() != other.dims() {
            return 0.0;
        }
        dot(&self.0, &other.0).clamp(-1.0, 1.0)
    }

    /// The text had no word the embedder knows.
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|value| *value == 0.0)
    }

    pub fn dims(&self) -> usize {
        self.0.len()
    }

    pub fn values(&self) -> &[f32] {
        &self.0
    }
}

impl fmt::Debug for Vector {
    /// Hundreds of numbers help nobody: the first four tell two vectors apart.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vector({} dims, {:.3?}…)", self.dims(), &self.0[..self.dims().min(4)])
    }
}

/// Sixteen sums side by side: floats may not be reordered by the compiler, so we order them in the
/// way its vector registers like.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0_f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_direction_is_kept() {
        let short = Vector::from_values([3.0, 4.0]);
        let long = Vector::from_values([300.0, 400.0]);
        assert_eq!(short.values(), [0.6, 0.8]);
        assert!((short.cosine(&long) - 1.0).abs() < 1e-6);
        assert!((short.cosine(&Vector::from_values([-3.0, -4.0])) + 1.0).abs() < 1e-6);
    }

    #[test]
    fn what_has_no_direction_is_zero() {
        for values in [[0.0, 0.0], [f32::NAN, 1.0], [f32::INFINITY, 1.0], [f32::MAX, f32::MAX]] {
            let vector = Vector::from_values(values);
            assert!(vector.is_zero(), "{values:?}");
            assert_eq!(vector.cosine(&vector).to_bits(), 0.0_f32.to_bits());
        }
    }

    #[test]
    fn vectors_of_different_embedders_are_not_compared() {
        let two = Vector::from_values([1.0, 0.0]);
        let three = Vector::from_values([1.0, 0.0, 0.0]);
        assert_eq!(two.cosine(&three).to_bits(), 0.0_f32.to_bits());
    }

    #[test]
    fn debug_output_is_one_short_line() {
        let shown = format!("{:?}", Vector::from_values(vec![1.0; 256]));
        assert_eq!(shown, "Vector(256 dims, [0.062, 0.062, 0.062, 0.062]…)");
    }
}
