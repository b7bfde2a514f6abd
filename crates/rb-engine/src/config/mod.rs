//! Settings of the engine, validated once and shared by all runs that use them.

/// Weights of the monitors.
pub mod weights;

use std::fmt;
use std::sync::Arc;

use crate::analysis::embedding::{Embedder, TrigramEmbedder};
use crate::guidance::fragment::FragmentLimits;
use crate::monitors::{MonitorSettings, SettingsError};
use crate::policy::Policy;
use crate::policy::fsm::{FsmConfig, FsmConfigError, Limits};
use crate::policy::gate::GateError;
use crate::policy::routing::Routing;
use crate::policy::token_budget::{BudgetError, TokenBudget};
use weights::Weights;

/// Settings as a user writes them. The default is the documented behaviour.
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
    /// Suites, standing rules, cooldowns and limits of guidance.
    pub policy: Policy,
    /// Weights of the composite and of the order of monitors.
    pub weights: Weights,
    /// Settings of the monitors.
    pub monitors: MonitorSettings,
    /// Replaces the fire threshold of every monitor.
    pub fire_threshold: Option<f64>,
    /// State machine.
    pub fsm: FsmConfig,
    /// Model per state.
    pub routing: Routing,
    /// Token budget of a run.
    pub budget: Option<TokenBudget>,
}

/// Invalid settings.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// State machine.
    #[error(transparent)]
    Fsm(#[from] FsmConfigError),
    /// A monitor.
    #[error(transparent)]
    Monitors(#[from] SettingsError),
    /// Cooldowns and caps.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// Token budget.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The fire threshold of all monitors is out of range.
    #[error("`fire_threshold` ({value}) must be a number above 0 and at most 1")]
    FireThreshold {
        /// The given value.
        value: f64,
    },
    /// One item would not fit into a fragment.
    #[error(
        "`fragment.item_chars_max` ({item}) must be smaller than `fragment.fragment_chars_max` ({fragment})"
    )]
    Fragment {
        /// Limit of an item.
        item: usize,
        /// Limit of a fragment.
        fragment: usize,
    },
}

/// Validated settings with an embedder.
#[derive(Clone)]
pub struct Engine {
    pub(crate) config: EngineConfig,
    pub(crate) limits: Limits,
    pub(crate) embedder: Arc<dyn Embedder>,
}

impl Default for Engine {
    /// The documented behaviour, with an embedder that compares spelling only.
    fn default() -> Self {
        let config = EngineConfig::default(); // valid; see the tests
        Self { config, limits: Limits::default(), embedder: Arc::new(TrigramEmbedder) }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("config", &self.config).finish_non_exhaustive()
    }
}

impl EngineConfig {
    /// Returns the default settings with a policy.
    pub fn with_policy(policy: Policy) -> Self {
        Self { policy, ..Self::default() }
    }

    /// Validates every section. Returns the first error.
    pub fn check(self) -> Result<Engine, ConfigError> {
        let limits = self.fsm.check()?;
        self.monitors.check()?;
        self.policy.gate.check()?;
        if let Some(budget) = self.budget {
            budget.check()?;
        }
        if let Some(value) = self.fire_threshold
            && !(value > 0.0 && value <= 1.0)
        {
            return Err(ConfigError::FireThreshold { value });
        }
        let FragmentLimits { fragment_chars_max: fragment, item_chars_max: item } =
            self.policy.fragment;
        if item >= fragment {
            return Err(ConfigError::Fragment { item, fragment });
        }
        Ok(Engine { config: self, limits, embedder: Arc::new(TrigramEmbedder) })
    }
}

impl Engine {
    /// Replaces the embedder.
    #[must_use]
    pub fn with_embedder(self, embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder, ..self }
    }

    /// Returns the settings.
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// Returns the policy.
    pub fn policy(&self) -> &Policy {
        &self.config.policy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_settings_are_valid() {
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
                |c| c.policy.gate.composite_above = 2.0,
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
                |c| c.policy.fragment.item_chars_max = 9_000,
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
