//! Everything a user may set, checked once, shared by all runs that are judged by it.

/// Weights of the monitors.
pub mod weights;

use std::fmt;
use std::sync::Arc;

use crate::analysis::embedding::{Embedder, TrigramEmbedder};
use crate::guidance::fragment::FragmentLimits;
use crate::monitors::{MonitorSettings, SettingsError, SuiteChoice};
use crate::policy::fsm::{FsmConfig, FsmConfigError, Limits};
use crate::policy::gate::{GateConfig, GateError};
use crate::policy::routing::Routing;
use crate::policy::token_budget::{BudgetError, TokenBudget};
use weights::Weights;

/// The rules as a user writes them. The default is the documented behaviour.
///
/// ```
/// use rb_engine::config::EngineConfig;
///
/// let mut config = EngineConfig::default();
/// config.fsm.fast_threshold = 0.7;
/// assert_eq!(
///     config.check().unwrap_err().to_string(),
///     "`fsm.fast_threshold` (0.7) must be smaller than `fsm.slow_threshold` (0.6)"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EngineConfig {
    /// Which monitors watch.
    pub suite: SuiteChoice,
    /// Whose advice is given where both suites watch.
    pub voices: AdviceSource,
    /// How much each counts.
    pub weights: Weights,
    /// Their budgets, caps and windows.
    pub monitors: MonitorSettings,
    /// Replaces the threshold of every monitor.
    pub fire_threshold: Option<f64>,
    /// The state machine.
    pub fsm: FsmConfig,
    /// When guidance is due.
    pub gate: GateConfig,
    /// How long guidance may be.
    pub fragment: FragmentLimits,
    /// Which model takes a call in which state.
    pub routing: Routing,
    /// A limit on tokens, if there is one.
    pub budget: Option<TokenBudget>,
}

/// Whose advice is given where both suites watch. What fired is recorded either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AdviceSource {
    /// Everybody's: the documented behaviour.
    #[default]
    All,
    /// The second suite's alone: the first counts and compares, and fires on most runs that go well.
    Semantic,
}

/// Rules that could not work, in the words of the section concerned.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The state machine.
    #[error(transparent)]
    Fsm(#[from] FsmConfigError),
    /// A monitor's settings.
    #[error(transparent)]
    Monitors(#[from] SettingsError),
    /// The guardrails.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// The token budget.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The common threshold.
    #[error("`fire_threshold` ({value}) must be a number above 0 and at most 1")]
    FireThreshold {
        /// What it was set to.
        value: f64,
    },
    /// One piece of guidance must fit into the whole.
    #[error(
        "`fragment.item_chars_max` ({item}) must be smaller than `fragment.fragment_chars_max` ({fragment})"
    )]
    Fragment {
        /// The limit of one piece.
        item: usize,
        /// The limit of the whole.
        fragment: usize,
    },
}

/// Rules that have passed the check, and how meanings are compared.
#[derive(Clone)]
pub struct Engine {
    pub(crate) config: EngineConfig,
    pub(crate) limits: Limits,
    pub(crate) embedder: Arc<dyn Embedder>,
}

impl Default for Engine {
    /// The documented behaviour, comparing spellings only.
    fn default() -> Self {
        let config = EngineConfig::default(); // passes the check; a test holds that
        Self { config, limits: Limits::default(), embedder: Arc::new(TrigramEmbedder) }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("config", &self.config).finish_non_exhaustive()
    }
}

impl EngineConfig {
    /// Checks every section; the first that could not work is the error.
    pub fn check(self) -> Result<Engine, ConfigError> {
        let limits = self.fsm.check()?;
        self.monitors.check()?;
        self.gate.check()?;
        if let Some(budget) = self.budget {
            budget.check()?;
        }
        if let Some(value) = self.fire_threshold
            && !(value > 0.0 && value <= 1.0)
        {
            return Err(ConfigError::FireThreshold { value });
        }
        let FragmentLimits { fragment_chars_max: fragment, item_chars_max: item } = self.fragment;
        if item >= fragment {
            return Err(ConfigError::Fragment { item, fragment });
        }
        Ok(Engine { config: self, limits, embedder: Arc::new(TrigramEmbedder) })
    }
}

impl Engine {
    /// The same rules with an embedder that understands rewording.
    #[must_use]
    pub fn with_embedder(self, embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder, ..self }
    }

    /// What was checked.
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_work_and_are_the_default_rules() {
        let checked = EngineConfig::default().check().expect("the defaults pass");
        assert_eq!(
            (&checked.config, checked.limits),
            (&Engine::default().config, Limits::default())
        );
    }

    #[test]
    fn every_section_is_checked() {
        type Change = fn(&mut EngineConfig);
        let cases: [(Change, &str); 8] = [
            (|c| c.monitors.streak.cap = 0, "`monitors.streak.cap` (0) must be at least 1"),
            (
                |c| c.monitors.diversity.window = 9,
                "`monitors.diversity.window` (9) must not be larger than `monitors.diversity.minimum` (8)",
            ),
            (
                |c| c.monitors.hedge.full_ratio = f64::NAN,
                "`monitors.hedge.full_ratio` (NaN) must be a number from 1.000001 to 1000000",
            ),
            (
                |c| c.gate.composite_above = 2.0,
                "`gate.composite_above` (2) must be a number between 0 and 1",
            ),
            (
                |c| c.budget = Some(TokenBudget::enforced(0)),
                "`budget.tokens_max` must be at least 1; leave the budget out for no limit",
            ),
            (
                |c| c.fire_threshold = Some(0.0),
                "`fire_threshold` (0) must be a number above 0 and at most 1",
            ),
            (
                |c| c.fragment.item_chars_max = 9_000,
                "`fragment.item_chars_max` (9000) must be smaller than `fragment.fragment_chars_max` (6000)",
            ),
            (
                |c| c.fsm.hysteresis_margin = 0.9,
                "FAST could never be left: `fsm.fast_threshold` (0.2) and `fsm.hysteresis_margin` (0.9) together ask for a score no step can have; lower the margin",
            ),
        ];
        for (change, message) in cases {
            let mut config = EngineConfig::default();
            change(&mut config);
            assert_eq!(config.check().expect_err(message).to_string(), message);
        }
    }
}
