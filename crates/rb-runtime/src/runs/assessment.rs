//! Monitor settings of a run, and assessments as rows and replies hold them.

use std::borrow::Cow;
use std::sync::Arc;

use rb_engine::analysis::embedding::Embedder;
use rb_engine::config::weights::Weights;
use rb_engine::config::{Engine, EngineConfig};
use rb_engine::monitors::SuiteChoice;
use rb_engine::policy::Policy;
use rb_engine::policy::routing::Routing;
use rb_engine::policy::token_budget::TokenBudget;
use rb_engine::run::{Assessment, Reading};
use rb_engine::step::StepIndex;
use rb_store::Scores;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Metadata key of the token budget of a run.
pub const TOKEN_BUDGET: &str = "token_budget";
/// Metadata key of the model routes of a run.
pub const MODEL_ROUTING: &str = "model_routing";

/// Monitor suites that fire on a trace.
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
    let policy = Policy::of_suite(suite.choice());
    build(embedder, EngineConfig { policy, weights, ..EngineConfig::default() })
}

/// Builds the engine of a run that arrives step by step, with budget and routing from its metadata. Invalid metadata is
/// rejected when a run starts; in rows of other origins it is ignored.
pub fn run_engine(
    embedder: &Arc<dyn Embedder>,
    policy: Policy,
    weights: Weights,
    metadata: &Map<String, Value>,
) -> Arc<Engine> {
    let config = EngineConfig {
        policy,
        weights,
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

/// Explanation of a monitor at its threshold, with the steps it refers to.
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

/// Scores of the suites that fire.
pub fn firing_scores(assessment: &Assessment, policy: &Policy) -> Scores {
    let firing = assessment.readings.iter().filter(|reading| policy.fires(reading.monitor.suite));
    firing.map(|reading| (Cow::Borrowed(reading.monitor.id), reading.score)).collect()
}

pub fn fired(assessment: &Assessment) -> Vec<String> {
    assessment.fired().map(|reading| reading.monitor.id.to_owned()).collect()
}

/// Names of the quiet signals.
pub fn signals(assessment: &Assessment) -> Vec<String> {
    assessment.signals().map(|reading| reading.monitor.id.to_owned()).collect()
}

/// Evidence of the fired monitors, as in replies; `step_index` maps a position of the engine to the public step index.
pub fn evidence(assessment: &Assessment, step_index: impl Fn(u32) -> u32) -> Vec<Evidence> {
    evidence_of(assessment.fired(), step_index)
}

/// Evidence of the fired monitors and of the quiet signals, as stored.
pub fn recorded_evidence(
    assessment: &Assessment,
    step_index: impl Fn(u32) -> u32,
) -> Vec<rb_store::Evidence> {
    let recorded = assessment.fired().chain(assessment.signals());
    evidence_of(recorded, step_index).into_iter().map(Evidence::into_row).collect()
}

fn evidence_of<'a>(
    readings: impl Iterator<Item = &'a Reading>,
    step_index: impl Fn(u32) -> u32,
) -> Vec<Evidence> {
    let evidence = readings.filter_map(|reading| {
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
