//! Exact vector search, grouped by who owns the vectors.
//!
//! **Why no index.** An organisation asks within its own vectors and the shared ones. Grouped that
//! way a scan reads a hundredth of the whole, and a graph index behind a filter is slower and
//! inexact besides. `cargo bench -p rb-embed` prints the figures.
//!
//! **How.** Rows are rounded to eight bits and lie one after the other; a query is widened to
//! sixteen bits once; the inner loop is integer arithmetic the compiler vectorises. Rounding moves
//! a cosine by less than 0.01.
//!
//! **Order.** Best first; equal scores by owner (shared first), then by id. The order of insertion
//! never shows.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::packed::DIMS;
use crate::vector::Vector;

/// Whose vector it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner<Org> {
    /// Everybody finds it.
    Shared,
    /// Only this organisation finds it.
    Org(Org),
}

/// How many to find, and how near they must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    pub count_max: usize,
    /// Smallest cosine that counts; see [`Calibration::cosine_at`](crate::Calibration::cosine_at)
    /// for a gate given as a similarity.
    pub cosine_min: f32,
}

/// One vector found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit<'index, Org, Id> {
    pub owner: &'index Owner<Org>,
    pub id: &'index Id,
    pub cosine: f32,
}

/// The vector has another number of dimensions than the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a vector of {given} dimensions was given to an index of {expected}: \
     an index holds the vectors of one embedder, build a new one after changing it"
)]
pub struct WrongDims {
    pub given: usize,
    pub expected: usize,
}

/// Vectors by owner and id. An id is unique within its owner, so no organisation can reach
/// another's vector by guessing its id.
#[derive(Clone, Debug)]
pub struct Index<Org, Id> {
    dims: usize,
    groups: BTreeMap<Owner<Org>, Group<Id>>,
}

impl<Org: Ord, Id: Ord + Clone> Index<Org, Id> {
    /// An empty index for vectors of `dims` dimensions ([`DIMS`](crate::DIMS) for the packed ones).
    pub fn new(dims: usize) -> Self {
        Self { dims, groups: BTreeMap::new() }
    }

    /// Adds a vector, or replaces the one its owner has under this id.
    pub fn insert(&mut self, owner: Owner<Org>, id: Id, vector: &Vector) -> Result<(), WrongDims> {
        self.check_dims(vector)?;
        self.groups.entry(owner).or_insert_with(Group::new).insert(id, vector);
        Ok(())
    }

    /// Says whether there was such a vector.
    pub fn remove(&mut self, owner: &Owner<Org>, id: &Id) -> bool {
        let Some(group) = self.groups.get_mut(owner) else { return false };
        let removed = group.remove(self.dims, id);
        if group.ids.is_empty() {
            self.groups.remove(owner);
        }
        removed
    }

    pub fn len(&self) -> usize {
        self.groups.values().map(|group| group.ids.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The best of an organisation's own vectors and the shared ones.
    pub fn nearest(
        &self,
        org: Org,
        query: &Vector,
        wanted: Wanted,
    ) -> Result<Vec<Hit<'_, Org, Id>>, WrongDims> {
        let own = Owner::Org(org);
        let groups = [&Owner::Shared, &own];
        self.best_of(groups.into_iter().filter_map(|o| self.groups.get_key_value(o)), query, wanted)
    }

    /// The best of everybody's vectors: for the operator, never for an organisation.
    pub fn nearest_of_all(
        &self,
        query: &Vector,
        wanted: Wanted,
    ) -> Result<Vec<Hit<'_, Org, Id>>, WrongDims> {
        self.best_of(self.groups.iter(), query, wanted)
    }

    fn best_of<'index>(
        &'index self,
        groups: impl Iterator<Item = (&'index Owner<Org>, &'index Group<Id>)>,
        query: &Vector,
        wanted: Wanted,
    ) -> Result<Vec<Hit<'index, Org, Id>>, WrongDims> {
        self.check_dims(query)?;
        let query = Query::new(query);
        let mut best = Best { wanted, hits: Vec::new() };
        for (owner, group) in groups {
            for (place, cosine) in group.cosines(&query).enumerate() {
                if cosine >= best.entry_cosine() {
                    best.offer(Hit { owner, id: &group.ids[place], cosine });
                }
            }
        }
        Ok(best.hits)
    }

    fn check_dims(&self, vector: &Vector) -> Result<(), WrongDims> {
        if vector.dims() == self.dims {
            Ok(())
        } else {
            Err(WrongDims { given: vector.dims(), expected: self.dims })
        }
    }
}

/// One owner's vectors: rows end to end, and beside them what belongs to each.
#[derive(Clone, Debug)]
struct Group<Id> {
    rows: Vec<i8>,
    /// One over the length of each rounded row, so that a vector's cosine with itself stays 1.
    shrinks: Vec<f32>,
    ids: Vec<Id>,
    places: BTreeMap<Id, usize>,
}

impl<Id: Ord + Clone> Group<Id> {
    fn new() -> Self {
        Self { rows: Vec::new(), shrinks: Vec::new(), ids: Vec::new(), places: BTreeMap::new() }
    }

    fn insert(&mut self, id: Id, vector: &Vector) {
        let row = rounded(vector);
        let shrink = shrink_of(&row);
        if let Some(place) = self.places.get(&id).copied() {
            let start = place * row.len();
            self.rows[start..start + row.len()].copy_from_slice(&row);
            self.shrinks[place] = shrink;
        } else {
            self.places.insert(id.clone(), self.ids.len());
            self.rows.extend(row);
            self.shrinks.push(shrink);
            self.ids.push(id);
        }
    }

    /// The last row moves into the gap.
    fn remove(&mut self, dims: usize, id: &Id) -> bool {
        let Some(place) = self.places.remove(id) else { return false };
        self.ids.swap_remove(place);
        self.shrinks.swap_remove(place);
        let last_start = self.rows.len() - dims;
        self.rows.copy_within(last_start.., place * dims);
        self.rows.truncate(last_start);
        if let Some(moved) = self.ids.get(place) {
            self.places.insert(moved.clone(), place);
        }
        true
    }

    fn cosines(&self, query: &Query) -> impl Iterator<Item = f32> {
        let rows = self.rows.chunks_exact(query.wide.len().max(1));
        rows.zip(&self.shrinks).map(|(row, shrink)| query.cosine(row, *shrink))
    }
}

/// A query, rounded as the rows are and widened, which halves the unpacking per row.
struct Query {
    wide: Vec<i16>,
    shrink: f32,
}

impl Query {
    fn new(vector: &Vector) -> Self {
        let row = rounded(vector);
        Self { shrink: shrink_of(&row), wide: row.into_iter().map(i16::from).collect() }
    }

    fn cosine(&self, row: &[i8], row_shrink: f32) -> f32 {
        to_f32(dot(&self.wide, row)) * (self.shrink * row_shrink)
    }
}

/// The best hits so far, sorted.
struct Best<'index, Org, Id> {
    wanted: Wanted,
    hits: Vec<Hit<'index, Org, Id>>,
}

impl<'index, Org: Ord, Id: Ord> Best<'index, Org, Id> {
    /// Below this nothing can enter any more.
    fn entry_cosine(&self) -> f32 {
        match self.hits.last() {
            Some(worst) if self.hits.len() >= self.wanted.count_max => worst.cosine,
            Some(_) | None => self.wanted.cosine_min,
        }
    }

    fn offer(&mut self, hit: Hit<'index, Org, Id>) {
        let place = self.hits.partition_point(|held| by_rank(held, &hit) == Ordering::Less);
        if place < self.wanted.count_max {
            self.hits.truncate(self.wanted.count_max - 1);
            self.hits.insert(place, hit);
        }
    }
}

fn by_rank<Org: Ord, Id: Ord>(a: &Hit<'_, Org, Id>, b: &Hit<'_, Org, Id>) -> Ordering {
    b.cosine.total_cmp(&a.cosine).then_with(|| a.owner.cmp(b.owner)).then_with(|| a.id.cmp(b.id))
}

/// Eight bits per dimension; the largest value becomes 127.
#[expect(clippy::cast_possible_truncation, reason = "a value over the largest is within -1..=1")]
fn rounded(vector: &Vector) -> Vec<i8> {
    let largest = vector.values().iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    if largest == 0.0 {
        return vec![0; vector.dims()];
    }
    vector.values().iter().map(|value| (value / largest * 127.0).round() as i8).collect()
}

/// One over the length; 0 for the zero row, which then is at cosine 0 from everything.
fn shrink_of(row: &[i8]) -> f32 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::{DIMS, embed};

    const ANY: Wanted = Wanted { count_max: 10, cosine_min: -1.0 };

    fn filled(entries: &[(Owner<&'static str>, u32, &str)]) -> Index<&'static str, u32> {
        let mut index = Index::new(DIMS);
        for (owner, id, text) in entries {
            index.insert(*owner, *id, &embed(text)).expect("packed vectors");
        }
        index
    }

    fn found(index: &Index<&'static str, u32>, org: &'static str, text: &str) -> Vec<u32> {
        let hits = index.nearest(org, &embed(text), ANY).expect("a packed vector");
        hits.iter().map(|hit| *hit.id).collect()
    }

    #[test]
    fn an_organisation_sees_its_own_and_the_shared() {
        let index = filled(&[
            (Owner::Org("acme"), 1, "session expiry"),
            (Owner::Org("zeta"), 2, "session expiry"),
            (Owner::Shared, 3, "session token expiration"),
        ]);
        assert_eq!(found(&index, "acme", "session expiry"), [1, 3]);
        assert_eq!(found(&index, "zeta", "session expiry"), [2, 3]);
        assert_eq!(found(&index, "none", "session expiry"), [3]);
        let all = index.nearest_of_all(&embed("session expiry"), ANY).expect("a packed vector");
        assert_eq!(all.iter().map(|hit| *hit.id).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn equal_scores_are_ordered_by_owner_then_id_whatever_came_first() {
        let entries = [
            (Owner::Org("acme"), 7, "same text"),
            (Owner::Org("acme"), 2, "same text"),
            (Owner::Shared, 9, "same text"),
        ];
        let mut backwards = entries;
        backwards.reverse();
        for entries in [entries, backwards] {
            assert_eq!(found(&filled(&entries), "acme", "same text"), [9, 2, 7]);
        }
    }

    #[test]
    fn an_id_is_replaced_within_its_owner_only() {
        let mut index = filled(&[
            (Owner::Org("acme"), 1, "session expiry"),
            (Owner::Org("zeta"), 1, "session expiry"),
        ]);
        index.insert(Owner::Org("acme"), 1, &embed("disk full")).expect("a packed vector");
        assert_eq!(index.len(), 2);
        let near = Wanted { count_max: 1, cosine_min: 0.99 };
        let query = embed("session expiry");
        assert!(index.nearest("acme", &query, near).expect("a packed vector").is_empty());
        assert_eq!(index.nearest("zeta", &query, near).expect("a packed vector").len(), 1);
    }

    #[test]
    fn removing_leaves_the_others_findable() {
        let mut index = filled(&[
            (Owner::Shared, 1, "session expiry"),
            (Owner::Shared, 2, "disk full"),
            (Owner::Shared, 3, "wrong password"),
        ]);
        assert!(index.remove(&Owner::Shared, &1));
        assert!(!index.remove(&Owner::Shared, &1));
        assert!(!index.remove(&Owner::Org("acme"), &2));
        assert_eq!(found(&index, "acme", "wrong password")[0], 3);
        assert_eq!(found(&index, "acme", "disk full")[0], 2);
        assert!(index.remove(&Owner::Shared, &3) && index.remove(&Owner::Shared, &2));
        assert!(index.is_empty());
    }

    #[test]
    fn a_vector_finds_itself_at_one_and_zero_finds_nothing_near() {
        let index = filled(&[(Owner::Shared, 1, "retry with backoff"), (Owner::Shared, 2, "")]);
        let hits = index.nearest("acme", &embed("retry with backoff"), ANY).expect("packed");
        assert!((hits[0].cosine - 1.0).abs() < 1e-6);
        assert_eq!((*hits[1].id, hits[1].cosine.to_bits()), (2, 0.0_f32.to_bits()));
    }

    #[test]
    fn nothing_is_found_when_nothing_is_wanted() {
        let index = filled(&[(Owner::Shared, 1, "a")]);
        let none = Wanted { count_max: 0, cosine_min: -1.0 };
        assert!(index.nearest("acme", &embed("a"), none).expect("a packed vector").is_empty());
    }

    #[test]
    fn a_vector_of_another_embedder_is_refused_with_a_reason() {
        let mut index: Index<&str, u32> = Index::new(DIMS);
        let stranger = Vector::from_values(vec![1.0; 384]);
        let refused = index.insert(Owner::Shared, 1, &stranger).expect_err("wrong dimensions");
        assert_eq!(refused, WrongDims { given: 384, expected: DIMS });
        assert_eq!(index.nearest("acme", &stranger, ANY), Err(refused));
    }
}
