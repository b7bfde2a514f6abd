//! Composition of the surfaces.

use std::sync::Arc;

use rb_api::Api;
use rb_dashboard::Dashboard;
use rb_gateway::Gateway;
use rb_runtime::events::SeenRuns;
use rb_runtime::retrieval::Gates;
use rb_runtime::{Runtime, RuntimeConfig, RuntimeError};
use rb_store::Store;

use crate::config::Config;

/// Services and surfaces.
pub struct App {
    pub(crate) config: Config,
    pub runtime: Arc<Runtime>,
    pub gateway: Arc<Gateway>,
    pub(crate) api: Arc<Api>,
    pub(crate) dashboard: Arc<Dashboard>,
}

/// Shared application state.
pub type Shared = Arc<App>;

/// Reason why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Without a key, every client in the network could read and steer all runs.
    #[error(
        "`{listen}` can be reached from other machines and there is no key: make one with \
         `rb keys create`, set `REASONBLOCKS_KEYS`, or listen on 127.0.0.1"
    )]
    Open { listen: std::net::SocketAddr },
    #[error(transparent)]
    Store(#[from] rb_store::StoreError),
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    #[error(transparent)]
    Gateway(#[from] rb_gateway::ConfigError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl App {
    /// Builds the services and surfaces. Fails if other machines can reach the server without a key.
    pub async fn new(config: Config, store: Arc<dyn Store>) -> Result<Shared, StartError> {
        let is_loopback = config.listen.ip().is_loopback();
        if !is_loopback && config.static_keys.is_empty() && store.keys().await?.is_empty() {
            return Err(StartError::Open { listen: config.listen });
        }
        let settings = RuntimeConfig {
            static_keys: config.static_keys.clone(),
            is_loopback,
            gates: Gates { e1: config.e1_gate, e2: config.e2_gate },
            policy: config.policy,
            intervention_cap: config.intervention_cap,
            live_runs_max: config.live_runs_max,
            live_idle: config.live_idle,
            embedding: config.embedding.clone(),
            prices: config.prices.clone(),
        };
        let runtime = Arc::new(Runtime::new(settings, store).await?);
        let gateway =
            Gateway::new(config.gateway.clone(), Arc::clone(&runtime), config.live_runs_max)?;
        let api = Api::new(Arc::clone(&runtime), config.body_bytes_max, config.intervention_cap);
        let dashboard =
            Dashboard::new(Arc::clone(&runtime), config.public_url.clone(), config.listen);
        Ok(Arc::new(Self {
            runtime,
            gateway: Arc::new(gateway),
            api: Arc::new(api),
            dashboard: Arc::new(dashboard),
            config,
        }))
    }

    /// Starts to collect the runs with new steps.
    pub fn seen_runs(&self) -> SeenRuns {
        SeenRuns::new(&self.runtime.events)
    }

    /// Path of a one-time sign-in link; `None` while no key is needed.
    pub async fn sign_in_path(&self) -> Option<String> {
        self.dashboard.sign_in_path().await
    }

    /// Returns `true` while requests need no key; `false` if that is unknown.
    pub async fn is_open(&self) -> bool {
        self.runtime.is_open().await
    }
}
