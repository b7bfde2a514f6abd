//! Modes of runs, and their arms in an experiment.

use rb_store::RunKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Mode of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Injects guidance.
    #[default]
    Steer,
    /// Records decisions without changing requests.
    Observe,
    /// Forwards requests without parsing them.
    Off,
}

impl Mode {
    /// Parses a name, ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Steer, Self::Observe, Self::Off]
            .into_iter()
            .find(|mode| mode.name().eq_ignore_ascii_case(name.trim()))
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Steer => "steer",
            Self::Observe => "observe",
            Self::Off => "off",
        }
    }
}

/// Experiment with a steered arm and a control arm.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name in the report.
    pub id: String,
    /// Share of runs that are steered.
    #[serde(default = "half")]
    pub on_fraction: f64,
}

fn half() -> f64 {
    0.5
}

impl Experiment {
    /// Returns the arm of a run, derived from a hash of its id: the same on every node.
    pub(crate) fn arm(&self, run: &RunKey) -> &'static str {
        let drawn = Sha256::digest(format!("{}:{}", self.id, run.run_id).as_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&drawn[..8]);
        #[expect(clippy::cast_precision_loss, reason = "the lowest bits do not matter")]
        let share = u64::from_be_bytes(first) as f64 / 2_f64.powi(64);
        if share < self.on_fraction { "on" } else { "off" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_names() {
        for mode in [Mode::Steer, Mode::Observe, Mode::Off] {
            assert_eq!(Mode::from_name(&mode.name().to_uppercase()), Some(mode));
        }
        assert_eq!(Mode::from_name("maybe"), None);
    }

    #[test]
    fn the_coin_is_fair_and_remembers() {
        let experiment = Experiment { id: "e".to_owned(), on_fraction: 0.3 };
        let key = |at: u32| RunKey { org: "o".to_owned(), run_id: format!("run-{at}") };
        let on = (0..2_000).filter(|at| experiment.arm(&key(*at)) == "on").count();
        assert!((500..700).contains(&on), "{on}");
        assert_eq!(experiment.arm(&key(1)), experiment.arm(&key(1)));
    }
}
