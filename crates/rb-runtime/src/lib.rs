//! Application services of ReasonBlocks, shared by the gateway, the API and the dashboard.
//!
//! This crate has no HTTP server and no HTML. Services take what they need; `Runtime` only holds them.

/// API keys and callers.
pub mod auth;
/// Bounded caches.
pub mod cache;
/// Current time and its formats.
pub mod clock;
/// Event relay between nodes.
pub mod cluster;
/// Event bus.
pub mod events;
/// Experiment reports.
pub mod experiments;
/// Outgoing HTTP.
pub mod http_client;
/// Import of recorded runs.
pub mod import;
/// Edits of patterns and profiles.
pub mod library;
/// Length limits.
pub mod limits;
/// Prometheus metrics.
pub mod metrics;
/// Messages from operators to running agents.
pub mod operator_messages;
/// Export to an OpenTelemetry collector.
pub mod otlp_export;
/// Buffer of open OTLP traces.
pub mod otlp_traces;
/// Token prices.
pub mod prices;
/// Monitor weights.
pub mod profiles;
/// Deletion of old runs.
pub mod retention;
/// Patterns and findings by meaning.
pub mod retrieval;
/// Live runs.
pub mod runs;
/// Metrics and events of steps.
pub mod telemetry;
/// Queue of changes for the store.
pub mod write_queue;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rb_engine::analysis::embedding::Embedder;
use rb_engine::policy::Policy;
use rb_store::Store;

use auth::Keys;
use events::Events;
use library::{PatternLibrary, ProfileLibrary};
use metrics::Metrics;
use operator_messages::OperatorMessages;
use otlp_traces::TraceBuffer;
use prices::{Price, Prices};
use profiles::Profiles;
use retrieval::embedding_backend::{EmbeddingBackend, EmbeddingConfig};
use retrieval::findings_index::FindingsIndex;
use retrieval::lookup::GuidanceLookup;
use retrieval::quota::GuidanceQuota;
use retrieval::{Gates, PatternRetriever, embedding, starter};
use runs::{LiveRuns, RunDependencies, RunLoader, RunService, TraceCache};
use write_queue::WriteQueue;

/// Settings of the services.
#[derive(Debug, Clone)]
pub struct RuntimeConfig {
    pub static_keys: Vec<String>,
    /// The server listens on this machine only.
    pub is_loopback: bool,
    pub gates: Gates,
    /// Policy of all runs.
    pub policy: Policy,
    /// Interventions per organisation and month.
    pub intervention_cap: Option<u64>,
    pub live_runs_max: usize,
    pub live_idle: Duration,
    pub embedding: EmbeddingConfig,
    pub prices: BTreeMap<String, Price>,
}

/// The services.
pub struct Runtime {
    pub store: Arc<dyn Store>,
    pub keys: Keys,
    pub metrics: Arc<Metrics>,
    pub events: Arc<Events>,
    pub prices: Arc<Prices>,
    pub profiles: Arc<Profiles>,
    pub profile_library: ProfileLibrary,
    /// Embedder of the monitors.
    pub embedder: Arc<dyn Embedder>,
    pub runs: RunService,
    /// Changes that no request waits for.
    pub write_queue: WriteQueue,
    pub trace_cache: TraceCache,
    pub patterns: Arc<PatternRetriever>,
    pub pattern_library: PatternLibrary,
    pub guidance: Arc<GuidanceLookup>,
    pub findings: FindingsIndex,
    pub messages: Arc<OperatorMessages>,
    pub otlp_traces: TraceBuffer,
}

/// Reason why the services did not start.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error(transparent)]
    Store(#[from] rb_store::StoreError),
    /// The folder with the sentence transformer cannot be used.
    #[error("`embedding_model_dir`: {0}")]
    Embedding(#[from] rb_embed::TransformerError),
}

impl Runtime {
    pub async fn new(config: RuntimeConfig, store: Arc<dyn Store>) -> Result<Self, RuntimeError> {
        starter::load_once(&*store).await?;
        let backend = EmbeddingBackend::open(&config.embedding)?;
        let embedder =
            backend.as_ref().map_or_else(embedding::builtin, EmbeddingBackend::monitor_embedder);
        let metrics = Arc::new(Metrics::new());
        let patterns = PatternRetriever::new(Arc::clone(&store), config.gates, backend);
        patterns.preload();
        let keys = Keys::new(&config.static_keys, config.is_loopback);
        let _ = keys.is_open(&*store).await; // fills the cache, which answers while the store is unavailable
        let profiles = Arc::new(Profiles::default());
        let guidance = Arc::new(GuidanceLookup::new(
            Arc::clone(&store),
            Arc::clone(&patterns),
            GuidanceQuota::new(config.intervention_cap),
            metrics.failed_open.clone(),
        ));
        let write_queue = WriteQueue::start(Arc::clone(&store), metrics.telemetry_dropped.clone());
        let events = Arc::new(Events::new());
        let messages = Arc::new(OperatorMessages::new(Arc::clone(&store)).await);
        let prices = Arc::new(Prices::new(config.prices));
        let runs = RunService::new(RunDependencies {
            store: Arc::clone(&store),
            loader: RunLoader::new(
                Arc::clone(&store),
                Arc::clone(&profiles),
                Arc::clone(&embedder),
                config.policy,
                metrics.replays.clone(),
            ),
            guidance: Arc::clone(&guidance),
            patterns: Arc::clone(&patterns),
            messages: Arc::clone(&messages),
            metrics: Arc::clone(&metrics),
            events: Arc::clone(&events),
            prices: Arc::clone(&prices),
            queue: write_queue.clone(),
            live_runs: LiveRuns::new(
                config.live_runs_max,
                config.live_idle,
                metrics.live_runs.clone(),
            ),
        });
        Ok(Self {
            keys,
            runs,
            write_queue,
            trace_cache: TraceCache::new(config.live_runs_max),
            messages,
            pattern_library: PatternLibrary::new(Arc::clone(&store), Arc::clone(&patterns)),
            patterns,
            guidance,
            embedder,
            metrics,
            events,
            prices,
            profile_library: ProfileLibrary::new(Arc::clone(&store), Arc::clone(&profiles)),
            profiles,
            findings: FindingsIndex::default(),
            otlp_traces: TraceBuffer::default(),
            store,
        })
    }

    /// Returns `true` while requests need no key; `false` if that is unknown.
    pub async fn is_open(&self) -> bool {
        self.keys.is_open(&*self.store).await.unwrap_or(false)
    }
}
