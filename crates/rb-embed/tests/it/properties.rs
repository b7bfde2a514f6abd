//! Properties: any text is safe, and the search is a sort by cosine.

use proptest::collection::vec;
use proptest::prelude::*;
use rb_embed::{Index, Owner, Vector, Wanted, embed, similarity};

/// Any characters at all, mixed with what agents write: names, paths, punctuation.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ -~\n\t]{0,200}",
        "([a-zA-Z_]{1,12}[ ./(){}=-]{0,2}){0,30}",
        "[a-zéÀİß\u{300}\u{301}ªﬁǅ中ा一]{0,40}",
    ]
}

proptest! {
    #[test]
    fn any_text_has_a_unit_vector_or_none(text in text()) {
        let vector = embed(&text);
        let length = vector.values().iter().map(|value| value * value).sum::<f32>().sqrt();
        prop_assert!(vector.is_zero() || (length - 1.0).abs() < 1e-3, "length {length}");
        prop_assert_eq!(vector, embed(&text));
    }

    #[test]
    fn a_repeated_giant_text_is_bounded(text in text(), times in 1_usize..2_000) {
        let vector = embed(&text.repeat(times));
        prop_assert!(vector.values().iter().all(|value| value.is_finite()));
    }

    #[test]
    fn whitespace_says_nothing(words in vec("[^\\s]{1,12}", 0..20), gaps in vec("[ \t\n\r]{1,4}", 21)) {
        let tight = words.join(" ");
        let loose: String = gaps.iter().zip(words.iter().map(String::as_str).chain([""]))
            .flat_map(|(gap, word)| [gap.as_str(), word])
            .collect();
        prop_assert_eq!(embed(&tight), embed(&loose));
    }

    #[test]
    fn similarity_is_symmetric_and_within_bounds(a in text(), b in text()) {
        let there = similarity(&a, &b);
        prop_assert!((0.0..=1.0).contains(&there));
        prop_assert_eq!(there.to_bits(), similarity(&b, &a).to_bits());
    }

    #[test]
    fn the_search_is_a_sort(case in searches()) {
        let mut index = Index::new(case.dims);
        for (owner, id, values) in &case.inserts {
            index.insert(*owner, *id, &Vector::from_values(values.clone())).expect("same dimensions");
        }
        for (owner, id) in &case.removals {
            index.remove(owner, id);
        }
        let query = Vector::from_values(case.query.clone());
        let hits = index.nearest(case.org, &query, case.wanted).expect("same dimensions");
        let held = case.held();
        prop_assert_eq!(index.len(), held.len());

        // Sorted, above the gate, no more than wanted, and each cosine near the exact one.
        for pair in hits.windows(2) {
            let rank = |place: usize| (pair[place].owner, pair[place].id);
            prop_assert!(pair[0].cosine > pair[1].cosine
                || (pair[0].cosine.to_bits() == pair[1].cosine.to_bits() && rank(0) < rank(1)));
        }
        prop_assert!(hits.len() <= case.wanted.count_max);
        for hit in &hits {
            prop_assert!(hit.cosine >= case.wanted.cosine_min);
            let values = held.get(&(*hit.owner, *hit.id)).expect("only what is held is found");
            let exact = Vector::from_values(values.clone()).cosine(&query);
            prop_assert!((hit.cosine - exact).abs() < 0.02, "{} is not {exact}", hit.cosine);
        }

        // Nothing visible that was left out is clearly better than what was found.
        let worst = hits.last().map_or(f32::INFINITY, |hit| hit.cosine);
        let bar = if hits.len() < case.wanted.count_max { case.wanted.cosine_min } else { worst };
        for ((owner, id), values) in held {
            let visible = owner == Owner::Shared || owner == Owner::Org(case.org);
            if visible && !hits.iter().any(|hit| *hit.owner == owner && *hit.id == id) {
                let exact = Vector::from_values(values).cosine(&query);
                prop_assert!(exact <= bar + 0.02 || case.wanted.count_max == 0, "{exact} beats {bar}");
            }
        }
    }
}

type Key = (Owner<u8>, u8);

#[derive(Clone, Debug)]
struct Search {
    dims: usize,
    inserts: Vec<(Owner<u8>, u8, Vec<f32>)>,
    removals: Vec<Key>,
    org: u8,
    query: Vec<f32>,
    wanted: Wanted,
}

impl Search {
    /// What the index must hold in the end, kept the slow and obvious way.
    fn held(&self) -> std::collections::BTreeMap<Key, Vec<f32>> {
        let mut held = std::collections::BTreeMap::new();
        for (owner, id, values) in &self.inserts {
            held.insert((*owner, *id), values.clone());
        }
        for key in &self.removals {
            held.remove(key);
        }
        held
    }
}

fn searches() -> impl Strategy<Value = Search> {
    (1_usize..40).prop_flat_map(|dims| {
        let owner = || prop_oneof![Just(Owner::Shared), (0_u8..3).prop_map(Owner::Org)];
        let values = move || vec(-1.0_f32..1.0, dims);
        let inserts = vec((owner(), 0_u8..12, values()), 0..40);
        let removals = vec((owner(), 0_u8..12), 0..10);
        (inserts, removals, 0_u8..3, values(), 0_usize..6, -1.0_f32..1.0).prop_map(
            move |(inserts, removals, org, query, count_max, cosine_min)| Search {
                dims,
                inserts,
                removals,
                org,
                query,
                wanted: Wanted { count_max, cosine_min },
            },
        )
    })
}
