//! Labelled pairs of `calibration/pairs.tsv`, and the logistic regression over them.

use crate::vector::Vector;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    Same,
    Related,
    Lookalike,
    Unrelated,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    Fit,
    HeldOut,
}

/// Labelled pair with the cosine of an embedder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scored {
    pub(crate) half: Half,
    pub(crate) label: Label,
    pub(crate) cosine: f32,
}

/// Returns all pairs with their cosines. The pairs of a group share texts, so they are all in the same half.
pub(crate) fn scored(embed: impl Fn(&str) -> Vector) -> Vec<Scored> {
    let lines = include_str!("../../calibration/pairs.tsv").lines();
    lines
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [group, label, a, b] = fields[..] else { panic!("expected four columns: {line}") };
            let group: u32 = group.parse().expect("the first column is a group number");
            let label = match label {
                "same" => Label::Same,
                "related" => Label::Related,
                "lookalike" => Label::Lookalike,
                "unrelated" => Label::Unrelated,
                other => panic!("unknown label: {other}"),
            };
            let half = if group.is_multiple_of(2) { Half::Fit } else { Half::HeldOut };
            Scored { half, label, cosine: embed(a).cosine(&embed(b)) }
        })
        .collect()
}

/// Returns the maximum-likelihood steepness and midpoint for the fitted half, by Newton's method from zero.
/// Lookalikes are excluded, because no curve over a cosine can place them.
pub(crate) fn fit(pairs: &[Scored]) -> (f64, f64) {
    let (mut offset, mut slope) = (0.0_f64, 0.0_f64);
    for _ in 0..50 {
        let (mut g0, mut g1, mut h00, mut h01, mut h11) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for pair in pairs.iter().filter(|p| p.half == Half::Fit && p.label != Label::Lookalike) {
            let cosine = f64::from(pair.cosine);
            let expected = (1.0 + (-offset - slope * cosine).exp()).recip();
            let miss = f64::from(u8::from(pair.label == Label::Same)) - expected;
            let weight = expected * (1.0 - expected);
            g0 += miss;
            g1 += miss * cosine;
            h00 += weight;
            h01 += weight * cosine;
            h11 += weight * cosine * cosine;
        }
        let determinant = h00 * h11 - h01 * h01;
        offset += (h11 * g0 - h01 * g1) / determinant;
        slope += (h00 * g1 - h01 * g0) / determinant;
    }
    (slope, -offset / slope)
}

/// Fraction of held-out pairs per label that pass a threshold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassRates {
    pub(crate) precision: f64,
    pub(crate) same: f64,
    pub(crate) related: f64,
    pub(crate) lookalike: f64,
    pub(crate) unrelated: f64,
}

pub(crate) fn pass_rates(pairs: &[Scored], min_cosine: f32) -> PassRates {
    let rate = |label: Label| {
        let held_out = || pairs.iter().filter(move |p| p.half == Half::HeldOut && p.label == label);
        let passed = held_out().filter(|pair| pair.cosine >= min_cosine).count();
        ratio(passed, held_out().count())
    };
    let (same, related) = (rate(Label::Same), rate(Label::Related));
    let (lookalike, unrelated) = (rate(Label::Lookalike), rate(Label::Unrelated));
    // The three labels have the same number of pairs, so precision can be computed from fractions.
    PassRates {
        precision: same / (same + related + unrelated),
        same,
        related,
        lookalike,
        unrelated,
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    f64::from(u32::try_from(part).expect("fits in u32"))
        / f64::from(u32::try_from(whole).expect("fits in u32"))
}
