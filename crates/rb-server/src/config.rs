//! Settings from a TOML file, the environment and flags, in increasing precedence.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use rb_engine::policy::Policy;
use rb_wire::providers::PROVIDERS;
use serde::Deserialize;

use rb_gateway::{GatewayConfig, Mode};
use rb_runtime::otlp_export::{ExportConfig, ExportRaw};
use rb_runtime::prices::Price;
use rb_runtime::retrieval::embedding_backend::EmbeddingConfig;

/// Settings before validation. All fields are optional.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RawConfig {
    /// Listen address.
    pub listen: String,
    /// Folder of the database and the backlog; the user's data folder if empty.
    pub data_dir: PathBuf,
    /// Database URL; SQLite in `data_dir` if empty.
    pub database_url: String,
    /// Maximum size of the on-disk backlog while the shared database is unavailable, in bytes.
    pub backlog_bytes_max: u64,
    /// Operator keys.
    pub static_keys: Vec<String>,
    /// External URL, such as `https://rb.example.com`; the listen address if empty.
    pub public_url: String,
    /// Requests per second and key.
    pub rate_limit_per_sec: u32,
    /// Burst size per key.
    pub rate_limit_burst: u32,
    /// Maximum size of a request body of the API, in bytes.
    pub max_body_bytes: usize,
    /// Origins that may call the API from a browser.
    pub cors_allowed_origins: Vec<String>,
    /// Allows pages served from this machine as well.
    pub cors_allow_dev_origins: bool,
    /// Minimum similarity of an E1 pattern.
    pub e1_sim_gate: f64,
    /// Minimum similarity of an E2 pattern.
    pub e2_sim_gate: f64,
    /// Adds the standing rules of the library (E3) to the first call of every run.
    pub standing_rules: bool,
    /// Idle time in days after which runs are deleted; 0 keeps them.
    pub retention_days: u32,
    /// Guidance quota per organisation and month; 0 is unlimited.
    pub intervention_cap: u64,
    /// Enforces the quota.
    pub intervention_cap_enabled: bool,
    /// Maximum number of runs in memory; others are replayed on demand.
    pub live_runs_max: usize,
    /// Idle time in minutes after which a run is dropped from memory.
    pub live_idle_minutes: u64,
    /// Maximum time without data while a request body is received, in seconds.
    pub request_timeout_secs: u64,
    /// Folder with a sentence transformer, for retrieval and to confirm reworded searches; built-in vectors if empty.
    pub embedding_model_dir: PathBuf,
    /// OpenAI-compatible base URL for retrieval embeddings, such as `https://host/v1`; off if empty.
    pub embedding_url: String,
    /// Model of the embedding endpoint.
    pub embedding_model: String,
    /// Key of the embedding endpoint.
    pub embedding_key: String,
    /// Prices that override the built-in list.
    pub prices: BTreeMap<String, Price>,
    /// Settings of the gateway.
    pub gateway: GatewayConfig,
    /// Export of alarms to an OpenTelemetry collector.
    pub export: ExportRaw,
}

impl Default for RawConfig {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:9000".to_owned(),
            data_dir: PathBuf::new(),
            database_url: String::new(),
            backlog_bytes_max: 1 << 30,
            static_keys: Vec::new(),
            public_url: String::new(),
            rate_limit_per_sec: 200,
            rate_limit_burst: 400,
            max_body_bytes: 5_000_000,
            cors_allowed_origins: Vec::new(),
            cors_allow_dev_origins: false,
            e1_sim_gate: 0.8,
            e2_sim_gate: 0.7,
            standing_rules: false,
            retention_days: 0,
            intervention_cap: 0,
            intervention_cap_enabled: true,
            live_runs_max: 2_000,
            live_idle_minutes: 60,
            request_timeout_secs: 30,
            embedding_model_dir: PathBuf::new(),
            embedding_url: String::new(),
            embedding_model: "text-embedding-3-small".to_owned(),
            embedding_key: String::new(),
            prices: BTreeMap::new(),
            gateway: GatewayConfig::default(),
            export: ExportRaw::default(),
        }
    }
}

/// Validated settings.
#[derive(Debug, Clone)]
pub struct Config {
    pub listen: SocketAddr,
    pub static_keys: Vec<String>,
    /// Scheme and host, without a path.
    pub public_url: Option<String>,
    pub rate_per_sec: u32,
    pub rate_burst: u32,
    pub body_bytes_max: usize,
    pub cors_origins: Vec<String>,
    pub cors_dev: bool,
    pub e1_gate: f64,
    pub e2_gate: f64,
    pub policy: Policy,
    pub retention: Option<Duration>,
    pub intervention_cap: Option<u64>,
    pub live_runs_max: usize,
    pub live_idle: Duration,
    pub request_timeout: Duration,
    pub embedding: EmbeddingConfig,
    pub prices: BTreeMap<String, Price>,
    pub gateway: GatewayConfig,
    pub export: Option<ExportConfig>,
}

/// Setting that cannot work.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ConfigError {
    #[error("the configuration is not valid TOML for this program: {0}")]
    File(String),
    #[error("`{name}` is `{value}`: {wanted}")]
    Value { name: &'static str, value: String, wanted: &'static str },
}

/// Environment variable of a setting.
pub struct Variable {
    pub name: &'static str,
    pub about: &'static str,
    set: fn(&mut RawConfig, &str) -> Result<(), &'static str>,
}

/// Every variable of the server. Those with base URLs of providers are in the table of providers.
pub const VARIABLES: [Variable; 23] = [
    Variable {
        name: "RB_LISTEN",
        about: "where to listen, as `listen`",
        set: |raw, value| set(&mut raw.listen, value.to_owned()),
    },
    Variable {
        name: "RB_DATA_DIR",
        about: "the data folder, as `data_dir`",
        set: |raw, value| set(&mut raw.data_dir, value.into()),
    },
    Variable {
        name: "RB_DATABASE_URL",
        about: "another database, as `database_url`",
        set: |raw, value| set(&mut raw.database_url, value.to_owned()),
    },
    Variable {
        name: "REASONBLOCKS_KEYS",
        about: "the operator's keys, separated by commas",
        set: |raw, value| set(&mut raw.static_keys, list(value)),
    },
    Variable {
        name: "RB_PUBLIC_URL",
        about: "how people reach the server, as `public_url`",
        set: |raw, value| set(&mut raw.public_url, value.to_owned()),
    },
    Variable {
        name: "RATE_LIMIT_PER_SEC",
        about: "requests a second and key",
        set: |raw, value| set(&mut raw.rate_limit_per_sec, number(value)?),
    },
    Variable {
        name: "RATE_LIMIT_BURST",
        about: "requests a key may make at once",
        set: |raw, value| set(&mut raw.rate_limit_burst, number(value)?),
    },
    Variable {
        name: "MAX_BODY_BYTES",
        about: "larger bodies are refused",
        set: |raw, value| set(&mut raw.max_body_bytes, number(value)?),
    },
    Variable {
        name: "CORS_ALLOWED_ORIGINS",
        about: "origins whose pages may call the API, separated by commas",
        set: |raw, value| set(&mut raw.cors_allowed_origins, list(value)),
    },
    Variable {
        name: "CORS_ALLOW_DEV_ORIGINS",
        about: "`true` lets pages served from this machine call the API",
        set: |raw, value| set(&mut raw.cors_allow_dev_origins, switch(value)?),
    },
    Variable {
        name: "RB_E1_SIM_GATE",
        about: "how similar a situation must be for E1",
        set: |raw, value| set(&mut raw.e1_sim_gate, number(value)?),
    },
    Variable {
        name: "RB_E2_SIM_GATE",
        about: "how similar a situation must be for E2",
        set: |raw, value| set(&mut raw.e2_sim_gate, number(value)?),
    },
    Variable {
        name: "INTERVENTION_CAP_ENABLED",
        about: "`false` turns the monthly cap off",
        set: |raw, value| set(&mut raw.intervention_cap_enabled, switch(value)?),
    },
    Variable {
        name: "RB_MODE",
        about: "what the gateway does with runs: `steer`, `observe` or `off`",
        set: |raw, value| {
            let mode = Mode::from_name(value).ok_or("`steer`, `observe` or `off` is wanted")?;
            set(&mut raw.gateway.mode, mode)
        },
    },
    Variable {
        name: "RB_RETENTION_DAYS",
        about: "silent runs are deleted after so many days",
        set: |raw, value| set(&mut raw.retention_days, number(value)?),
    },
    Variable {
        name: "RB_EMBEDDING_MODEL_DIR",
        about: "a folder with a sentence transformer, for look-ups and to confirm rewordings",
        set: |raw, value| set(&mut raw.embedding_model_dir, value.into()),
    },
    Variable {
        name: "RB_EMBEDDING_URL",
        about: "an OpenAI-compatible address for retrieval's embeddings",
        set: |raw, value| set(&mut raw.embedding_url, value.to_owned()),
    },
    Variable {
        name: "RB_EMBEDDING_KEY",
        about: "the key to send there",
        set: |raw, value| set(&mut raw.embedding_key, value.to_owned()),
    },
    Variable {
        name: "OTEL_EXPORTER_OTLP_ENDPOINT",
        about: "a collector that findings go to, as `export.endpoint`",
        set: |raw, value| set(&mut raw.export.endpoint, value.to_owned()),
    },
    Variable {
        name: "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
        about: "the whole address for them, as `export.logs_endpoint`",
        set: |raw, value| set(&mut raw.export.logs_endpoint, value.to_owned()),
    },
    Variable {
        name: "OTEL_EXPORTER_OTLP_HEADERS",
        about: "headers to send there, as `name=value` with commas between",
        set: |raw, value| set(&mut raw.export.headers, ExportRaw::parse_headers(value)?),
    },
    Variable {
        name: "OTEL_EXPORTER_OTLP_PROTOCOL",
        about: "`http/protobuf` or `http/json`",
        set: |raw, value| set(&mut raw.export.protocol, value.to_owned()),
    },
    Variable {
        name: "OTEL_SERVICE_NAME",
        about: "what to call this server there",
        set: |raw, value| set(&mut raw.export.service_name, value.to_owned()),
    },
];

impl RawConfig {
    /// Parses a TOML file.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| ConfigError::File(error.to_string()))
    }

    /// Applies the environment; `lookup` returns the value of a variable.
    pub fn with_env(
        mut self,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        for variable in &VARIABLES {
            let Some(value) = lookup(variable.name).filter(|value| !value.is_empty()) else {
                continue;
            };
            (variable.set)(&mut self, value.trim()).map_err(|wanted| {
                // Secrets must not appear in an error.
                let secret = ["KEY", "HEADERS"].iter().any(|word| variable.name.contains(word));
                let value = if secret { "…".to_owned() } else { value.clone() };
                ConfigError::Value { name: variable.name, value, wanted }
            })?;
        }
        for provider in &PROVIDERS {
            if let Some(value) = lookup(provider.upstream_env).filter(|value| !value.is_empty()) {
                self.gateway.base_urls.set(provider.id, value.trim());
            }
        }
        Ok(self)
    }

    fn policy(&self) -> Policy {
        let standing_rules = self.standing_rules || self.gateway.standing_rules;
        Policy { standing_rules, ..Policy::default() }
    }

    /// Validates the settings.
    pub fn check(self) -> Result<Config, ConfigError> {
        let policy = self.policy();
        let wrong = |name, value: String, wanted| ConfigError::Value { name, value, wanted };
        let listen = self.listen.parse().map_err(|_| {
            wrong("listen", self.listen.clone(), "an address and a port such as `127.0.0.1:9000`")
        })?;
        for (name, gate) in [("e1_sim_gate", self.e1_sim_gate), ("e2_sim_gate", self.e2_sim_gate)] {
            if !(0.0..=1.0).contains(&gate) {
                return Err(wrong(name, gate.to_string(), "a number between 0 and 1"));
            }
        }
        for (name, value) in [
            ("rate_limit_per_sec", u64::from(self.rate_limit_per_sec)),
            ("rate_limit_burst", u64::from(self.rate_limit_burst)),
            ("max_body_bytes", self.max_body_bytes as u64),
            ("live_runs_max", self.live_runs_max as u64),
            ("live_idle_minutes", self.live_idle_minutes),
            ("request_timeout_secs", self.request_timeout_secs),
        ] {
            if value == 0 {
                return Err(wrong(name, "0".to_owned(), "a number of at least 1"));
            }
        }
        let has_folder = !self.embedding_model_dir.as_os_str().is_empty();
        let embedding = match (has_folder, self.embedding_url.as_str()) {
            (true, "") => EmbeddingConfig::Folder(self.embedding_model_dir),
            (true, url) => {
                let wanted = "an address, or `embedding_model_dir`, but not both";
                return Err(wrong("embedding_url", url.to_owned(), wanted));
            }
            (false, "") => EmbeddingConfig::Builtin,
            (false, url) if url.starts_with("http://") || url.starts_with("https://") => {
                EmbeddingConfig::Endpoint {
                    url: url.trim_end_matches('/').to_owned(),
                    model: self.embedding_model,
                    key: self.embedding_key,
                }
            }
            (false, url) => {
                let wanted = "an address that begins with `http://` or `https://`";
                return Err(wrong("embedding_url", url.to_owned(), wanted));
            }
        };
        let export = self.export.check().map_err(|(name, value, wanted)| {
            let name = match name {
                "protocol" => "OTEL_EXPORTER_OTLP_PROTOCOL",
                "headers" => "OTEL_EXPORTER_OTLP_HEADERS",
                "logs_endpoint" => "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
                _ => "OTEL_EXPORTER_OTLP_ENDPOINT",
            };
            wrong(name, value, wanted)
        })?;
        let public_url = public_url(&self.public_url).ok_or_else(|| {
            let wanted = "scheme and host without a path, such as `https://rb.example.com`";
            wrong("public_url", self.public_url.clone(), wanted)
        })?;
        let days = u64::from(self.retention_days);
        let capped = self.intervention_cap_enabled && self.intervention_cap > 0;
        Ok(Config {
            listen,
            static_keys: self.static_keys,
            public_url,
            rate_per_sec: self.rate_limit_per_sec,
            rate_burst: self.rate_limit_burst,
            body_bytes_max: self.max_body_bytes,
            cors_origins: self.cors_allowed_origins,
            cors_dev: self.cors_allow_dev_origins,
            e1_gate: self.e1_sim_gate,
            e2_gate: self.e2_sim_gate,
            policy,
            retention: (days > 0).then(|| Duration::from_secs(days * 86_400)),
            intervention_cap: capped.then_some(self.intervention_cap),
            live_runs_max: self.live_runs_max,
            live_idle: Duration::from_secs(self.live_idle_minutes * 60),
            request_timeout: Duration::from_secs(self.request_timeout_secs),
            embedding,
            prices: self.prices,
            gateway: self.gateway,
            export,
        })
    }
}

/// Normalises a URL: `Some(None)` if it is empty, `None` if it is invalid.
#[expect(clippy::option_option, reason = "absent is fine, wrong is not")]
fn public_url(given: &str) -> Option<Option<String>> {
    let given = given.trim_end_matches('/');
    if given.is_empty() {
        return Some(None);
    }
    let host = given.strip_prefix("https://").or_else(|| given.strip_prefix("http://"))?;
    let is_host = !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']);
    is_host.then(|| Some(given.to_owned()))
}

#[expect(clippy::unnecessary_wraps, reason = "the table's entries may fail, and some do not")]
fn set<T>(field: &mut T, value: T) -> Result<(), &'static str> {
    *field = value;
    Ok(())
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, &'static str> {
    value.parse().map_err(|_| "a number is wanted")
}

fn switch(value: &str) -> Result<bool, &'static str> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err("`true` or `false` is wanted"),
    }
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_wins_over_the_file() {
        let raw = RawConfig::from_toml("max_body_bytes = 10\nlisten = \"[::1]:1\"").unwrap();
        let env = |name: &str| match name {
            "MAX_BODY_BYTES" => Some("20".to_owned()),
            "REASONBLOCKS_KEYS" => Some("a, b,,".to_owned()),
            _ => None,
        };
        let config = raw.with_env(env).unwrap().check().unwrap();
        assert_eq!(config.body_bytes_max, 20);
        assert_eq!(config.static_keys, ["a", "b"]);
        assert_eq!(config.listen.to_string(), "[::1]:1");
    }

    #[test]
    fn invalid_settings_are_errors() {
        let wrong = [
            (
                "listen = \"here\"",
                "`listen` is `here`: an address and a port such as `127.0.0.1:9000`",
            ),
            ("e1_sim_gate = 2.0", "`e1_sim_gate` is `2`: a number between 0 and 1"),
            (
                "public_url = \"rb.example.com\"",
                "`public_url` is `rb.example.com`: scheme and host without a path, such as `https://rb.example.com`",
            ),
            ("rate_limit_burst = 0", "`rate_limit_burst` is `0`: a number of at least 1"),
            (
                "embedding_url = \"host\"",
                "`embedding_url` is `host`: an address that begins with `http://` or `https://`",
            ),
            (
                "embedding_url = \"http://host\"\nembedding_model_dir = \"x\"",
                "`embedding_url` is `http://host`: an address, or `embedding_model_dir`, but not both",
            ),
        ];
        for (file, said) in wrong {
            assert_eq!(RawConfig::from_toml(file).unwrap().check().unwrap_err().to_string(), said);
        }
        assert!(RawConfig::from_toml("lisen = 1").unwrap_err().to_string().contains("lisen"));
        let env = |name: &str| (name == "CORS_ALLOW_DEV_ORIGINS").then(|| "maybe".to_owned());
        let error = RawConfig::default().with_env(env).unwrap_err().to_string();
        assert_eq!(error, "`CORS_ALLOW_DEV_ORIGINS` is `maybe`: `true` or `false` is wanted");
    }

    #[test]
    fn an_empty_file_is_the_default() {
        assert_eq!(RawConfig::from_toml("").unwrap(), RawConfig::default());
        assert!(RawConfig::default().check().is_ok());
    }
}
