//! Properties: every text can be embedded, and a search equals a sort by cosine.

use proptest::collection::vec;
use proptest::prelude::*;
use rb_embed::{Index, Owner, SearchParams, Vector, embed, similarity};

/// Arbitrary characters and typical agent text: identifiers, paths, punctuation.
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
    fn every_vector_is_zero_or_has_unit_length(text in text()) {
        let vector = embed(&text);
        let length = vector.values().iter().map(|value| value * value).sum::<f32>().sqrt();
        prop_assert!(vector.is_zero() || (length - 1.0).abs() < 1e-3, "length {length}");
        prop_assert_eq!(vector, embed(&text));
    }

    #[test]
    fn a_huge_text_is_embedded(text in text(), times in 1_usize..2_000) {
        let vector = embed(&text.repeat(times));
        prop_assert!(vector.values().iter().all(|value| value.is_finite()));
    }

    #[test]
    fn whitespace_has_no_effect(words in vec("[^\\s]{1,12}", 0..20), gaps in vec("[ \t\n\r]{1,4}", 21)) {
        let tight = words.join(" ");
        let loose: String = gaps.iter().zip(words.iter().map(String::as_str).chain([""]))
            .flat_map(|(gap, word)| [gap.as_str(), word])
            .collect();
        prop_assert_eq!(embed(&tight), embed(&loose));
    }

    #[test]
    fn similarity_is_symmetric_and_between_zero_and_one(a in text(), b in text()) {
        let there = similarity(&a, &b);
        prop_assert!((0.0..=1.0).contains(&there));
        prop_assert_eq!(there.to_bits(), similarity(&b, &a).to_bits());
    }

    #[test]
    fn a_search_equals_a_sort(case in searches()) {
        let mut index = Index::new(case.dims);
        for (owner, id, values) in &case.inserts {
            index.insert(*owner, *id, &Vector::from_values(values.clone())).expect("dimensions match");
        }
        for (owner, id) in &case.removals {
            index.remove(owner, id);
        }
        let query = Vector::from_values(case.query.clone());
        let hits = index.nearest(case.org, &query, case.params).expect("dimensions match");
        let held = case.held();
        prop_assert_eq!(index.len(), held.len());

        // Sorted, within the limits, and each cosine is close to the exact one.
        for pair in hits.windows(2) {
            let key = |at: usize| (pair[at].owner, pair[at].id);
            prop_assert!(pair[0].cosine > pair[1].cosine
                || (pair[0].cosine.to_bits() == pair[1].cosine.to_bits() && key(0) < key(1)));
        }
        prop_assert!(hits.len() <= case.params.max_hits);
        for hit in &hits {
            prop_assert!(hit.cosine >= case.params.min_cosine);
            let values = held.get(&(*hit.owner, *hit.id)).expect("only stored vectors are found");
            let exact = Vector::from_values(values.clone()).cosine(&query);
            prop_assert!((hit.cosine - exact).abs() < 0.02, "{} is not {exact}", hit.cosine);
        }

        // No visible vector that was omitted is clearly better than the hits.
        let worst = hits.last().map_or(f32::INFINITY, |hit| hit.cosine);
        let bar = if hits.len() < case.params.max_hits { case.params.min_cosine } else { worst };
        for ((owner, id), values) in held {
            let visible = owner == Owner::Shared || owner == Owner::Org(case.org);
            if visible && !hits.iter().any(|hit| *hit.owner == owner && *hit.id == id) {
                let exact = Vector::from_values(values).cosine(&query);
                prop_assert!(exact <= bar + 0.02 || case.params.max_hits == 0, "{exact} beats {bar}");
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
    params: SearchParams,
}

impl Search {
    /// Returns the expected content of the index.
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
            move |(inserts, removals, org, query, max_hits, min_cosine)| Search {
                dims,
                inserts,
                removals,
                org,
                query,
                params: SearchParams { max_hits, min_cosine },
            },
        )
    })
}
