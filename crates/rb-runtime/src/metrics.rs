//! Prometheus metrics.
//!
//! Label values are never chosen by clients: routes are templates, models are families, monitors are those of the engine.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use rb_store::BacklogState;

/// Histogram buckets from a tenth of a millisecond to ten seconds.
const BUCKETS_SECONDS: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct RequestLabels {
    pub route: String,
    pub status: u16,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct RouteLabels {
    pub route: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct MonitorLabels {
    pub monitor: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct InjectionLabels {
    pub source: &'static str,
}

/// Counters of exported findings.
#[derive(Debug, Clone, Default)]
pub struct ExportCounters {
    pub sent: Counter,
    pub lost: Counter,
}

/// All metrics of the process; `new` registers each with its description.
pub struct Metrics {
    registry: Registry,
    pub requests: Family<RequestLabels, Counter>,
    pub request_seconds: Family<RouteLabels, Histogram, fn() -> Histogram>,
    pub monitor_fired: Family<MonitorLabels, Counter>,
    pub injections: Family<InjectionLabels, Counter>,
    pub steps: Counter,
    pub replays: Counter,
    pub version_conflicts: Counter,
    pub failed_open: Counter,
    pub cache_guards_tripped: Counter,
    pub telemetry_dropped: Counter,
    pub exported: ExportCounters,
    pub live_runs: Gauge,
    pub streams_open: Gauge,
    backlog_bytes: Gauge,
    store_away: Gauge,
    pub cost_usd: Counter<f64, AtomicU64>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    pub fn new() -> Self {
        let mut all = Registry::with_prefix("reasonblocks");
        let seconds: fn() -> Histogram = || Histogram::new(BUCKETS_SECONDS);
        let this = Self {
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(seconds),
            monitor_fired: Family::default(),
            injections: Family::default(),
            steps: Counter::default(),
            replays: Counter::default(),
            version_conflicts: Counter::default(),
            failed_open: Counter::default(),
            cache_guards_tripped: Counter::default(),
            telemetry_dropped: Counter::default(),
            exported: ExportCounters::default(),
            live_runs: Gauge::default(),
            streams_open: Gauge::default(),
            backlog_bytes: Gauge::default(),
            store_away: Gauge::default(),
            cost_usd: Counter::default(),
            registry: Registry::default(),
        };
        all.register("requests", "Requests answered", this.requests.clone());
        all.register(
            "request_duration_seconds",
            "Time to answer a request",
            this.request_seconds.clone(),
        );
        all.register("monitor_fired", "Steps on which a monitor fired", this.monitor_fired.clone());
        all.register("injections", "Guidance fragments injected", this.injections.clone());
        all.register("steps", "Steps stored", this.steps.clone());
        all.register("replays", "Runs rebuilt from their stored steps", this.replays.clone());
        let about =
            "Version conflicts: a step was assessed again because another node changed the run";
        all.register("steps_overtaken", about, this.version_conflicts.clone());
        all.register(
            "failed_open",
            "Requests answered without guidance because of a failure",
            this.failed_open.clone(),
        );
        all.register(
            "cache_fuses",
            "Runs whose injections stopped because they broke the prompt cache",
            this.cache_guards_tripped.clone(),
        );
        all.register(
            "telemetry_dropped",
            "Changes dropped because the write queue was full",
            this.telemetry_dropped.clone(),
        );
        let ExportCounters { sent, lost } = this.exported.clone();
        all.register("findings_exported", "Findings sent to the OpenTelemetry collector", sent);
        all.register("findings_lost", "Findings that could not be exported", lost);
        all.register("live_runs", "Runs whose state is in memory", this.live_runs.clone());
        all.register("streams_open", "Open event streams", this.streams_open.clone());
        let about = "Bytes on disk waiting for an unavailable database";
        all.register("backlog_bytes", about, this.backlog_bytes.clone());
        let about = "1 while writes wait for an unavailable database";
        all.register("store_away", about, this.store_away.clone());
        all.register("cost_usd", "Cost of the stored steps", this.cost_usd.clone());
        Self { registry: all, ..this }
    }

    /// Records the size of the write backlog of an unavailable database.
    pub fn set_backlog(&self, backlog: BacklogState) {
        self.backlog_bytes.set(i64::try_from(backlog.bytes).unwrap_or(i64::MAX));
        self.store_away.set(i64::from(backlog.is_pending));
    }

    /// Encodes all metrics in the text format of Prometheus.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a `String` is infallible.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }
}
