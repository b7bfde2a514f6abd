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

/// Settings of the gateway.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub struct GatewayConfig {
    /// Base URL of each provider; also rejects unknown settings.
    #[serde(flatten)]
    pub base_urls: BaseUrls,
    /// Further upstreams, at `/up/<name>`.
    pub upstreams: Vec<RawUpstream>,
    /// Default mode.
    pub mode: Mode,
    /// Modes by key id.
    pub key_modes: BTreeMap<String, Mode>,
    /// Position of guidance in a request.
    #[serde(deserialize_with = "placement")]
    pub placement: Placement,
    /// Experiment that assigns runs to arms.
    pub experiment: Option<Experiment>,
    /// Hard limits.
    pub budget: BudgetConfig,
    /// Model by run state, such as `SLOW = "claude-opus-4-8"`; empty disables routing.
    pub routing: BTreeMap<String, String>,
    /// Maximum number of model switches of a run.
    pub routing_switches_max: u32,
    /// Alias of the server's `standing_rules`.
    pub standing_rules: bool,
    /// Maximum size of a request body, in bytes.
    #[serde(alias = "watched_bytes_max")]
    pub max_request_bytes: usize,
    /// Requires no key, even if the API does; for a gateway of one child process.
    #[serde(skip)]
    pub is_keyless: bool,
    /// Idle time of an Anthropic stream after which a ping is sent. Clients warn after about 20 seconds.
    #[serde(skip)]
    pub ping_interval: Duration,
    /// Maximum time to decide on a request; afterwards it is forwarded unmodified.
    #[serde(
        rename = "decision_timeout_ms",
        alias = "decided_within_ms",
        deserialize_with = "millis"
    )]
    pub decision_timeout: Duration,
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
            max_request_bytes: 64 << 20,
            is_keyless: false,
            ping_interval: Duration::from_secs(15),
            decision_timeout: Duration::from_millis(50),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_names_of_settings_are_accepted() {
        let cases = [
            r#"{"decision_timeout_ms": 7, "max_request_bytes": 9}"#,
            r#"{"decided_within_ms": 7, "watched_bytes_max": 9}"#,
        ];
        for text in cases {
            let config: GatewayConfig = serde_json::from_str(text).unwrap();
            assert_eq!(config.decision_timeout, Duration::from_millis(7), "{text}");
            assert_eq!(config.max_request_bytes, 9, "{text}");
        }
    }
}
