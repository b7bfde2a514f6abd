//! The constants equal the result of the fit, and the fit has the documented quality.

use super::pairs::{Half, Label, Scored, fit, pass_rates, scored};
use super::*;
use crate::transformer::Transformer;

#[test]
fn every_label_has_forty_pairs_in_each_half() {
    let pairs = scored(embed);
    for half in [Half::Fit, Half::HeldOut] {
        for label in [Label::Same, Label::Related, Label::Lookalike, Label::Unrelated] {
            let count = pairs.iter().filter(|p| p.half == half && p.label == label).count();
            assert_eq!(count, 40, "{half:?} {label:?}");
        }
    }
}

#[test]
fn the_constants_equal_the_fit() {
    let (steepness, midpoint) = fit(&scored(embed));
    println!("steepness {steepness:.4}, midpoint {midpoint:.4}");
    assert!(
        (steepness - f64::from(Calibration::STATIC_MODEL.steepness)).abs() < 0.005,
        "{steepness}"
    );
    assert!(
        (midpoint - f64::from(Calibration::STATIC_MODEL.midpoint)).abs() < 0.0005,
        "{midpoint}"
    );
}

#[test]
fn the_thresholds_hold_on_held_out_pairs() {
    let pairs = scored(embed);
    for (threshold, precision_min, recall_min, related_max) in
        [(0.8, 0.8, 0.15, 0.05), (0.7, 0.7, 0.25, 0.1)]
    {
        let min_cosine = Calibration::STATIC_MODEL.cosine_at(threshold);
        let rates = pass_rates(&pairs, min_cosine);
        println!("threshold {threshold} (cosine {min_cosine:.3}): {rates:.2?}");
        assert!(rates.precision >= precision_min, "{rates:?}");
        assert!(rates.same >= recall_min, "{rates:?}");
        assert!(rates.related <= related_max, "{rates:?}");
        assert!(rates.unrelated == 0.0, "{rates:?}");
        // Documents the known limit; if this fails, update the module documentation.
        assert!(rates.lookalike > rates.same, "{rates:?}");
    }
}

/// Area under the ROC curve: how often a pair of one label has the higher cosine; ties count half.
fn auc(pairs: &[Scored], near: Label, far: Label) -> f64 {
    let of = |label| {
        pairs.iter().filter(move |p| p.label == label).map(|p| p.cosine).collect::<Vec<_>>()
    };
    let (near, far) = (of(near), of(far));
    let wins: f64 = near
        .iter()
        .flat_map(|a| far.iter().map(move |b| if a > b { 1.0 } else { f64::from(a == b) / 2.0 }))
        .sum();
    wins / f64::from(u32::try_from(near.len() * far.len()).expect("fits in u32"))
}

/// Published values of these vectors on other queries are 0.995 (unrelated) and 0.67 to 0.69 (related).
#[test]
fn the_auc_of_rephrasings_is_within_the_published_range() {
    let pairs = scored(embed);
    for (far, least, most) in
        [(Label::Unrelated, 0.99, 1.0), (Label::Related, 0.65, 0.95), (Label::Lookalike, 0.0, 0.6)]
    {
        let auc = auc(&pairs, Label::Same, far);
        println!("AUC of rephrasings against {far:?}: {auc:.3}");
        assert!((least..=most).contains(&auc), "{far:?}: {auc:.3}");
    }
}

#[test]
fn cosine_at_is_the_inverse_of_similarity() {
    for threshold in [0.1, 0.5, 0.7, 0.8, 0.95] {
        let round_trip =
            Calibration::STATIC_MODEL.similarity(Calibration::STATIC_MODEL.cosine_at(threshold));
        assert!((round_trip - threshold).abs() < 1e-5, "{threshold} became {round_trip}");
    }
    assert!(Calibration::STATIC_MODEL.cosine_at(1.0) > 1.0);
    assert!(Calibration::STATIC_MODEL.cosine_at(0.0) < -1.0);
}

#[test]
fn equal_texts_are_similar_and_an_empty_text_is_not() {
    assert!(similarity("the tool call times out", "The tool call times out!") > 0.9);
    assert!(similarity("", "anything") < 0.05);
}

/// Needs a folder with the model, which is not in the repository.
#[test]
fn the_minilm_constants_equal_the_fit() {
    let Some(folder) = std::env::var_os("RB_TEST_MINILM") else {
        println!("skipped: set RB_TEST_MINILM to a folder with all-MiniLM-L6-v2");
        return;
    };
    let model = Transformer::open(folder.as_ref()).expect("the model opens");
    let pairs = scored(|text| model.embed(text).expect("the text is embedded"));
    let (steepness, midpoint) = fit(&pairs);
    println!("MiniLM: steepness {steepness:.4}, midpoint {midpoint:.4}");
    for threshold in [0.8, 0.7] {
        let min_cosine = Calibration::MINILM.cosine_at(threshold);
        println!(
            "threshold {threshold} (cosine {min_cosine:.3}): {:.2?}",
            pass_rates(&pairs, min_cosine)
        );
    }
    assert!((steepness - f64::from(Calibration::MINILM.steepness)).abs() < 0.01, "{steepness}");
    assert!((midpoint - f64::from(Calibration::MINILM.midpoint)).abs() < 0.001, "{midpoint}");
    check_confirmation(&pairs);
}

#[test]
fn the_confirmation_cosine_is_a_similarity_of_seven_tenths() {
    assert!((Calibration::MINILM.similarity(CONFIRMATION_MIN_COSINE) - 0.7).abs() < 0.01);
}

/// Among the pairs selected by the static model, the transformer keeps rephrasings and rejects most related pairs.
fn check_confirmation(by_transformer: &[Scored]) {
    let static_model = scored(embed);
    let suspected: Vec<&Scored> = static_model
        .iter()
        .zip(by_transformer)
        .filter(|(p, _)| p.cosine >= 0.55)
        .map(|(_, m)| m)
        .collect();
    for (half, label, kept, of) in [
        (Half::Fit, Label::Same, 15, 17),
        (Half::Fit, Label::Related, 2, 9),
        (Half::Fit, Label::Lookalike, 15, 18),
        (Half::HeldOut, Label::Same, 15, 18),
        (Half::HeldOut, Label::Related, 2, 6),
        (Half::HeldOut, Label::Lookalike, 19, 26),
    ] {
        let pairs = suspected.iter().filter(|pair| pair.half == half && pair.label == label);
        let confirmed = pairs.clone().filter(|pair| pair.cosine >= CONFIRMATION_MIN_COSINE).count();
        assert_eq!((confirmed, pairs.count()), (kept, of), "{half:?} {label:?}");
    }
}
