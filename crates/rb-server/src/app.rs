//! What all requests share.

use std::sync::Arc;

use rb_engine::analysis::embedding::Embedder;
use rb_store::Store;

use crate::auth::Keys;
use crate::cap::Cap;
use crate::config::Config;
use crate::dashboard::Sessions;
use crate::doorkeeper::Rates;
use crate::events::{Events, RunsHeard};
use crate::gateway::Gateway;
use crate::hands::Hands;
use crate::homes::Homes;
use crate::library::meaning::Better;
use crate::library::{Gates, Library, starter};
use crate::live::LiveRuns;
use crate::metrics::Metrics;
use crate::prefix::Prefixes;
use crate::prices::Prices;
use crate::profiles::Profiles;
use crate::recall::Recall;
use crate::seconded;
use crate::spans::Traces;

/// The server's state.
pub struct App {
    pub(crate) config: Config,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keys: Keys,
    pub(crate) rates: Rates,
    pub(crate) metrics: Metrics,
    pub(crate) events: Events,
    pub(crate) prices: Prices,
    pub(crate) profiles: Profiles,
    pub(crate) live: LiveRuns,
    pub(crate) hands: Arc<Hands>,
    pub(crate) homes: Homes,
    pub(crate) prefixes: Prefixes,
    pub(crate) patterns: Arc<Library>,
    /// What the monitors compare meanings by.
    pub(crate) embedder: Arc<dyn Embedder>,
    pub(crate) cap: Cap,
    pub(crate) recall: Recall,
    pub(crate) gateway: Gateway,
    pub(crate) sessions: Sessions,
    pub(crate) traces: Traces,
}

/// The state as handlers have it.
pub type Shared = Arc<App>;

/// Why the server will not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Everybody who can reach the address could read and steer every run.
    #[error(
        "`{listen}` can be reached from other machines and there is no key: make one with \
         `rb keys create`, set `REASONBLOCKS_KEYS`, or listen on 127.0.0.1"
    )]
    Open { listen: std::net::SocketAddr },
    #[error(transparent)]
    Store(#[from] rb_store::StoreError),
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    /// The folder with the sentence transformer cannot be used.
    #[error("`embedding_model_dir`: {0}")]
    Embedding(#[from] rb_embed::TransformerError),
}

impl App {
    /// The state of a server that is about to start. Refuses to be open to other machines.
    pub async fn new(config: Config, store: Arc<dyn Store>) -> Result<Shared, StartError> {
        let is_loopback = config.listen.ip().is_loopback();
        if !is_loopback && config.static_keys.is_empty() && store.keys().await?.is_empty() {
            return Err(StartError::Open { listen: config.listen });
        }
        starter::load_once(&*store).await?;
        let gates = Gates { e1: config.e1_gate, e2: config.e2_gate };
        let better = Better::open(&config.embedding)?;
        let embedder = better.as_ref().map_or_else(seconded::packed, Better::for_monitors);
        let metrics = Metrics::new();
        let lost = metrics.telemetry_dropped.clone();
        let gateway = config.gateway.clone();
        let gateway = Gateway::new(gateway, Arc::clone(&store), config.live_runs_max, lost)?;
        let patterns = Library::new(Arc::clone(&store), gates, better);
        patterns.read_ahead();
        let keys = Keys::new(&config.static_keys, is_loopback);
        let _ = keys.is_open(&*store).await; // remembered for a time when the store is away
        Ok(Arc::new(Self {
            keys,
            live: LiveRuns::new(config.live_runs_max, config.live_idle, metrics.live_runs.clone()),
            hands: Arc::new(Hands::new(Arc::clone(&store)).await),
            homes: Homes::default(),
            prefixes: Prefixes::new(config.live_runs_max),
            patterns,
            embedder,
            cap: Cap::new(config.intervention_cap),
            rates: Rates::new(config.rate_per_sec, config.rate_burst),
            metrics,
            events: Events::new(),
            prices: Prices::new(config.prices.clone()),
            profiles: Profiles::default(),
            recall: Recall::default(),
            gateway,
            sessions: Sessions::default(),
            traces: Traces::default(),
            store,
            config,
        }))
    }

    /// Notes which runs are heard of from now on.
    pub fn runs_heard(&self) -> RunsHeard {
        RunsHeard::new(&self.events)
    }

    /// Where somebody who sits at this machine can sign in, once and soon; `None` while no key is needed.
    pub async fn sign_in_path(&self) -> Option<String> {
        if self.is_open().await {
            return None;
        }
        self.sessions.new_link().map(|secret| format!("/ui/enter?link={secret}"))
    }

    /// Whether requests need no key at the moment.
    pub async fn is_open(&self) -> bool {
        self.keys.is_open(&*self.store).await.unwrap_or(false)
    }
}
