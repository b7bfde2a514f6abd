//! Very many vectors: little is missed, and nothing of another's is found.

use rb_embed::{DIMS, Index, Owner, Vector, Wanted, embed};

use crate::sentences::Sentences;

/// Above the size up to which everything is compared.
const MANY: u64 = 120_000;
/// Small enough to be compared exactly.
const FEW: u64 = 40_000;
const QUERIES: usize = 100;
const BEST_TWO: Wanted = Wanted { count_max: 2, cosine_min: 0.0 };

/// The same sentences as one large group and as a few small ones, which are searched exactly.
struct Both {
    sentences: Sentences,
    large: Index<u64, u64>,
    small: Index<u64, u64>,
}

impl Both {
    fn new() -> Self {
        let sentences = Sentences::new();
        let (mut large, mut small) = (Index::new(DIMS), Index::new(DIMS));
        for number in 0..MANY {
            let vector = embed(&sentences.sentence(number));
            large.insert(Owner::Org(0), number, &vector).expect("packed vectors");
            small.insert(Owner::Org(number / FEW), number, &vector).expect("packed vectors");
        }
        Self { sentences, large, small }
    }

    fn queries(&self) -> impl Iterator<Item = Vector> {
        let numbers = (0..MANY).step_by(usize::try_from(MANY).expect("small") / QUERIES);
        numbers.map(|number| embed(&self.sentences.rewording(number)))
    }

    /// How many of the best two are found, of those that are fit.
    fn recall(&self, is_fit: impl Fn(u64) -> bool) -> f64 {
        let (mut found, mut there) = (0, 0);
        for query in self.queries() {
            let fit = |id: &u64, _| is_fit(*id);
            let hits = self.large.nearest_where(0, &query, BEST_TWO, fit).expect("a packed vector");
            let groups =
                (0..MANY / FEW).map(|org| self.small.nearest_where(org, &query, BEST_TWO, fit));
            let groups = groups.flat_map(|hits| hits.expect("a packed vector"));
            let mut exact: Vec<f32> = groups.map(|hit| hit.cosine).collect();
            exact.sort_by(|a, b| b.total_cmp(a));
            exact.truncate(2);
            there += exact.len();
            let bar = exact.last().copied().unwrap_or(f32::INFINITY);
            found += hits.iter().filter(|hit| hit.cosine >= bar).count();
        }
        let share = |count: usize| f64::from(u32::try_from(count).expect("small"));
        share(found) / share(there)
    }
}

#[test]
fn of_the_two_nearest_among_many_hardly_any_is_missed() {
    let both = Both::new();
    let recall = both.recall(|_| true);
    assert!(recall >= 0.95, "of all: {recall}");
    // As of one kind of failure among a dozen: those that are fit lie further away.
    let recall = both.recall(|id| id % 12 == 5);
    assert!(recall >= 0.95, "of a twelfth: {recall}");
}

#[test]
fn however_many_an_owner_has_nobody_else_finds_them() {
    let mut index = Both::new().large;
    index.insert(Owner::Org(1), 1, &embed("session expiry")).expect("a packed vector");
    let hits = index.nearest(1, &embed("the test fails again"), BEST_TWO).expect("packed");
    assert_eq!(hits.len(), 1);
    assert_eq!(*hits[0].owner, Owner::Org(1));
}
