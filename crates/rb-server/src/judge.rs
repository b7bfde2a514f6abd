//! What the monitors say, as rows and replies have it.

use std::borrow::Cow;
use std::sync::Arc;

use rb_engine::analysis::embedding::Embedder;
use rb_engine::config::weights::Weights;
use rb_engine::config::{AdviceSource, Engine, EngineConfig};
use rb_engine::monitors::SuiteChoice;
use rb_engine::policy::routing::Routing;
use rb_engine::policy::token_budget::TokenBudget;
use rb_engine::run::{Assessment, MonitorSet, Reading};
use rb_engine::step::StepIndex;
use rb_store::Scores;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Names under which a run's metadata may hold a limit on tokens and the models of states.
pub(crate) const TOKEN_BUDGET: &str = "token_budget";
pub(crate) const MODEL_ROUTING: &str = "model_routing";

/// Which monitors judge a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Suite {
    Heuristic,
    #[default]
    Semantic,
    Both,
}

impl Suite {
    pub(crate) fn choice(self) -> SuiteChoice {
        match self {
            Self::Heuristic => SuiteChoice::Heuristic,
            Self::Semantic => SuiteChoice::Semantic,
            Self::Both => SuiteChoice::Both,
        }
    }
}

/// The rules a trace is judged by.
pub(crate) fn rules(embedder: &Arc<dyn Embedder>, suite: Suite, weights: Weights) -> Arc<Engine> {
    let config = EngineConfig { suite: suite.choice(), weights, ..EngineConfig::default() };
    checked(embedder, config)
}

/// The rules of a run that is watched step by step: both suites, and what its metadata sets. What cannot work there
/// was refused when the run began; in rows of another origin it is left out.
pub(crate) fn rules_of_run(
    embedder: &Arc<dyn Embedder>,
    weights: Weights,
    metadata: &Map<String, Value>,
) -> Arc<Engine> {
    let config = EngineConfig {
        weights,
        voices: AdviceSource::Semantic,
        budget: budget(metadata).ok().flatten(),
        routing: routing(metadata).unwrap_or_default(),
        ..EngineConfig::default()
    };
    checked(embedder, config)
}

fn checked(embedder: &Arc<dyn Embedder>, config: EngineConfig) -> Arc<Engine> {
    // Weights are always within their bounds, budget and routing were checked: nothing is left to refuse.
    let rules = config.check().unwrap_or_default();
    Arc::new(rules.with_embedder(Arc::clone(embedder)))
}

/// The limit on tokens that a run's metadata sets.
pub(crate) fn budget(metadata: &Map<String, Value>) -> Result<Option<TokenBudget>, String> {
    match metadata.get(TOKEN_BUDGET) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(tokens) if tokens > 0 => Ok(Some(TokenBudget::enforced(tokens))),
            Some(_) | None => Err(format!("`{TOKEN_BUDGET}` must be a whole number of at least 1")),
        },
    }
}

/// The models of states that a run's metadata sets.
pub(crate) fn routing(metadata: &Map<String, Value>) -> Result<Routing, String> {
    let routes = match metadata.get(MODEL_ROUTING) {
        None | Some(Value::Null) => return Ok(Routing::default()),
        Some(Value::Object(routes)) => routes,
        Some(_) => {
            return Err(format!("`{MODEL_ROUTING}` must be an object from states to models"));
        }
    };
    let pairs = routes.iter().map(|(state, model)| (state.as_str(), model.as_str().unwrap_or("")));
    Routing::from_names(pairs).map_err(|error| error.to_string())
}

/// Why a monitor fired, in a sentence, with the steps it is about.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Evidence {
    pub(crate) monitor: String,
    pub(crate) score: f64,
    /// The kind of failure it is a sign of.
    pub(crate) failure_type: String,
    pub(crate) text: String,
    pub(crate) steps: Vec<u32>,
}

impl Evidence {
    pub(crate) fn row(self) -> rb_store::Evidence {
        let Self { monitor, score, text, steps, .. } = self;
        rb_store::Evidence { monitor, score, text, steps }
    }
}

/// Every reading by monitor.
pub(crate) fn scores(assessment: &Assessment) -> Scores {
    let pair = |reading: &Reading| (Cow::Borrowed(reading.monitor.id), reading.score);
    assessment.readings.iter().map(pair).collect()
}

pub(crate) fn fired(assessment: &Assessment) -> Vec<String> {
    assessment.fired().map(|reading| reading.monitor.id.to_owned()).collect()
}

/// The reasons of what fired; `name` turns a position of the engine into the step's index on the wire.
pub(crate) fn evidence(assessment: &Assessment, name: impl Fn(u32) -> u32) -> Vec<Evidence> {
    let told = assessment.fired().filter_map(|reading| {
        let mut seen = reading.evidence.clone()?;
        seen.steps.iter_mut().for_each(|step| *step = StepIndex(name(step.0)));
        Some(Evidence {
            monitor: reading.monitor.id.to_owned(),
            score: reading.score,
            failure_type: reading.monitor.failure_type.to_owned(),
            text: reading.monitor.advice(&seen),
            steps: seen.steps.iter().map(|step| step.0).collect(),
        })
    });
    told.collect()
}

/// The readings above zero, the most serious first: by weight times score, then in the order of the table.
pub(crate) fn ranked<'a>(assessment: &'a Assessment, panel: &MonitorSet) -> Vec<&'a Reading> {
    let weight = |reading: &Reading| {
        panel.weights().get(reading.monitor.id).unwrap_or_default() * reading.score
    };
    let mut readings: Vec<&Reading> =
        assessment.readings.iter().filter(|reading| reading.score > 0.0).collect();
    readings.sort_by(|a, b| b.fired.cmp(&a.fired).then(weight(b).total_cmp(&weight(a))));
    readings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_runs_metadata_sets_budget_and_models() {
        let check = |metadata: Value| {
            let Value::Object(metadata) = metadata else { panic!("an object") };
            match (budget(&metadata), routing(&metadata)) {
                (Ok(budget), Ok(_)) => Ok(budget.map(|budget| budget.tokens_max)),
                (Err(error), _) | (_, Err(error)) => Err(error),
            }
        };
        let cases = [
            (json!({}), Ok(None)),
            (json!({"token_budget": 5}), Ok(Some(5))),
            (json!({"token_budget": null, "model_routing": {"SLOW": "strong"}}), Ok(None)),
            (
                json!({"token_budget": 0}),
                Err("`token_budget` must be a whole number of at least 1"),
            ),
            (
                json!({"token_budget": "many"}),
                Err("`token_budget` must be a whole number of at least 1"),
            ),
            (
                json!({"model_routing": []}),
                Err("`model_routing` must be an object from states to models"),
            ),
            (
                json!({"model_routing": {"SLOW": 1}}),
                Err("`routing.SLOW` names no model; give a model id or leave the state out"),
            ),
        ];
        for (metadata, expected) in cases {
            assert_eq!(check(metadata), expected.map_err(str::to_owned));
        }
    }
}
