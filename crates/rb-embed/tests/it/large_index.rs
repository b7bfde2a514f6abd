//! Exact search in a large index.

use rb_embed::{DIMS, Index, Owner, SearchParams, embed};

use crate::synthetic_sentences::Sentences;

const VECTORS: u64 = 120_000;
const QUERIES: usize = 20;
const BEST_TWO: SearchParams = SearchParams { max_hits: 2, min_cosine: 0.0 };

#[test]
fn a_large_partition_finds_the_same_as_small_ones_and_is_isolated() {
    let sentences = Sentences::new();
    let (mut large, mut small) = (Index::new(DIMS), Index::new(DIMS));
    for number in 0..VECTORS {
        let vector = embed(&sentences.sentence(number));
        large.insert(Owner::Org(0), number, &vector).expect("dimensions match");
        small.insert(Owner::Org(number / 1_000), number, &vector).expect("dimensions match");
    }
    for number in (0..VECTORS).step_by(usize::try_from(VECTORS).expect("fits") / QUERIES) {
        let query = embed(&sentences.rewording(number));
        let cosines = |index: &Index<u64, u64>| -> Vec<u32> {
            let hits = index.nearest_all_owners(&query, BEST_TWO).expect("dimensions match");
            hits.iter().map(|hit| hit.cosine.to_bits()).collect()
        };
        assert_eq!(cosines(&large), cosines(&small), "query {number}");
    }
    large.insert(Owner::Org(1), 1, &embed("session expiry")).expect("dimensions match");
    let hits =
        large.nearest(1, &embed("the test fails again"), BEST_TWO).expect("dimensions match");
    assert_eq!(hits.len(), 1);
    assert_eq!(*hits[0].owner, Owner::Org(1));
}
