//! Cosines into similarities that mean the same whichever embedder made them.
//!
//! **What a similarity is.** The share of pairs at this cosine that describe *one situation in
//! other words*, when a third of all candidates do, a third are on the same topic but about another
//! situation, and a third have nothing in common. So the documented gates read: at 0.8 four of
//! five were written for this situation, at 0.7 seven of ten.
//!
//! **How it was fitted.** Logistic regression by maximum likelihood on the even groups of
//! `calibration/pairs.tsv`; the odd groups test it. The tests below run the fit and hold the
//! constants to it. Two further inputs were tried and judged on the odd groups: the length of the
//! texts made it worse, the overlap of their rarer words changed nothing to speak of (log-loss 0.432
//! for 0.434). So the curve depends on the cosine alone and a gate is a cosine
//! ([`Calibration::cosine_at`]), which is what a search needs.
//!
//! **What it holds to, on the held-out half** (40 pairs of each kind, so read the counts). At 0.8
//! pass 7 rewordings, 1 related pair and no unrelated one; at 0.7 pass 11, 3 and none. The gates
//! are right about what they let through and let little through: most rewordings stay below.
//!
//! **What it cannot do.** A different situation in nearly the same words ("the loop ends one
//! element too early", "the loop body is never executed") is a *lookalike*. A mean of word vectors
//! sees the words, so of 40 such pairs 10 pass 0.8 and 19 pass 0.7: more than true rewordings do.
//! (The transformer is no better at these: 17 and 22.) We first labelled them *related*, saw that
//! no curve over a cosine can place them, and set them apart; the precision above leaves them out.
//! With as many lookalikes among the candidates as rewordings, 7 of 18 that pass 0.8 would be right.
//! What passes a gate is a candidate; let something else agree before acting on it.

use crate::packed::embed;

/// A logistic curve from an embedder's cosines to similarities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Gain in log-odds per unit of cosine.
    steepness: f32,
    /// The cosine at which *same* is as likely as not.
    midpoint: f32,
}

impl Calibration {
    /// For the vectors inside the binary.
    pub const PACKED: Self = Self { steepness: 7.06, midpoint: 0.478 };

    /// For [`Transformer`](crate::Transformer) with all-MiniLM-L6-v2.
    pub const MINILM: Self = Self { steepness: 8.35, midpoint: 0.497 };

    /// From 0 to 1, rising with the cosine and never quite reaching either end.
    pub fn similarity(self, cosine: f32) -> f32 {
        (1.0 + (self.steepness * (self.midpoint - cosine)).exp()).recip()
    }

    /// The cosine that has this similarity, for a search behind a gate. May lie above 1 (nothing
    /// passes) or below -1 (everything does).
    pub fn cosine_at(self, similarity: f32) -> f32 {
        let similarity = similarity.clamp(0.0, 1.0);
        self.midpoint + (similarity / (1.0 - similarity)).ln() / self.steepness
    }
}

/// From this cosine on, [`Transformer`](crate::Transformer) with all-MiniLM-L6-v2 confirms that two texts which the packed
/// vectors make look alike (a cosine of 0.55) mean the same: where its calibrated similarity is 0.7.
///
/// Of the pairs that look alike so, on the half for fitting, it keeps 15 of 17 rewordings and sorts out 7 of 9 related
/// pairs; on the other half 15 of 18 and 4 of 6. Of the 44 lookalikes it sorts out 10 (see above: it cannot do better).
pub const CONFIRMED_FROM: f32 = 0.6;

/// How likely two texts describe the same situation, by the packed vectors.
pub fn similarity(a: &str, b: &str) -> f32 {
    Calibration::PACKED.similarity(embed(a).cosine(&embed(b)))
}

#[cfg(test)]
mod pairs;
#[cfg(test)]
mod tests;
