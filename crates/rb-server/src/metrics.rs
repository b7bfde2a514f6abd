//! What the server counts, for Prometheus.
//!
//! No label has values that a client chooses: routes are templates, models are families, monitors are ours.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use rb_store::BacklogState;

use crate::export::Counters as Exported;

/// From a tenth of a millisecond to ten seconds.
const SECONDS: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    pub(crate) route: String,
    pub(crate) status: u16,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct RouteLabels {
    pub(crate) route: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct MonitorLabels {
    pub(crate) monitor: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct InjectionLabels {
    pub(crate) source: &'static str,
}

/// The counters. Each is described where it is registered.
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) requests: Family<RequestLabels, Counter>,
    pub(crate) request_seconds: Family<RouteLabels, Histogram, fn() -> Histogram>,
    pub(crate) monitor_fired: Family<MonitorLabels, Counter>,
    pub(crate) injections: Family<InjectionLabels, Counter>,
    pub(crate) steps: Counter,
    pub(crate) replays: Counter,
    pub(crate) overtaken: Counter,
    pub(crate) failed_open: Counter,
    pub(crate) cache_fuses: Counter,
    pub(crate) telemetry_dropped: Counter,
    pub(crate) exported: Exported,
    pub(crate) live_runs: Gauge,
    pub(crate) streams_open: Gauge,
    backlog_bytes: Gauge,
    store_away: Gauge,
    pub(crate) cost_usd: Counter<f64, AtomicU64>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut all = Registry::with_prefix("reasonblocks");
        let seconds: fn() -> Histogram = || Histogram::new(SECONDS);
        let this = Self {
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(seconds),
            monitor_fired: Family::default(),
            injections: Family::default(),
            steps: Counter::default(),
            replays: Counter::default(),
            overtaken: Counter::default(),
            failed_open: Counter::default(),
            cache_fuses: Counter::default(),
            telemetry_dropped: Counter::default(),
            exported: Exported::default(),
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
        all.register("injections", "Pieces of guidance given out", this.injections.clone());
        all.register("steps", "Steps stored", this.steps.clone());
        all.register("replays", "Runs rebuilt from their stored steps", this.replays.clone());
        let about = "Steps that were read anew because another node was faster";
        all.register("steps_overtaken", about, this.overtaken.clone());
        all.register(
            "failed_open",
            "Requests answered without guidance because something failed",
            this.failed_open.clone(),
        );
        all.register(
            "cache_fuses",
            "Runs that are steered no more for the sake of their cache",
            this.cache_fuses.clone(),
        );
        all.register(
            "telemetry_dropped",
            "Changes that did not fit into the queue to the store",
            this.telemetry_dropped.clone(),
        );
        let Exported { sent, lost } = this.exported.clone();
        all.register("findings_exported", "Findings sent to the OpenTelemetry collector", sent);
        all.register("findings_lost", "Findings that could not be exported", lost);
        all.register("live_runs", "Runs whose state is in memory", this.live_runs.clone());
        all.register("streams_open", "Open event streams", this.streams_open.clone());
        let about = "Bytes on disk that wait for a database that is away";
        all.register("backlog_bytes", about, this.backlog_bytes.clone());
        let about = "Whether something waits for a database that is away";
        all.register("store_away", about, this.store_away.clone());
        all.register("cost_usd", "Cost of the stored steps", this.cost_usd.clone());
        Self { registry: all, ..this }
    }

    /// How much waits for the database at the moment.
    pub(crate) fn note_backlog(&self, waiting: BacklogState) {
        self.backlog_bytes.set(i64::try_from(waiting.bytes).unwrap_or(i64::MAX));
        self.store_away.set(i64::from(waiting.is_pending));
    }

    /// Everything, as Prometheus reads it.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }
}
