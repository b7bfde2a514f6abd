//! Weights of the monitors: built-in profiles, overrides, and the two results that depend on them, composite and order.

use std::cmp::Ordering;

use crate::monitors::{ALL, MonitorSpec, Suite};
use crate::policy::Policy;

/// Weight of each monitor per built-in profile, in the order of `Profile::ALL`. The rows are in the order of the
/// monitor table; the weights of a suite sum to 1 in every profile.
const TABLE: [(&str, [f64; Profile::ALL.len()]); ALL.len()] = [
    // Heuristic.
    ("streak", [0.35, 0.35, 0.35]),
    ("call_count", [0.15, 0.20, 0.20]),
    ("edit_revert", [0.15, 0.05, 0.05]),
    ("test_repeat", [0.15, 0.05, 0.20]),
    ("diversity", [0.10, 0.20, 0.10]),
    ("hedge", [0.10, 0.15, 0.10]),
    // Semantic.
    ("claim_contradiction", [0.30, 0.20, 0.40]),
    ("semantic_loop", [0.25, 0.30, 0.15]),
    ("verification_skip", [0.15, 0.10, 0.05]),
    ("cyclic_compression", [0.10, 0.15, 0.05]),
    ("late_sprawl", [0.10, 0.15, 0.10]),
    ("silent_topic_drift", [0.10, 0.10, 0.25]),
];

/// Built-in profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// Agents that write code. The default.
    #[default]
    Coding,
    /// Agents that review changes: many reads, few test runs.
    PrReview,
    /// Agents that test.
    Qa,
}

impl Profile {
    /// All built-in profiles.
    pub const ALL: [Self; 3] = [Self::Coding, Self::PrReview, Self::Qa];

    /// Returns the name used in the API and in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Coding => "coding",
            Self::PrReview => "pr_review",
            Self::Qa => "qa",
        }
    }

    /// Returns the profile with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }
}

/// One weight per monitor, each from 0 to 1.
///
/// A custom profile is a built-in one with overrides, stored under a name of the user's choice.
///
/// ```
/// use rb_engine::config::weights::{Profile, Weights};
///
/// let (weights, notes) = Weights::of(Profile::Qa).with([("streak", 0.5), ("sterak", 0.1)]);
/// assert_eq!(weights.get("streak"), Some(0.5));
/// assert_eq!(notes[0].to_string(), "unknown monitor: `sterak`; its weight is ignored");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Weights([f64; ALL.len()]);

impl Default for Weights {
    fn default() -> Self {
        Self::of(Profile::default())
    }
}

/// Warning about a weight that was ignored or adjusted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WeightNote {
    /// No monitor has this name.
    #[error("unknown monitor: `{name}`; its weight is ignored")]
    Unknown {
        /// The given name.
        name: String,
    },
    /// The weight was outside 0 to 1.
    #[error("the weight of `{name}` must be between 0 and 1; {given} was changed to {taken}")]
    Clamped {
        /// The monitor.
        name: String,
        /// The given weight.
        given: f64,
        /// The weight in use.
        taken: f64,
    },
    /// The weight was NaN.
    #[error("the weight of `{name}` is not a number; the profile's {kept} is used")]
    NotANumber {
        /// The monitor.
        name: String,
        /// The weight in use.
        kept: f64,
    },
}

impl Weights {
    /// Returns the weights of a built-in profile.
    pub fn of(profile: Profile) -> Self {
        Self(TABLE.map(|(_, weights)| weights[profile as usize]))
    }

    /// Applies overrides. Returns a note for each that was ignored or adjusted.
    #[must_use]
    pub fn with<'a>(
        mut self,
        overrides: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> (Self, Vec<WeightNote>) {
        let mut notes = Vec::new();
        for (name, given) in overrides {
            let Some(at) = ALL.iter().position(|spec| spec.id == name) else {
                notes.push(WeightNote::Unknown { name: name.to_owned() });
                continue;
            };
            if given.is_nan() {
                notes.push(WeightNote::NotANumber { name: name.to_owned(), kept: self.0[at] });
                continue;
            }
            let taken = given.clamp(0.0, 1.0);
            if !(0.0..=1.0).contains(&given) {
                notes.push(WeightNote::Clamped { name: name.to_owned(), given, taken });
            }
            self.0[at] = taken;
        }
        (self, notes)
    }

    /// Returns the weight of a monitor.
    pub fn get(&self, id: &str) -> Option<f64> {
        ALL.iter().position(|spec| spec.id == id).map(|at| self.0[at])
    }

    /// Iterates in the order of the monitor table.
    pub fn iter(&self) -> impl Iterator<Item = f64> + '_ {
        self.0.iter().copied()
    }

    /// Returns the composite of a step: the weighted sum of the scores of a suite, rounded to four decimals; the largest
    /// of the suites that fire. `score` is called in the order of the monitor table.
    pub fn composite(
        &self,
        policy: &Policy,
        mut score: impl FnMut(&'static MonitorSpec) -> Option<f64>,
    ) -> f64 {
        let mut sums = [0.0; Suite::ALL.len()];
        for (spec, weight) in ALL.into_iter().zip(self.iter()) {
            if let Some(score) = score(spec) {
                sums[spec.suite as usize] += weight * score;
            }
        }
        let firing = Suite::ALL.into_iter().filter(|suite| policy.fires(*suite));
        firing.map(|suite| round4(sums[suite as usize])).fold(0.0, f64::max)
    }

    /// Compares two monitors of a step, given as id, score and whether it fired. The more serious one comes first: fired
    /// ones, then by weight times score. A stable sort keeps the order of the table for equal ones.
    pub fn order(&self, a: (&str, f64, bool), b: (&str, f64, bool)) -> Ordering {
        let weighted = |(id, score, _): (&str, f64, bool)| self.get(id).unwrap_or_default() * score;
        b.2.cmp(&a.2).then_with(|| weighted(b).total_cmp(&weighted(a)))
    }
}

/// Rounds to four decimals like the reference: exactly, halves to even.
pub fn round4(value: f64) -> f64 {
    let scaled = value * 1e4;
    let nearest = scaled.round_ties_even();
    // The multiplication may round across a half; only near one does the exact decimal matter.
    if ((scaled - scaled.floor()) - 0.5).abs() > 1e-6 {
        return nearest / 1e4;
    }
    format!("{value:.4}").parse().unwrap_or(nearest / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitors::SuiteChoice;

    #[test]
    fn the_table_has_every_monitor_and_each_suite_sums_to_one() {
        assert_eq!(TABLE.map(|(id, _)| id), ALL.map(|spec| spec.id));
        for (at, profile) in Profile::ALL.into_iter().enumerate() {
            assert_eq!(profile as usize, at);
            for suite in Suite::ALL {
                let rows = ALL.iter().zip(&TABLE).filter(|(spec, _)| spec.suite == suite);
                let sum: f64 = rows.map(|(_, (_, weights))| weights[at]).sum();
                assert!((sum - 1.0).abs() < 1e-9, "{suite:?} {profile:?} {sum}");
            }
        }
    }

    #[test]
    fn overrides_are_checked() {
        let given = [
            ("streak", 2.0),
            ("hedge", -1.0),
            ("bogus", 1.0),
            ("diversity", f64::NAN),
            ("call_count", 0.25),
        ];
        let (weights, notes) = Weights::of(Profile::PrReview).with(given);
        let got =
            ["streak", "call_count", "diversity", "hedge", "edit_revert"].map(|id| weights.get(id));
        assert_eq!(got, [Some(1.0), Some(0.25), Some(0.20), Some(0.0), Some(0.05)]);
        insta::assert_snapshot!(notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"), @r"
        the weight of `streak` must be between 0 and 1; 2 was changed to 1
        the weight of `hedge` must be between 0 and 1; -1 was changed to 0
        unknown monitor: `bogus`; its weight is ignored
        the weight of `diversity` is not a number; the profile's 0.2 is used
        ");
    }

    #[test]
    fn the_composite_is_that_of_the_suites_that_fire() {
        let scores = |spec: &MonitorSpec| match spec.id {
            "streak" => Some(1.0),
            "semantic_loop" => Some(0.5),
            _ => None,
        };
        let cases = [
            (Policy::default(), 0.125),
            (Policy::only(SuiteChoice::Semantic), 0.125),
            (Policy::of_suite(SuiteChoice::Heuristic), 0.35),
            (Policy::of_suite(SuiteChoice::Both), 0.35),
            (Policy::of_suite(SuiteChoice::Neither), 0.0),
        ];
        for (policy, composite) in cases {
            let found = Weights::default().composite(&policy, scores);
            assert_eq!(found.to_bits(), f64::to_bits(composite), "{policy:?}");
        }
    }

    #[test]
    fn monitors_are_ordered_by_fired_then_weighted_score_then_the_table() {
        let mut found = [
            ("hedge", 1.0, false),
            ("verification_skip", 0.6, true),
            ("semantic_loop", 0.6, true),
            ("call_count", 0.1, false),
            ("test_repeat", 0.1, false),
        ];
        found.sort_by(|a, b| Weights::default().order(*a, *b));
        assert_eq!(
            found.map(|(id, ..)| id),
            ["semantic_loop", "verification_skip", "hedge", "call_count", "test_repeat"]
        );
    }

    #[test]
    fn rounding_is_exact_with_halves_to_even() {
        for (value, expected) in [
            (0.03125, 0.0312),
            (0.09375, 0.0938),
            (0.123_45, 0.1235), // the double is above the decimal
            (0.000_05, 0.0001),
            (0.355, 0.355),
            (1.0, 1.0),
            (0.0, 0.0),
        ] {
            assert_eq!(round4(value).to_bits(), f64::to_bits(expected), "{value}");
        }
    }
}
