//! Runs and steps as the API of the server returns them.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Run as listed by the server.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RunSummary {
    pub(crate) run_id: String,
    pub(crate) org_id: String,
    pub(crate) agent_name: String,
    pub(crate) task: String,
    pub(crate) model: String,
    pub(crate) outcome: Option<String>,
    pub(crate) started_at: String,
    pub(crate) last_seen_at: String,
    pub(crate) step_count: u64,
    pub(crate) tokens: u64,
    pub(crate) cost_usd: f64,
    pub(crate) metadata: Metadata,
    pub(crate) injected_steps: u64,
    pub(crate) fires_by_monitor: BTreeMap<String, u64>,
}

/// Step, from the event stream or with its run. Events have no texts.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RunStep {
    pub(crate) run_id: String,
    pub(crate) org_id: String,
    #[serde(rename = "step_index")]
    pub(crate) index: u64,
    pub(crate) total_score: f64,
    pub(crate) thought: String,
    pub(crate) action: Option<String>,
    pub(crate) action_input: Option<String>,
    pub(crate) is_error: bool,
    pub(crate) tokens: u64,
    pub(crate) cache_read_tokens: u64,
    pub(crate) cost_usd: f64,
    pub(crate) fired: Vec<String>,
    pub(crate) signals: Vec<String>,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) intervention_texts: Vec<String>,
    pub(crate) injections: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Metadata {
    /// Mode of the gateway.
    pub(crate) mode: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Evidence {
    pub(crate) monitor: String,
    pub(crate) text: String,
}

/// Run with its steps, or the newest of them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RunDetail {
    #[serde(flatten)]
    pub(crate) summary: RunSummary,
    pub(crate) steps: Vec<RunStep>,
}
