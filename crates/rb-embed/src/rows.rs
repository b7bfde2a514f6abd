//! Rows of eight bits, and how near a query is to them.
//!
//! A row is a vector rounded so that its largest value becomes 127; rows lie one after the other. A query is rounded the
//! same way and widened to sixteen bits once; the inner loop is integer arithmetic the compiler vectorises. Rounding
//! moves a cosine by less than 0.01.

use crate::packed::DIMS;
use crate::vector::Vector;

/// Rows end to end, and one over the length of each, so that a vector's cosine with itself stays 1.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    dims: usize,
    bytes: Vec<i8>,
    shrinks: Vec<f32>,
}

impl Rows {
    pub(crate) fn new(dims: usize) -> Self {
        Self { dims, bytes: Vec::new(), shrinks: Vec::new() }
    }

    pub(crate) fn dims(&self) -> usize {
        self.dims
    }

    pub(crate) fn push(&mut self, row: &[i8], shrink: f32) {
        // Doubling would leave a third of a large group's memory empty.
        if self.bytes.capacity() - self.bytes.len() < row.len() {
            self.bytes.reserve_exact((self.bytes.len() / 8).max(row.len()));
        }
        self.bytes.extend(row);
        self.shrinks.push(shrink);
    }

    pub(crate) fn replace(&mut self, place: usize, row: &[i8], shrink: f32) {
        let start = place * self.dims;
        self.bytes[start..start + self.dims].copy_from_slice(row);
        self.shrinks[place] = shrink;
    }

    /// The last row moves into the gap.
    pub(crate) fn swap_remove(&mut self, place: usize) {
        self.shrinks.swap_remove(place);
        let last_start = self.bytes.len() - self.dims;
        self.bytes.copy_within(last_start.., place * self.dims);
        self.bytes.truncate(last_start);
    }

    pub(crate) fn cosine(&self, place: usize, query: &Query) -> f32 {
        let start = place * self.dims;
        query.cosine(&self.bytes[start..start + self.dims], self.shrinks[place])
    }

    /// The cosines of all rows, in their order.
    pub(crate) fn cosines(&self, query: &Query) -> impl Iterator<Item = f32> {
        let rows = self.bytes.chunks_exact(self.dims.max(1));
        rows.zip(&self.shrinks).map(|(row, shrink)| query.cosine(row, *shrink))
    }
}

/// A query, rounded as the rows are and widened, which halves the unpacking per row.
pub(crate) struct Query {
    row: Vec<i8>,
    wide: Vec<i16>,
    shrink: f32,
}

impl Query {
    pub(crate) fn new(vector: &Vector) -> Self {
        let row = rounded(vector);
        let wide = row.iter().copied().map(i16::from).collect();
        Self { shrink: shrink_of(&row), wide, row }
    }

    /// As rows lie.
    pub(crate) fn row(&self) -> &[i8] {
        &self.row
    }

    fn cosine(&self, row: &[i8], row_shrink: f32) -> f32 {
        to_f32(dot(&self.wide, row)) * (self.shrink * row_shrink)
    }
}

/// Eight bits per dimension; the largest value becomes 127.
#[expect(clippy::cast_possible_truncation, reason = "a value over the largest is within -1..=1")]
pub(crate) fn rounded(vector: &Vector) -> Vec<i8> {
    let largest = vector.values().iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    if largest == 0.0 {
        return vec![0; vector.dims()];
    }
    vector.values().iter().map(|value| (value / largest * 127.0).round() as i8).collect()
}

/// One over the length; 0 for the zero row, which then is at cosine 0 from everything.
pub(crate) fn shrink_of(row: &[i8]) -> f32 {
    let squares: i32 = row.iter().map(|value| i32::from(*value).pow(2)).sum();
    if squares == 0 { 0.0 } else { to_f32(squares).sqrt().recip() }
}

/// A known length is unrolled, and the packed vectors are the usual guests.
#[inline]
fn dot(query: &[i16], row: &[i8]) -> i32 {
    match (<&[i16; DIMS]>::try_from(query), <&[i8; DIMS]>::try_from(row)) {
        (Ok(query), Ok(row)) => dot_of_any_length(query, row),
        _ => dot_of_any_length(query, row),
    }
}

/// Sixteen sums side by side. Integer sums are exact in any order, so one sum would do; written
/// this way the compiler multiplies eight pairs per instruction, three times as fast.
/// Always inlined, or the unrolling above is lost: a quarter of the speed, measured.
#[inline(always)]
fn dot_of_any_length(query: &[i16], row: &[i8]) -> i32 {
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

#[expect(clippy::cast_precision_loss, reason = "the last bits of a sum of products of bytes")]
fn to_f32(sum: i32) -> f32 {
    sum as f32
}
