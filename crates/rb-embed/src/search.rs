//! Vector search, grouped by who owns the vectors.
//!
//! **Groups.** An organisation asks within its own vectors and the shared ones, and each owner's lie apart. So the filter is
//! exact by construction, a scan reads a hundredth of the whole, and only who has very many needs the
//! shortcut that `group` takes. An index over all behind a filter would be slower and inexact besides.
//!
//! **Order.** Best first; equal scores by owner (shared first), then by id. The order of insertion
//! never shows.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::group::Group;
use crate::rows::Query;
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
        let group = self.groups.entry(owner).or_insert_with(|| Group::new(self.dims));
        group.insert(id, vector);
        Ok(())
    }

    /// Says whether there was such a vector.
    pub fn remove(&mut self, owner: &Owner<Org>, id: &Id) -> bool {
        let Some(group) = self.groups.get_mut(owner) else { return false };
        let removed = group.remove(id);
        if group.is_empty() {
            self.groups.remove(owner);
        }
        removed
    }

    pub fn len(&self) -> usize {
        self.groups.values().map(Group::len).sum()
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
        self.nearest_where(org, query, wanted, |_, _| true)
    }

    /// The same among those that will do, by id and cosine.
    pub fn nearest_where(
        &self,
        org: Org,
        query: &Vector,
        wanted: Wanted,
        will_do: impl Fn(&Id, f32) -> bool,
    ) -> Result<Vec<Hit<'_, Org, Id>>, WrongDims> {
        let own = Owner::Org(org);
        let groups = [&Owner::Shared, &own].into_iter();
        let groups = groups.filter_map(|owner| self.groups.get_key_value(owner));
        self.best_of(groups, query, wanted, will_do)
    }

    /// The best of everybody's vectors: for the operator, never for an organisation.
    pub fn nearest_of_all(
        &self,
        query: &Vector,
        wanted: Wanted,
    ) -> Result<Vec<Hit<'_, Org, Id>>, WrongDims> {
        self.best_of(self.groups.iter(), query, wanted, |_, _| true)
    }

    fn best_of<'index>(
        &'index self,
        groups: impl Iterator<Item = (&'index Owner<Org>, &'index Group<Id>)>,
        query: &Vector,
        wanted: Wanted,
        will_do: impl Fn(&Id, f32) -> bool,
    ) -> Result<Vec<Hit<'index, Org, Id>>, WrongDims> {
        self.check_dims(query)?;
        let query = Query::new(query);
        let mut best = Best { wanted, hits: Vec::new() };
        for (owner, group) in groups {
            group.look_through(&query, wanted.count_max, |id, cosine| {
                if cosine >= best.entry_cosine() && will_do(id, cosine) {
                    best.offer(Hit { owner, id, cosine });
                }
            });
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
