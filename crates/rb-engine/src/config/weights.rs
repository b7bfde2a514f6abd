//! How much each monitor counts: built-in profiles, custom ones, and what a caller lays on top.

use crate::monitors::{ALL, MonitorSpec};

/// The built-in profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// Agents that write code. The default.
    #[default]
    Coding,
    /// Agents that review changes: they read a lot and run little.
    PrReview,
    /// Agents that test.
    Qa,
}

impl Profile {
    /// Every built-in profile.
    pub const ALL: [Self; 3] = [Self::Coding, Self::PrReview, Self::Qa];

    /// The profile's name on every wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Coding => "coding",
            Self::PrReview => "pr_review",
            Self::Qa => "qa",
        }
    }

    /// The profile of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }

    fn weight(self, spec: &MonitorSpec) -> f64 {
        match self {
            Self::Coding => spec.weights.coding,
            Self::PrReview => spec.weights.pr_review,
            Self::Qa => spec.weights.qa,
        }
    }
}

/// One weight a monitor, each between 0 and 1.
///
/// A custom profile is a built-in one with weights laid on top, kept under a name of the user's.
///
/// ```
/// use rb_engine::config::weights::{Profile, Weights};
///
/// let (weights, notes) = Weights::of(Profile::Qa).with([("streak", 0.5), ("sterak", 0.1)]);
/// assert_eq!(weights.get("streak"), Some(0.5));
/// assert_eq!(notes[0].to_string(), "`sterak` is no monitor; its weight was left out");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Weights([f64; ALL.len()]);

impl Default for Weights {
    fn default() -> Self {
        Self::of(Profile::default())
    }
}

/// Something about a weight that was not taken as it was given.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WeightNote {
    /// No monitor has that name.
    #[error("`{name}` is no monitor; its weight was left out")]
    Unknown {
        /// The name as given.
        name: String,
    },
    /// The weight was outside 0 to 1.
    #[error("the weight of `{name}` must be between 0 and 1; {given} was taken as {taken}")]
    Clamped {
        /// The monitor.
        name: String,
        /// What was given.
        given: f64,
        /// What was used.
        taken: f64,
    },
    /// The weight was no number.
    #[error("the weight of `{name}` is not a number; the profile's {kept} was kept")]
    NotANumber {
        /// The monitor.
        name: String,
        /// What was used.
        kept: f64,
    },
}

impl Weights {
    /// The weights of a built-in profile.
    pub fn of(profile: Profile) -> Self {
        Self(ALL.map(|spec| profile.weight(spec)))
    }

    /// These weights with others laid on top, and a note for each that was not taken as given.
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

    /// The weight of the monitor of that name.
    pub fn get(&self, id: &str) -> Option<f64> {
        ALL.iter().position(|spec| spec.id == id).map(|at| self.0[at])
    }

    /// In the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = f64> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_lie_on_top_and_are_checked() {
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
        the weight of `streak` must be between 0 and 1; 2 was taken as 1
        the weight of `hedge` must be between 0 and 1; -1 was taken as 0
        `bogus` is no monitor; its weight was left out
        the weight of `diversity` is not a number; the profile's 0.2 was kept
        ");
    }

    #[test]
    fn the_documented_tables() {
        let row = |id| Profile::ALL.map(|profile| Weights::of(profile).get(id).expect("a monitor"));
        assert_eq!(row("streak"), [0.35, 0.35, 0.35]);
        assert_eq!(row("call_count"), [0.15, 0.20, 0.20]);
        assert_eq!(row("edit_revert"), [0.15, 0.05, 0.05]);
        assert_eq!(row("test_repeat"), [0.15, 0.05, 0.20]);
        assert_eq!(row("diversity"), [0.10, 0.20, 0.10]);
        assert_eq!(row("hedge"), [0.10, 0.15, 0.10]);
        assert_eq!(row("claim_contradiction"), [0.30, 0.20, 0.40]);
        assert_eq!(row("semantic_loop"), [0.25, 0.30, 0.15]);
        assert_eq!(row("verification_skip"), [0.15, 0.10, 0.05]);
        assert_eq!(row("cyclic_compression"), [0.10, 0.15, 0.05]);
        assert_eq!(row("late_sprawl"), [0.10, 0.15, 0.10]);
        assert_eq!(row("silent_topic_drift"), [0.10, 0.10, 0.25]);
    }
}
