//! Matrix of vectors quantised to one byte per dimension, and their cosines with a query.
//!
//! Each row is scaled so that its largest absolute value becomes 127. The query is quantised in the same way and widened
//! to 16 bits once, so the inner loop is integer arithmetic that the compiler vectorises. Quantisation changes a cosine
//! by less than 0.01.

use crate::static_model::DIMS;
use crate::vector::Vector;

/// Quantised rows in one contiguous buffer, with the inverse norm of each.
#[derive(Clone, Debug)]
pub(crate) struct QuantizedMatrix {
    dims: usize,
    values: Vec<i8>,
    inv_norms: Vec<f32>,
}

impl QuantizedMatrix {
    pub(crate) fn new(dims: usize) -> Self {
        Self { dims, values: Vec::new(), inv_norms: Vec::new() }
    }

    pub(crate) fn push(&mut self, vector: &Vector) {
        let row = quantize(vector);
        self.inv_norms.push(inv_norm(&row));
        self.values.extend(row);
    }

    pub(crate) fn replace(&mut self, index: usize, vector: &Vector) {
        let row = quantize(vector);
        self.inv_norms[index] = inv_norm(&row);
        let start = index * self.dims;
        self.values[start..start + self.dims].copy_from_slice(&row);
    }

    /// Removes a row; the last row takes its index.
    pub(crate) fn swap_remove(&mut self, index: usize) {
        self.inv_norms.swap_remove(index);
        let last_start = self.values.len() - self.dims;
        self.values.copy_within(last_start.., index * self.dims);
        self.values.truncate(last_start);
    }

    /// Returns the cosine of each row with the query, in row order.
    pub(crate) fn cosines(&self, query: &Query) -> impl Iterator<Item = f32> {
        let rows = self.values.chunks_exact(self.dims.max(1));
        rows.zip(&self.inv_norms).map(|(row, inv_norm)| query.cosine(row, *inv_norm))
    }
}

/// Query vector, quantised and widened to 16 bits.
pub(crate) struct Query {
    values: Vec<i16>,
    inv_norm: f32,
}

impl Query {
    pub(crate) fn new(vector: &Vector) -> Self {
        let row = quantize(vector);
        Self { inv_norm: inv_norm(&row), values: row.into_iter().map(i16::from).collect() }
    }

    fn cosine(&self, row: &[i8], row_inv_norm: f32) -> f32 {
        to_f32(dot(&self.values, row)) * (self.inv_norm * row_inv_norm)
    }
}

/// Scales the vector so that its largest absolute value is 127, and rounds.
#[expect(clippy::cast_possible_truncation, reason = "the quotient is within -1..=1")]
fn quantize(vector: &Vector) -> Vec<i8> {
    let largest = vector.values().iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    if largest == 0.0 {
        return vec![0; vector.dims()];
    }
    vector.values().iter().map(|value| (value / largest * 127.0).round() as i8).collect()
}

/// Returns the inverse of the row's Euclidean norm, or 0 for the zero row, whose cosine with every query is then 0.
fn inv_norm(row: &[i8]) -> f32 {
    let squares: i32 = row.iter().map(|value| i32::from(*value).pow(2)).sum();
    if squares == 0 { 0.0 } else { to_f32(squares).sqrt().recip() }
}

/// Dot product, specialised for the static model's dimension so that the loop is unrolled.
#[inline]
fn dot(query: &[i16], row: &[i8]) -> i32 {
    match (<&[i16; DIMS]>::try_from(query), <&[i8; DIMS]>::try_from(row)) {
        (Ok(query), Ok(row)) => dot_any_length(query, row),
        _ => dot_any_length(query, row),
    }
}

/// Dot product in sixteen independent sums. Integer addition is associative, so the result equals that of a single sum;
/// written this way the compiler multiplies eight pairs per instruction (three times faster).
///
/// Must be inlined: otherwise `dot` loses the unrolling, which costs a quarter of the speed.
#[inline(always)]
fn dot_any_length(query: &[i16], row: &[i8]) -> i32 {
    const LANES: usize = 16;
    let (query, query_rest) = query.as_chunks::<LANES>();
    let (row, row_rest) = row.as_chunks::<LANES>();
    let mut sums = [0_i32; LANES];
    for (a, b) in query.iter().zip(row) {
        for lane in 0..LANES {
            sums[lane] += i32::from(a[lane]) * i32::from(b[lane]);
        }
    }
    let rest = query_rest.iter().zip(row_rest).map(|(a, b)| i32::from(*a) * i32::from(*b));
    sums.into_iter().chain(rest).sum()
}

#[expect(clippy::cast_precision_loss, reason = "rounding a sum of byte products is acceptable")]
fn to_f32(sum: i32) -> f32 {
    sum as f32
}
