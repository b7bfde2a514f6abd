//! Metrics and events of steps, emitted in one place for every way a step enters a run.
//!
//! The API stores a step once it is complete and emits [`StepStored`]. The gateway stores a step when the request is
//! sent and completes it later, so it emits the parts as they become known: [`StepAssessed`], [`GuidanceInjected`]
//! and [`StepCharged`].

use rb_engine::monitors;
use rb_store::StepRow;

use crate::app::App;
use crate::events::StepEvent;
use crate::metrics::{InjectionLabels, MonitorLabels};

/// A complete step was stored.
pub(crate) struct StepStored<'a> {
    pub(crate) row: &'a StepRow,
    pub(crate) project: &'a str,
}

impl StepStored<'_> {
    pub(crate) fn emit(self, app: &App) {
        StepCharged { usd: self.row.cost_usd }.emit(app);
        GuidanceInjected { sources: &self.row.injection_sources }.emit(app);
        StepAssessed { row: self.row, project: self.project }.emit(app);
    }
}

/// A new step was stored with its scores; its cost and its guidance are counted separately.
pub(crate) struct StepAssessed<'a> {
    pub(crate) row: &'a StepRow,
    pub(crate) project: &'a str,
}

impl StepAssessed<'_> {
    pub(crate) fn emit(self, app: &App) {
        app.metrics.steps.inc();
        for spec in self.row.fired.iter().filter_map(|id| monitors::find(id)) {
            app.metrics.monitor_fired.get_or_create(&MonitorLabels { monitor: spec.id }).inc();
        }
        StepChanged { row: self.row, project: self.project }.emit(app);
    }
}

/// A stored step was amended. Publishes the event without counting the step again.
pub(crate) struct StepChanged<'a> {
    pub(crate) row: &'a StepRow,
    pub(crate) project: &'a str,
}

impl StepChanged<'_> {
    pub(crate) fn emit(self, app: &App) {
        app.events.tell(|| StepEvent::of(self.row, self.project));
    }
}

/// Guidance reached the model; `sources` has one entry per fragment.
pub(crate) struct GuidanceInjected<'a> {
    pub(crate) sources: &'a [String],
}

impl GuidanceInjected<'_> {
    pub(crate) fn emit(self, app: &App) {
        for source in self.sources {
            let source = source_label(source);
            app.metrics.injections.get_or_create(&InjectionLabels { source }).inc();
        }
    }
}

/// The model call of a step was billed.
pub(crate) struct StepCharged {
    pub(crate) usd: f64,
}

impl StepCharged {
    pub(crate) fn emit(self, app: &App) {
        app.metrics.cost_usd.inc_by(self.usd);
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
