//! Vectors of one owner, searched by an exact scan.
//!
//! `cargo bench -p rb-embed` prints the cost of a scan.

use std::collections::BTreeMap;

use crate::quantized::{QuantizedMatrix, Query};
use crate::vector::Vector;

/// Matrix of one owner's vectors, with the id of each row.
#[derive(Clone, Debug)]
pub(crate) struct Partition<Id> {
    matrix: QuantizedMatrix,
    /// Id of each row.
    ids: Vec<Id>,
    /// Row of each id.
    rows: BTreeMap<Id, usize>,
}

impl<Id: Ord + Clone> Partition<Id> {
    pub(crate) fn new(dims: usize) -> Self {
        Self { matrix: QuantizedMatrix::new(dims), ids: Vec::new(), rows: BTreeMap::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Adds a vector, or replaces the vector with this id.
    pub(crate) fn insert(&mut self, id: Id, vector: &Vector) {
        if let Some(row) = self.rows.get(&id) {
            self.matrix.replace(*row, vector);
        } else {
            self.rows.insert(id.clone(), self.ids.len());
            self.matrix.push(vector);
            self.ids.push(id);
        }
    }

    /// Removes a vector and returns whether it existed. The last row takes its index.
    pub(crate) fn remove(&mut self, id: &Id) -> bool {
        let Some(row) = self.rows.remove(id) else { return false };
        self.matrix.swap_remove(row);
        self.ids.swap_remove(row);
        if let Some(moved) = self.ids.get(row) {
            self.rows.insert(moved.clone(), row);
        }
        true
    }

    /// Returns every id with its cosine, unordered.
    pub(crate) fn scan(&self, query: &Query) -> impl Iterator<Item = (&Id, f32)> {
        self.ids.iter().zip(self.matrix.cosines(query))
    }
}
