//! Statistics of experiments: intervals of proportions, sample ratio check, robust averages.
//!
//! Only the complementary error function of `libm` is needed: the confidence level is fixed at 95 % and the chi-square
//! test has one degree of freedom.

/// Normal quantile of a two-sided 95 % interval.
const Z: f64 = 1.959_963_984_540_054;
/// Fraction of the values clamped at either end of a winsorised mean.
const WINSOR_FRACTION: f64 = 0.05;
/// Significance level of the sample ratio check. 0.01, because arms of agent runs are small and a broken assignment
/// should be detected early.
pub(super) const SRM_ALPHA: f64 = 0.01;

/// A proportion of `of` trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Proportion {
    pub(super) hits: u64,
    pub(super) of: u64,
}

/// Difference of two proportions with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Difference {
    pub(super) delta: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Result of a sample ratio check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SampleRatio {
    pub(super) expected: (f64, f64),
    /// Infinite if an arm with an expected size of zero has runs.
    pub(super) chi_square: f64,
    pub(super) p_value: f64,
}

impl SampleRatio {
    pub(super) fn is_flagged(&self) -> bool {
        self.p_value < SRM_ALPHA
    }
}

impl Proportion {
    /// `None` without trials.
    pub(super) fn rate(self) -> Option<f64> {
        (self.of > 0).then(|| as_f64(self.hits) / as_f64(self.of))
    }

    /// Wilson's 95 % interval, which stays inside 0 to 1 and is wide for few trials.
    fn wilson(self) -> Option<(f64, f64)> {
        let rate = self.rate()?;
        let count = as_f64(self.of);
        let shrink = 1.0 + Z * Z / count;
        let middle = (rate + Z * Z / (2.0 * count)) / shrink;
        let spread = (rate * (1.0 - rate) / count + Z * Z / (4.0 * count * count)).sqrt();
        let half = Z * spread / shrink;
        Some(((middle - half).max(0.0), (middle + half).min(1.0)))
    }

    /// The variance of the rate, with a success and a failure added (Agresti and Caffo): an arm without a failure
    /// would otherwise have none, and all the weight.
    fn variance(self) -> f64 {
        let count = as_f64(self.of) + 2.0;
        let rate = (as_f64(self.hits) + 1.0) / count;
        rate * (1.0 - rate) / count
    }
}

/// Newcombe's interval for `on − off`, from the Wilson intervals of both; `None` while an arm is empty.
pub(super) fn newcombe(on: Proportion, off: Proportion) -> Option<Difference> {
    let (rate_on, rate_off) = (on.rate()?, off.rate()?);
    let ((low_on, high_on), (low_off, high_off)) = (on.wilson()?, off.wilson()?);
    let delta = rate_on - rate_off;
    Some(Difference {
        delta,
        low: delta - (rate_on - low_on).hypot(high_off - rate_off),
        high: delta + (high_on - rate_on).hypot(rate_off - low_off),
    })
}

/// Returns the difference within strata, averaged by inverse variance. Strata with a single arm are omitted; `None`
/// if none remains.
pub(super) fn stratified(strata: &[(Proportion, Proportion)]) -> Option<Difference> {
    let (mut weights, mut weighted) = (0.0, 0.0);
    for (on, off) in strata {
        let (Some(rate_on), Some(rate_off)) = (on.rate(), off.rate()) else { continue };
        let weight = (on.variance() + off.variance()).recip();
        weights += weight;
        weighted += weight * (rate_on - rate_off);
    }
    if weights == 0.0 {
        return None;
    }
    let (delta, half) = (weighted / weights, Z / weights.sqrt());
    Some(Difference { delta, low: (delta - half).max(-1.0), high: (delta + half).min(1.0) })
}

/// Pearson's chi-square of two counts against the planned split, with one degree of freedom.
pub(super) fn sample_ratio(on: u64, off: u64, on_fraction: f64) -> SampleRatio {
    let total = as_f64(on + off);
    let expected = (total * on_fraction, total * (1.0 - on_fraction));
    let part = |observed: u64, expected: f64| {
        let off_by = as_f64(observed) - expected;
        // Avoids 0/0 for an arm without expected and observed runs.
        if off_by == 0.0 { 0.0 } else { off_by * off_by / expected }
    };
    let chi_square = part(on, expected.0) + part(off, expected.1);
    SampleRatio { expected, chi_square, p_value: libm::erfc((chi_square / 2.0).sqrt()) }
}

/// Median; the mean of the two middle values for an even count.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(middle.checked_sub(1)?)?;
    Some(f64::midpoint(lower, upper))
}

/// Mean with the outermost twentieth at either end clamped. Below twenty values this is the plain mean.
pub(super) fn winsorised_mean(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let clamped = clamped_count(sorted.len());
    let (low, high) = (*sorted.get(clamped)?, *sorted.get(sorted.len() - 1 - clamped)?);
    mean(&sorted.iter().map(|value| value.clamp(low, high)).collect::<Vec<_>>())
}

/// Arithmetic mean.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / as_f64(values.len() as u64))
}

/// Relative difference of `on` to `off`.
pub(super) fn relative(on: f64, off: f64) -> Option<f64> {
    (off != 0.0).then(|| (on - off) / off)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a twentieth of a length is a small number that is not negative"
)]
fn clamped_count(count: usize) -> usize {
    (as_f64(count as u64) * WINSOR_FRACTION) as usize
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Converts a count.
#[expect(clippy::cast_precision_loss, reason = "counts of runs and tokens are far below 2^52")]
pub(super) fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share((hits, of): (u64, u64)) -> Proportion {
        Proportion { hits, of }
    }

    fn near(got: f64, expected: f64) -> bool {
        (got - expected).abs() < 5e-5 || got == expected
    }

    #[test]
    fn wilson_intervals_are_as_computed_by_hand() {
        // (p + z²/2n ± z·sqrt(p(1−p)/n + z²/4n²)) / (1 + z²/n)
        let cases = [
            ((5, 6), Some((0.4365, 0.9699))),
            ((0, 10), Some((0.0, 0.2775))),
            ((10, 10), Some((0.7225, 1.0))),
            ((50, 100), Some((0.4038, 0.5962))),
            ((0, 0), None),
        ];
        for (given, expected) in cases {
            match (share(given).wilson(), expected) {
                (Some(got), Some(expected)) => assert!(
                    near(got.0, expected.0) && near(got.1, expected.1),
                    "{given:?}: {got:?}"
                ),
                (got, expected) => assert_eq!(got, expected, "{given:?}"),
            }
        }
    }

    #[test]
    fn newcombe_intervals_are_as_published_and_as_computed_by_hand() {
        let cases = [
            // The sample of the documented report.
            ((5, 6), (5, 6), Some((0.0, -0.4197, 0.4197))),
            // Newcombe (1998), table II, method 10: 56/70 against 48/80, and 9/10 against 3/10.
            ((56, 70), (48, 80), Some((0.2, 0.0524, 0.3339))),
            ((9, 10), (3, 10), Some((0.6, 0.1705, 0.8090))),
            ((10, 10), (0, 10), Some((1.0, 0.6075, 1.0))),
            ((0, 0), (1, 2), None),
        ];
        for (on, off, expected) in cases {
            let got = newcombe(share(on), share(off));
            match (got, expected) {
                (Some(got), Some((delta, low, high))) => assert!(
                    near(got.delta, delta) && near(got.low, low) && near(got.high, high),
                    "{on:?} {off:?}: {got:?}"
                ),
                (got, expected) => assert_eq!(got.is_some(), expected.is_some(), "{on:?} {off:?}"),
            }
        }
    }

    #[test]
    fn strata_are_averaged_by_inverse_variance() {
        // Both strata have the same sizes, so the same variance but for their rates.
        // Stratum 1: 8/10 and 6/10; p̃ = 9/12, 7/12; v = .75·.25/12 + .5833·.4167/12 = .035880
        // Stratum 2: 5/10 and 5/10; p̃ = 6/12, 6/12; v = 2·.25/12 = .041667
        // delta = .2/.035880 / (1/.035880 + 1/.041667) = .107463; half = z·sqrt(1/51.870968) = .272136
        let strata = [((8, 10), (6, 10)), ((5, 10), (5, 10)), ((3, 3), (0, 0))];
        let strata = strata.map(|(on, off)| (share(on), share(off)));
        let got = stratified(&strata).unwrap();
        assert!(near(got.delta, 0.107_463), "{got:?}");
        assert!(near(got.low, 0.107_463 - 0.272_136), "{got:?}");
        assert!(near(got.high, 0.107_463 + 0.272_136), "{got:?}");
        assert_eq!(stratified(&strata[2..]), None);
        assert_eq!(stratified(&[]), None);
    }

    #[test]
    fn a_skewed_split_is_flagged_and_an_even_one_is_not() {
        let cases = [
            // (60−50)²/50 · 2 = 4, whose tail is .0455
            (60, 40, 0.5, 4.0, 0.0455, false),
            (70, 30, 0.5, 16.0, 0.0001, true),
            (50, 50, 0.5, 0.0, 1.0, false),
            // expected 90 and 10: 100/90 + 100/10
            (80, 20, 0.9, 11.1111, 0.0009, true),
            (0, 0, 0.5, 0.0, 1.0, false),
            (5, 0, 1.0, 0.0, 1.0, false),
            (5, 1, 1.0, f64::INFINITY, 0.0, true),
        ];
        for (on, off, fraction, chi_square, p_value, flagged) in cases {
            let got = sample_ratio(on, off, fraction);
            let said = format!("{on} {off} {fraction}: {got:?}");
            assert!(near(got.chi_square, chi_square) && near(got.p_value, p_value), "{said}");
            assert_eq!(got.is_flagged(), flagged, "{said}");
        }
    }

    #[test]
    fn averages_are_not_moved_by_one_outlier() {
        let mut many: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(median(&many), Some(10.5));
        // 1 becomes 2 and 20 becomes 19.
        assert_eq!(winsorised_mean(&many), Some(10.5));
        many[19] = 1e9;
        assert_eq!((median(&many), winsorised_mean(&many)), (Some(10.5), Some(10.5)));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(winsorised_mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!((median(&[]), winsorised_mean(&[]), mean(&[])), (None, None, None));
        assert_eq!((relative(2.0, 8.0), relative(1.0, 0.0)), (Some(-0.75), None));
    }
}
