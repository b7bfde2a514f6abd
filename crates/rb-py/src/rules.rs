//! Engine configuration from keyword arguments.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use rb_engine::config::weights::{Profile, Weights};
use rb_engine::config::{Engine as EngineRules, EngineConfig};
use rb_engine::monitors::SuiteChoice;
use rb_engine::policy::Policy;
use rb_engine::policy::fsm::FsmConfig;
use rb_engine::policy::gate::GateConfig;
use rb_engine::policy::routing::Routing;
use rb_engine::policy::token_budget::TokenBudget;

use crate::embedding::embedder;

/// Validated engine configuration, shared by any number of runs.
#[pyclass(frozen)]
pub(crate) struct Rules {
    pub(crate) inner: Arc<EngineRules>,
    /// Warnings about settings that were ignored or adjusted.
    #[pyo3(get)]
    notes: Vec<String>,
}

#[pymethods]
impl Rules {
    #[new]
    #[pyo3(signature = (
        *, suite = "semantic", task_profile = "coding", weights = None, fire_threshold = None, fsm = None, gate = None,
        routing = None, token_budget = None, enforce_token_budget = false, standing_rules = false,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python, each with a default")]
    fn new(
        suite: &str,
        task_profile: &str,
        weights: Option<BTreeMap<String, f64>>,
        fire_threshold: Option<f64>,
        fsm: Option<BTreeMap<String, f64>>,
        gate: Option<BTreeMap<String, f64>>,
        routing: Option<BTreeMap<String, String>>,
        token_budget: Option<u64>,
        enforce_token_budget: bool,
        standing_rules: bool,
    ) -> PyResult<Self> {
        let mut notes = Vec::new();
        let profile = Profile::from_name(task_profile).unwrap_or_else(|| {
            let known = Profile::ALL.map(Profile::name).join(", ");
            notes.push(format!(
                "unknown profile: `{task_profile}`; using the weights of `coding` (built-in: {known})"
            ));
            Profile::default()
        });
        let weights = weights.unwrap_or_default();
        let overrides = weights.iter().map(|(name, weight)| (name.as_str(), *weight));
        let (weights, weight_notes) = Weights::of(profile).with(overrides);
        notes.extend(weight_notes.iter().map(ToString::to_string));
        let routing = routing.unwrap_or_default();
        let routes = routing.iter().map(|(state, model)| (state.as_str(), model.as_str()));
        let policy = Policy {
            standing_rules,
            gate: gate_of(&gate.unwrap_or_default())?,
            ..Policy::of_suite(suite_of(suite)?)
        };
        let config = EngineConfig {
            policy,
            weights,
            fire_threshold,
            fsm: fsm_of(&fsm.unwrap_or_default())?,
            routing: Routing::from_names(routes)
                .map_err(|e| PyValueError::new_err(e.to_string()))?,
            budget: token_budget.map(|tokens_max| TokenBudget {
                enforced: enforce_token_budget,
                ..TokenBudget::enforced(tokens_max)
            }),
            ..EngineConfig::default()
        };
        let rules = config.check().map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self { inner: Arc::new(rules.with_embedder(embedder())), notes })
    }
}

fn suite_of(name: &str) -> PyResult<SuiteChoice> {
    match name {
        "both" => Ok(SuiteChoice::Both),
        "heuristic" => Ok(SuiteChoice::Heuristic),
        "semantic" => Ok(SuiteChoice::Semantic),
        "none" => Ok(SuiteChoice::Neither),
        other => Err(PyValueError::new_err(format!(
            "`suite` ({other:?}) must be \"semantic\", \"heuristic\", \"both\" or \"none\""
        ))),
    }
}

fn unknown(section: &str, name: &str, known: &[&str]) -> PyErr {
    let known = known.join(", ");
    PyTypeError::new_err(format!("unknown setting: `{section}.{name}`; use one of {known}"))
}

fn fsm_of(given: &BTreeMap<String, f64>) -> PyResult<FsmConfig> {
    const KNOWN: [&str; 7] = [
        "fast_threshold",
        "slow_threshold",
        "skip_threshold",
        "hysteresis_margin",
        "fast_window",
        "slow_window",
        "skip_window",
    ];
    let mut config = FsmConfig::default();
    for (name, value) in given {
        match name.as_str() {
            "fast_threshold" => config.fast_threshold = *value,
            "slow_threshold" => config.slow_threshold = *value,
            "skip_threshold" => config.skip_threshold = *value,
            "hysteresis_margin" => config.hysteresis_margin = *value,
            "fast_window" => config.fast_window = whole("fsm", name, *value)?,
            "slow_window" => config.slow_window = whole("fsm", name, *value)?,
            "skip_window" => config.skip_window = whole("fsm", name, *value)?,
            other => return Err(unknown("fsm", other, &KNOWN)),
        }
    }
    Ok(config)
}

fn gate_of(given: &BTreeMap<String, f64>) -> PyResult<GateConfig> {
    const KNOWN: [&str; 9] = [
        "composite_above",
        "lookback_calls",
        "injections_max",
        "cooldown_slow",
        "cooldown_normal",
        "cooldown_fast",
        "e1_top_k",
        "e2_top_k",
        "e3_top_k",
    ];
    let mut config = GateConfig::default();
    for (name, value) in given {
        let place = match name.as_str() {
            "composite_above" => {
                config.composite_above = *value;
                continue;
            }
            "lookback_calls" => &mut config.lookback_calls,
            "injections_max" => &mut config.injections_max,
            "cooldown_slow" => &mut config.cooldown_slow,
            "cooldown_normal" => &mut config.cooldown_normal,
            "cooldown_fast" => &mut config.cooldown_fast,
            "e1_top_k" => &mut config.e1_top_k,
            "e2_top_k" => &mut config.e2_top_k,
            "e3_top_k" => &mut config.e3_top_k,
            other => return Err(unknown("gate", other, &KNOWN)),
        };
        *place = whole("gate", name, *value)?;
    }
    Ok(config)
}

fn whole(section: &str, name: &str, value: f64) -> PyResult<u32> {
    if value.fract() == 0.0 && (0.0..=1e6).contains(&value) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "range-checked above"
        )]
        return Ok(value as u32);
    }
    Err(PyValueError::new_err(format!(
        "`{section}.{name}` ({value}) must be a whole number from 0 to 1000000"
    )))
}
