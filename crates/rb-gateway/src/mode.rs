//! What is done with a run: steered, only watched, or let through; and which arm of an experiment it is in.

use rb_store::RunKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What the gateway does with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Guidance goes into requests when it is due.
    #[default]
    Steer,
    /// What would have been said is recorded, and nothing is changed.
    Observe,
    /// Requests pass unread.
    Off,
}

impl Mode {
    /// The mode of that name, in any case.
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

/// Runs are split into two arms: steered, and vanilla.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The experiment's name in the report.
    pub id: String,
    /// The share of runs that is steered.
    #[serde(default = "half")]
    pub on_fraction: f64,
}

fn half() -> f64 {
    0.5
}

impl Experiment {
    /// The arm of a run: a coin that falls the same way for the same run, on any machine.
    pub(crate) fn arm(&self, run: &RunKey) -> &'static str {
        let drawn = Sha256::digest(format!("{}:{}", self.id, run.run_id).as_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&drawn[..8]);
        // 53 bits are all that a float between 0 and 1 has.
        #[expect(clippy::cast_precision_loss, reason = "the lowest bits of a coin do not matter")]
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
