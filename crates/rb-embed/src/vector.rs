//! Unit vector, the result type of all embedders.

use std::fmt;

/// Unit vector, or the zero vector of a text without known words.
///
/// The constructor normalises, so a cosine is a dot product.
#[derive(Clone, PartialEq)]
pub struct Vector(Box<[f32]>);

impl Vector {
    /// Normalises `values` to unit length. Gives the zero vector if they are all zero or not finite.
    pub fn from_values(values: impl Into<Box<[f32]>>) -> Self {
        let mut values = values.into();
        let length = dot(&values, &values).sqrt();
        if length.is_normal() {
            let inv_norm = length.recip();
            values.iter_mut().for_each(|value| *value *= inv_norm);
        } else {
            values.fill(0.0);
        }
        Self(values)
    }

    /// Returns the cosine similarity, from -1 to 1. The cosine with the zero vector is 0.
    ///
    /// Vectors of different embedders are not comparable; if their dimensions differ, the result is 0.
    pub fn cosine(&self, other: &Self) -> f32 {
        if self.dims() != other.dims() {
            return 0.0;
        }
        dot(&self.0, &other.0).clamp(-1.0, 1.0)
    }

    /// Returns whether the embedder knew no word of the text.
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
    /// Prints only the first four of hundreds of values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vector({} dims, {:.3?}…)", self.dims(), &self.0[..self.dims().min(4)])
    }
}

/// Dot product in sixteen independent sums: the compiler may not reorder float additions, so the code is written in
/// the order that vectorises.
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
    fn values_are_normalised() {
        let short = Vector::from_values([3.0, 4.0]);
        let long = Vector::from_values([300.0, 400.0]);
        assert_eq!(short.values(), [0.6, 0.8]);
        assert!((short.cosine(&long) - 1.0).abs() < 1e-6);
        assert!((short.cosine(&Vector::from_values([-3.0, -4.0])) + 1.0).abs() < 1e-6);
    }

    #[test]
    fn values_that_cannot_be_normalised_give_zero() {
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
