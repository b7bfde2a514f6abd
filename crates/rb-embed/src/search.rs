//! Vector search, partitioned by owner.
//!
//! **Partitions.** An organisation searches its own vectors and the shared ones, which are stored separately. The access
//! filter is therefore exact by construction, and a scan reads only the rows that may be returned.
//!
//! **Order.** By cosine, highest first; ties by owner (shared first), then by id. The order of insertion has no effect.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::partition::Partition;
use crate::quantized::Query;
use crate::vector::Vector;

/// Owner of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner<Org> {
    /// Visible to every organisation.
    Shared,
    /// Visible to this organisation only.
    Org(Org),
}

/// Limits of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchParams {
    /// Maximum number of hits.
    pub max_hits: usize,
    /// Minimum cosine of a hit; [`Calibration::cosine_at`](crate::Calibration::cosine_at) converts a similarity.
    pub min_cosine: f32,
}

/// One search result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit<'index, Org, Id> {
    pub owner: &'index Owner<Org>,
    pub id: &'index Id,
    pub cosine: f32,
}

/// The vector's number of dimensions differs from that of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "vector has {given} dimensions, the index has {expected}; \
     an index holds vectors of one embedder, build a new index after changing it"
)]
pub struct DimensionMismatch {
    pub given: usize,
    pub expected: usize,
}

/// Vector index keyed by owner and id. Ids are unique per owner, so an organisation cannot reach another
/// organisation's vector by guessing its id.
#[derive(Clone, Debug)]
pub struct Index<Org, Id> {
    dims: usize,
    partitions: BTreeMap<Owner<Org>, Partition<Id>>,
}

impl<Org: Ord, Id: Ord + Clone> Index<Org, Id> {
    /// Creates an empty index for vectors of `dims` dimensions ([`DIMS`](crate::DIMS) for the static model).
    pub fn new(dims: usize) -> Self {
        Self { dims, partitions: BTreeMap::new() }
    }

    /// Adds a vector, or replaces the owner's vector with this id.
    pub fn insert(
        &mut self,
        owner: Owner<Org>,
        id: Id,
        vector: &Vector,
    ) -> Result<(), DimensionMismatch> {
        self.check_dims(vector)?;
        let partition = self.partitions.entry(owner).or_insert_with(|| Partition::new(self.dims));
        partition.insert(id, vector);
        Ok(())
    }

    /// Removes a vector and returns whether it existed.
    pub fn remove(&mut self, owner: &Owner<Org>, id: &Id) -> bool {
        let Some(partition) = self.partitions.get_mut(owner) else { return false };
        let removed = partition.remove(id);
        if partition.is_empty() {
            self.partitions.remove(owner);
        }
        removed
    }

    pub fn len(&self) -> usize {
        self.partitions.values().map(Partition::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// Returns the nearest of the organisation's own vectors and the shared ones.
    pub fn nearest(
        &self,
        org: Org,
        query: &Vector,
        params: SearchParams,
    ) -> Result<Vec<Hit<'_, Org, Id>>, DimensionMismatch> {
        self.nearest_where(org, query, params, |_, _| true)
    }

    /// Like [`nearest`](Self::nearest), but only returns vectors whose id and cosine are accepted by `accepts`.
    pub fn nearest_where(
        &self,
        org: Org,
        query: &Vector,
        params: SearchParams,
        accepts: impl Fn(&Id, f32) -> bool,
    ) -> Result<Vec<Hit<'_, Org, Id>>, DimensionMismatch> {
        let own = Owner::Org(org);
        let partitions = [&Owner::Shared, &own].into_iter();
        let partitions = partitions.filter_map(|owner| self.partitions.get_key_value(owner));
        self.best_of(partitions, query, params, accepts)
    }

    /// Returns the nearest vectors of all owners. For operators only: it ignores ownership.
    pub fn nearest_all_owners(
        &self,
        query: &Vector,
        params: SearchParams,
    ) -> Result<Vec<Hit<'_, Org, Id>>, DimensionMismatch> {
        self.best_of(self.partitions.iter(), query, params, |_, _| true)
    }

    fn best_of<'index>(
        &'index self,
        partitions: impl Iterator<Item = (&'index Owner<Org>, &'index Partition<Id>)>,
        query: &Vector,
        params: SearchParams,
        accepts: impl Fn(&Id, f32) -> bool,
    ) -> Result<Vec<Hit<'index, Org, Id>>, DimensionMismatch> {
        self.check_dims(query)?;
        let query = Query::new(query);
        let mut best = TopHits { params, hits: Vec::new() };
        for (owner, partition) in partitions {
            for (id, cosine) in partition.scan(&query) {
                if cosine >= best.entry_cosine() && accepts(id, cosine) {
                    best.offer(Hit { owner, id, cosine });
                }
            }
        }
        Ok(best.hits)
    }

    fn check_dims(&self, vector: &Vector) -> Result<(), DimensionMismatch> {
        if vector.dims() == self.dims {
            Ok(())
        } else {
            Err(DimensionMismatch { given: vector.dims(), expected: self.dims })
        }
    }
}

/// Best hits found so far, sorted.
struct TopHits<'index, Org, Id> {
    params: SearchParams,
    hits: Vec<Hit<'index, Org, Id>>,
}

impl<'index, Org: Ord, Id: Ord> TopHits<'index, Org, Id> {
    /// Returns the minimum cosine that a further hit needs.
    fn entry_cosine(&self) -> f32 {
        match self.hits.last() {
            Some(worst) if self.hits.len() >= self.params.max_hits => worst.cosine,
            Some(_) | None => self.params.min_cosine,
        }
    }

    fn offer(&mut self, hit: Hit<'index, Org, Id>) {
        let rank = self.hits.partition_point(|held| by_rank(held, &hit) == Ordering::Less);
        if rank < self.params.max_hits {
            self.hits.truncate(self.params.max_hits - 1);
            self.hits.insert(rank, hit);
        }
    }
}

fn by_rank<Org: Ord, Id: Ord>(a: &Hit<'_, Org, Id>, b: &Hit<'_, Org, Id>) -> Ordering {
    b.cosine.total_cmp(&a.cosine).then_with(|| a.owner.cmp(b.owner)).then_with(|| a.id.cmp(b.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_model::{DIMS, embed};

    const ANY: SearchParams = SearchParams { max_hits: 10, min_cosine: -1.0 };

    fn filled(entries: &[(Owner<&'static str>, u32, &str)]) -> Index<&'static str, u32> {
        let mut index = Index::new(DIMS);
        for (owner, id, text) in entries {
            index.insert(*owner, *id, &embed(text)).expect("dimensions match");
        }
        index
    }

    fn found(index: &Index<&'static str, u32>, org: &'static str, text: &str) -> Vec<u32> {
        let hits = index.nearest(org, &embed(text), ANY).expect("dimensions match");
        hits.iter().map(|hit| *hit.id).collect()
    }

    #[test]
    fn an_organisation_finds_its_own_and_shared_vectors() {
        let index = filled(&[
            (Owner::Org("acme"), 1, "session expiry"),
            (Owner::Org("zeta"), 2, "session expiry"),
            (Owner::Shared, 3, "session token expiration"),
        ]);
        assert_eq!(found(&index, "acme", "session expiry"), [1, 3]);
        assert_eq!(found(&index, "zeta", "session expiry"), [2, 3]);
        assert_eq!(found(&index, "none", "session expiry"), [3]);
        let all =
            index.nearest_all_owners(&embed("session expiry"), ANY).expect("dimensions match");
        assert_eq!(all.iter().map(|hit| *hit.id).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn equal_scores_are_ordered_by_owner_then_id() {
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
        index.insert(Owner::Org("acme"), 1, &embed("disk full")).expect("dimensions match");
        assert_eq!(index.len(), 2);
        let near = SearchParams { max_hits: 1, min_cosine: 0.99 };
        let query = embed("session expiry");
        assert!(index.nearest("acme", &query, near).expect("dimensions match").is_empty());
        assert_eq!(index.nearest("zeta", &query, near).expect("dimensions match").len(), 1);
    }

    #[test]
    fn remaining_vectors_are_found_after_a_removal() {
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
    fn the_cosine_with_itself_is_one_and_with_zero_is_zero() {
        let index = filled(&[(Owner::Shared, 1, "retry with backoff"), (Owner::Shared, 2, "")]);
        let hits =
            index.nearest("acme", &embed("retry with backoff"), ANY).expect("dimensions match");
        assert!((hits[0].cosine - 1.0).abs() < 1e-6);
        assert_eq!((*hits[1].id, hits[1].cosine.to_bits()), (2, 0.0_f32.to_bits()));
    }

    #[test]
    fn no_hits_are_returned_when_max_hits_is_zero() {
        let index = filled(&[(Owner::Shared, 1, "a")]);
        let none = SearchParams { max_hits: 0, min_cosine: -1.0 };
        assert!(index.nearest("acme", &embed("a"), none).expect("dimensions match").is_empty());
    }

    #[test]
    fn a_vector_with_other_dimensions_is_rejected() {
        let mut index: Index<&str, u32> = Index::new(DIMS);
        let mismatched = Vector::from_values(vec![1.0; 384]);
        let error = index.insert(Owner::Shared, 1, &mismatched).expect_err("wrong dimensions");
        assert_eq!(error, DimensionMismatch { given: 384, expected: DIMS });
        assert_eq!(index.nearest("acme", &mismatched, ANY), Err(error));
    }
}
