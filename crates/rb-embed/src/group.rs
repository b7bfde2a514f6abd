//! One owner's vectors.
//!
//! **Few** are compared one by one. **Many** are looked at twice: first by the signs of their dimensions alone, an eighth
//! of the bytes and no multiplication; then those that agree in most signs are compared exactly. The more two vectors
//! point the same way, the more signs they share, whatever they are about. So this needs no training, nothing is moved when
//! a vector comes or goes, and the order of insertion never shows.
//!
//! `cargo bench -p rb-embed` prints the figures, and `docs/decisions/0061-vectors-by-their-signs.md` what else was tried.

use std::collections::BTreeMap;

use crate::rows::{Query, Rows, rounded, shrink_of};
use crate::vector::Vector;

/// Up to so many rows all are compared: nothing is missed, and a scan still takes only milliseconds.
pub(crate) const EXACT_ROWS_MAX: usize = 100_000;
/// Of more rows, so many that share the most signs are compared, and more where they share as many.
const LIKELY_ROWS: usize = 1_024;
/// And so many for each that is wanted.
const LIKELY_ROWS_EACH: usize = 32;
/// Signs in a word.
const WORD: usize = 64;

/// Rows end to end, and beside them what belongs to each.
#[derive(Clone, Debug)]
pub(crate) struct Group<Id> {
    rows: Rows,
    /// The signs of each row, in as many words as it takes.
    signs: Vec<u64>,
    ids: Vec<Id>,
    places: BTreeMap<Id, usize>,
}

impl<Id: Ord + Clone> Group<Id> {
    pub(crate) fn new(dims: usize) -> Self {
        Self { rows: Rows::new(dims), signs: Vec::new(), ids: Vec::new(), places: BTreeMap::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Adds a vector, or replaces the one under this id.
    pub(crate) fn insert(&mut self, id: Id, vector: &Vector) {
        let row = rounded(vector);
        let shrink = shrink_of(&row);
        if let Some(place) = self.places.get(&id).copied() {
            self.rows.replace(place, &row, shrink);
            for (word, new) in self.signs_of(place).zip(signs(&row)) {
                self.signs[word] = new;
            }
        } else {
            self.places.insert(id.clone(), self.ids.len());
            self.signs.extend(signs(&row));
            self.rows.push(&row, shrink);
            self.ids.push(id);
        }
    }

    /// Says whether there was such a vector. The last one moves into the gap.
    pub(crate) fn remove(&mut self, id: &Id) -> bool {
        let Some(place) = self.places.remove(id) else { return false };
        let last = self.signs_of(self.ids.len() - 1);
        let gap = self.signs_of(place).start;
        let end = last.start;
        self.signs.copy_within(last, gap);
        self.signs.truncate(end);
        self.rows.swap_remove(place);
        self.ids.swap_remove(place);
        if let Some(moved) = self.ids.get(place) {
            self.places.insert(moved.clone(), place);
        }
        true
    }

    /// Shows what may be among the `count_max` nearest, each with its exact cosine, in no order.
    pub(crate) fn look_through<'a>(
        &'a self,
        query: &Query,
        count_max: usize,
        mut see: impl FnMut(&'a Id, f32),
    ) {
        if self.len() <= EXACT_ROWS_MAX {
            for (id, cosine) in self.ids.iter().zip(self.rows.cosines(query)) {
                see(id, cosine);
            }
            return;
        }
        let likely = LIKELY_ROWS.max(count_max.saturating_mul(LIKELY_ROWS_EACH));
        for place in self.likely(&signs(query.row()), likely) {
            see(&self.ids[place], self.rows.cosine(place, query));
        }
    }

    /// The places of at least so many rows, if there are as many: those that differ in the fewest signs.
    fn likely(&self, query: &[u64], count: usize) -> Vec<usize> {
        // A known length is unrolled.
        let differing: Vec<u16> = if let Ok(query) = <&[u64; 4]>::try_from(query) {
            self.signs.as_chunks().0.iter().map(|row| apart(row, query)).collect()
        } else {
            let rows = self.signs.chunks_exact(query.len().max(1));
            rows.map(|row| apart(row, query)).collect()
        };
        let mut having = vec![0_usize; 1 + WORD * query.len()];
        for signs in &differing {
            having[usize::from(*signs)] += 1;
        }
        let mut reached = 0;
        let enough = having.iter().position(|rows| {
            reached += rows;
            reached >= count
        });
        let most = enough.unwrap_or(having.len());
        let near = differing.iter().enumerate().filter(|(_, signs)| usize::from(**signs) <= most);
        near.map(|(place, _)| place).collect()
    }

    /// Where the signs of a row are.
    fn signs_of(&self, place: usize) -> std::ops::Range<usize> {
        let words = self.rows.dims().div_ceil(WORD);
        place * words..(place + 1) * words
    }
}

/// In how many signs two rows differ.
#[inline]
fn apart<Words: AsRef<[u64]> + ?Sized>(row: &Words, query: &Words) -> u16 {
    let differing: u32 =
        row.as_ref().iter().zip(query.as_ref()).map(|(a, b)| (a ^ b).count_ones()).sum();
    u16::try_from(differing).unwrap_or(u16::MAX)
}

/// One bit a dimension: whether it is positive.
fn signs(row: &[i8]) -> Vec<u64> {
    let word = |some: &[i8]| {
        some.iter().enumerate().fold(0, |word, (at, value)| word | u64::from(*value > 0) << at)
    };
    row.chunks(WORD).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::{DIMS, embed};

    /// More than are compared one by one.
    fn large() -> Group<usize> {
        let mut group = Group::new(DIMS);
        for id in 0..=EXACT_ROWS_MAX {
            group.insert(id, &embed(&format!("file {id} of folder {}", id % 97)));
        }
        group
    }

    fn nearest(group: &Group<usize>, text: &str) -> (usize, f32) {
        let mut best = (usize::MAX, -2.0);
        group.look_through(&Query::new(&embed(text)), 1, |id, cosine| {
            if cosine > best.1 {
                best = (*id, cosine);
            }
        });
        best
    }

    #[test]
    fn among_many_only_the_likely_are_compared() {
        let mut compared = 0;
        large().look_through(&Query::new(&embed("session expiry")), 2, |_, _| compared += 1);
        assert!((LIKELY_ROWS..EXACT_ROWS_MAX / 2).contains(&compared), "{compared}");
    }

    #[test]
    fn one_of_many_is_replaced_and_removed() {
        let mut group = large();
        group.insert(7, &embed("session token expiration"));
        assert_eq!(group.len(), EXACT_ROWS_MAX + 1);
        assert_eq!(nearest(&group, "session token expiration").0, 7);
        // The last one moves into a gap and is found there, by its signs too.
        let text = "a text that was never said before";
        group.insert(EXACT_ROWS_MAX + 1, &embed(text));
        assert!(group.remove(&3));
        assert_eq!(nearest(&group, text).0, EXACT_ROWS_MAX + 1);
        assert!(group.remove(&7) && !group.remove(&7));
        assert!(nearest(&group, "session token expiration").1 < 0.9);
    }

    #[test]
    fn any_number_of_dimensions_has_its_signs() {
        for dims in [1, 63, 64, 65, 256, 384] {
            let mut group = Group::new(dims);
            for id in 0..=EXACT_ROWS_MAX {
                let mut values = vec![-1.0; dims];
                values[id % dims] = 1.0;
                group.insert(id, &Vector::from_values(values));
            }
            let mut values = vec![-1.0; dims];
            values[dims - 1] = 1.0;
            let mut best = -2.0_f32;
            let query = Query::new(&Vector::from_values(values));
            group.look_through(&query, 1, |_, cosine| best = best.max(cosine));
            assert!((best - 1.0).abs() < 1e-5, "{dims} dimensions: {best}");
        }
    }
}
