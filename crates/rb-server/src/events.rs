//! What happens, told to whoever listens: one event a stored step.

use serde::Serialize;
use tokio::sync::broadcast;
use utoipa::ToSchema;

/// Events a slow listener may lag behind before it misses some.
const LAG_MAX: usize = 1_024;

/// A step was stored.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct StepEvent {
    pub(crate) run_id: String,
    pub(crate) step_index: u32,
    pub(crate) org_id: String,
    pub(crate) project_id: String,
    pub(crate) total_score: f64,
    pub(crate) fired: Vec<String>,
}

/// The way from whoever stores to whoever listens.
pub(crate) struct Events(broadcast::Sender<StepEvent>);

impl Events {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(LAG_MAX))
    }

    /// Tells everybody; without listeners nobody hears it.
    pub(crate) fn tell(&self, event: StepEvent) {
        let _ = self.0.send(event);
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<StepEvent> {
        self.0.subscribe()
    }
}
