//! Configuration of the gateway.

use std::collections::BTreeMap;
use std::time::Duration;

use rb_engine::policy::{Integration, Placement};
use serde::Deserialize;
use serde::de::Error as _;

use crate::base_urls::BaseUrls;
use crate::budget::BudgetConfig;
use crate::mode::{Experiment, Mode};
use crate::upstream::RawUpstream;

/// The gateway's settings.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct GatewayConfig {
    /// Base URL of each provider; also rejects unknown settings.
    #[serde(flatten)]
    pub base_urls: BaseUrls,
    /// Further upstreams, under `/up/<name>`.
    pub upstreams: Vec<RawUpstream>,
    /// What is done with runs that say nothing else.
    pub mode: Mode,
    /// What is done with the runs of single keys, by key id.
    pub key_modes: BTreeMap<String, Mode>,
    /// Position of guidance in a request.
    #[serde(deserialize_with = "placement")]
    pub placement: Placement,
    /// Splits runs into arms.
    pub experiment: Option<Experiment>,
    /// Hard limits.
    pub budget: BudgetConfig,
    /// The model for each state of a run, such as `SLOW = "claude-opus-4-8"`; off where nothing is named.
    pub routing: BTreeMap<String, String>,
    /// How often the model of a run may be changed.
    pub routing_switches_max: u32,
    /// Alias of the server's `standing_rules`.
    pub standing_rules: bool,
    /// Longer requests are refused.
    pub watched_bytes_max: usize,
    /// Whoever reaches the gateway may use it without a key, whatever the API asks for: it was started for one child.
    #[serde(skip)]
    pub is_keyless: bool,
    /// An Anthropic stream that is silent for so long gets a ping. Clients show a warning after about twenty seconds.
    #[serde(skip)]
    pub silence_max: Duration,
    /// What was not found out about a request within so many milliseconds is left out, and the request goes on its way.
    #[serde(rename = "decided_within_ms", deserialize_with = "millis")]
    pub decided_within: Duration,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            base_urls: BaseUrls::default(),
            upstreams: Vec::new(),
            mode: Mode::default(),
            key_modes: BTreeMap::new(),
            placement: Placement::default_of(Integration::Gateway),
            experiment: None,
            budget: BudgetConfig::default(),
            routing: BTreeMap::new(),
            routing_switches_max: 4,
            standing_rules: false,
            watched_bytes_max: 64 << 20,
            is_keyless: false,
            silence_max: Duration::from_secs(15),
            decided_within: Duration::from_millis(50),
        }
    }
}

fn placement<'de, D: serde::Deserializer<'de>>(given: D) -> Result<Placement, D::Error> {
    let name = String::deserialize(given)?;
    Placement::from_name(&name).ok_or_else(|| {
        D::Error::custom(format!("invalid `placement` ({name}): use tail or system"))
    })
}

fn millis<'de, D: serde::Deserializer<'de>>(given: D) -> Result<Duration, D::Error> {
    u64::deserialize(given).map(Duration::from_millis)
}
