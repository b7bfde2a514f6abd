//! Monitor settings of a run, and assessments as rows and replies hold them.

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

/// Metadata key of the token budget of a run.
pub const TOKEN_BUDGET: &str = "token_budget";
/// Metadata key of the model routes of a run.
pub const MODEL_ROUTING: &str = "model_routing";

/// Monitor suites that assess a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Suite {
    Heuristic,
    #[default]
    Semantic,
    Both,
}

impl Suite {
    pub fn choice(self) -> SuiteChoice {
        match self {
            Self::Heuristic => SuiteChoice::Heuristic,
            Self::Semantic => SuiteChoice::Semantic,
            Self::Both => SuiteChoice::Both,
        }
    }
}

/// Builds the engine for a whole trace.
pub fn trace_engine(embedder: &Arc<dyn Embedder>, suite: Suite, weights: Weights) -> Arc<Engine> {
    let config = EngineConfig { suite: suite.choice(), weights, ..EngineConfig::default() };
    build(embedder, config)
}

/// Builds the engine of a run that arrives step by step: both suites, with budget and routing from its metadata. Invalid
/// metadata is rejected when a run starts; in rows of other origins it is ignored.
pub fn run_engine(
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
    build(embedder, config)
}

fn build(embedder: &Arc<dyn Embedder>, config: EngineConfig) -> Arc<Engine> {
    // Weights are bounded by their type; budget and routing were checked before.
    let engine = config.check().unwrap_or_default();
    Arc::new(engine.with_embedder(Arc::clone(embedder)))
}

/// Parses the token budget of a run's metadata.
pub fn budget(metadata: &Map<String, Value>) -> Result<Option<TokenBudget>, String> {
    match metadata.get(TOKEN_BUDGET) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(tokens) if tokens > 0 => Ok(Some(TokenBudget::enforced(tokens))),
            Some(_) | None => Err(format!("`{TOKEN_BUDGET}` must be a whole number of at least 1")),
        },
    }
}

/// Parses the model routes of a run's metadata.
pub fn routing(metadata: &Map<String, Value>) -> Result<Routing, String> {
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

/// Explanation of a fired monitor with the steps it refers to.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Evidence {
    pub monitor: String,
    pub score: f64,
    /// Failure type of the monitor.
    pub failure_type: String,
    pub text: String,
    pub steps: Vec<u32>,
}

impl Evidence {
    pub fn into_row(self) -> rb_store::Evidence {
        let Self { monitor, score, text, steps, .. } = self;
        rb_store::Evidence { monitor, score, text, steps }
    }
}

/// Scores by monitor.
pub fn scores(assessment: &Assessment) -> Scores {
    let pair = |reading: &Reading| (Cow::Borrowed(reading.monitor.id), reading.score);
    assessment.readings.iter().map(pair).collect()
}

pub fn fired(assessment: &Assessment) -> Vec<String> {
    assessment.fired().map(|reading| reading.monitor.id.to_owned()).collect()
}

/// Evidence of the fired monitors; `step_index` maps a position of the engine to the public step index.
pub fn evidence(assessment: &Assessment, step_index: impl Fn(u32) -> u32) -> Vec<Evidence> {
    let evidence = assessment.fired().filter_map(|reading| {
        let mut found = reading.evidence.clone()?;
        found.steps.iter_mut().for_each(|step| *step = StepIndex(step_index(step.0)));
        Some(Evidence {
            monitor: reading.monitor.id.to_owned(),
            score: reading.score,
            failure_type: reading.monitor.failure_type.to_owned(),
            text: reading.monitor.advice(&found),
            steps: found.steps.iter().map(|step| step.0).collect(),
        })
    });
    evidence.collect()
}

/// Readings above zero, fired ones first, then by weighted score.
pub fn ranked<'a>(assessment: &'a Assessment, monitors: &MonitorSet) -> Vec<&'a Reading> {
    let weight = |reading: &Reading| {
        monitors.weights().get(reading.monitor.id).unwrap_or_default() * reading.score
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
    fn metadata_sets_budget_and_routing() {
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
