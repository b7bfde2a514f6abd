//! Metrics and events of steps, emitted in one place for every way a step enters a run.
//!
//! The API stores a step once it is complete and emits `StepStored`. The gateway stores a step when the request is
//! sent and completes it later, so it emits the parts as they become known: `StepAssessed`, `GuidanceInjected`
//! and `StepCharged`.

use rb_engine::monitors;
use rb_store::StepRow;

use crate::events::{Events, StepEvent};
use crate::metrics::{InjectionLabels, Metrics, MonitorLabels};

/// A complete step was stored.
pub struct StepStored<'a> {
    pub row: &'a StepRow,
    /// Row that was replaced. What it had is not counted again.
    pub before: Option<&'a StepRow>,
}

impl StepStored<'_> {
    pub fn emit(self, metrics: &Metrics, events: &Events) {
        let Self { row, before } = self;
        let (cost, sources) =
            before.map_or((0.0, 0), |row| (row.cost_usd, row.injection_sources.len()));
        StepCharged { usd: (row.cost_usd - cost).max(0.0) }.emit(metrics);
        let sources = row.injection_sources.get(sources..).unwrap_or_default();
        GuidanceInjected { sources }.emit(metrics);
        StepAssessed { row, before }.emit(metrics, events);
    }
}

/// A new step was stored with its scores; its cost and its guidance are counted separately.
pub struct StepAssessed<'a> {
    pub row: &'a StepRow,
    /// Row that was replaced. What it had is not counted again.
    pub before: Option<&'a StepRow>,
}

impl StepAssessed<'_> {
    pub fn emit(self, metrics: &Metrics, events: &Events) {
        let Self { row, before } = self;
        if before.is_none() {
            metrics.steps.inc();
        }
        let is_new = |id: &&String| before.is_none_or(|before| !before.fired.contains(id));
        for spec in row.fired.iter().filter(is_new).filter_map(|id| monitors::find(id)) {
            metrics.monitor_fired.get_or_create(&MonitorLabels { monitor: spec.id }).inc();
        }
        StepAmended { row }.emit(events);
    }
}

/// A stored step was amended. Publishes the event without counting the step again.
pub struct StepAmended<'a> {
    pub row: &'a StepRow,
}

impl StepAmended<'_> {
    pub fn emit(self, events: &Events) {
        events.publish(|| StepEvent::of(self.row, &self.row.project));
    }
}

/// Guidance reached the model; `sources` has one entry per fragment.
pub struct GuidanceInjected<'a> {
    pub sources: &'a [String],
}

impl GuidanceInjected<'_> {
    pub fn emit(self, metrics: &Metrics) {
        for source in self.sources {
            let source = source_label(source);
            metrics.injections.get_or_create(&InjectionLabels { source }).inc();
        }
    }
}

/// The model call of a step was billed.
pub struct StepCharged {
    pub usd: f64,
}

impl StepCharged {
    pub fn emit(self, metrics: &Metrics) {
        metrics.cost_usd.inc_by(self.usd);
    }
}

/// Maps a source name reported by a client to a bounded set of label values.
fn source_label(source: &str) -> &'static str {
    match source {
        "monitor" | "RemoteMonitorSteering" => "monitor",
        "budget" => "budget",
        "hand" => "hand",
        "e1" | "E1Injection" => "e1",
        "e2" | "E2Injection" => "e2",
        "e3" | "E3Injection" => "e3",
        _ => "other",
    }
}
