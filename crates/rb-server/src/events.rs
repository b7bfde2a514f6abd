//! What happens, told to whoever listens: one event a stored step.

use std::collections::BTreeSet;

use rb_store::RunKey;
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;
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

/// The runs that steps are stored of, from now on.
pub struct RunsHeard {
    events: broadcast::Receiver<StepEvent>,
    runs: BTreeSet<RunKey>,
}

impl RunsHeard {
    pub(crate) fn new(events: &Events) -> Self {
        Self { events: events.listen(), runs: BTreeSet::new() }
    }

    /// Takes what was told since the last time. Ask at least once in a thousand steps: what is older is missed.
    pub fn catch_up(&mut self) -> &BTreeSet<RunKey> {
        loop {
            match self.events.try_recv() {
                Ok(StepEvent { org_id, run_id, .. }) => {
                    self.runs.insert(RunKey { org: org_id, run_id });
                }
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return &self.runs,
            }
        }
    }
}
