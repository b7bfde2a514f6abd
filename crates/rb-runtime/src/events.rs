//! In-process event bus: one event per stored step.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use rb_store::{RunKey, Scope, StepRow};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;
use utoipa::ToSchema;

/// Events buffered for a slow subscriber before it misses some.
const CHANNEL_CAPACITY: usize = 1_024;

/// Describes a stored step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepEvent {
    pub run_id: String,
    pub step_index: u32,
    pub org_id: String,
    pub project_id: String,
    pub total_score: f64,
    pub fired: Vec<String>,
}

impl StepEvent {
    pub fn of(row: &StepRow, project: &str) -> Self {
        Self {
            run_id: row.run.run_id.clone(),
            step_index: row.step_index,
            org_id: row.run.org.clone(),
            project_id: project.to_owned(),
            total_score: row.total_score,
            fired: row.fired.clone(),
        }
    }

    /// Returns `true` if the scope may see the run.
    pub fn is_in(&self, scope: &Scope) -> bool {
        scope.org.as_ref().is_none_or(|org| *org == self.org_id)
            && scope.project.as_ref().is_none_or(|project| *project == self.project_id)
    }
}

/// Broadcasts step events to the subscribers of this node and to the relay of the other nodes.
pub struct Events {
    /// Events of all nodes; `None` after `close`.
    all: Mutex<Option<broadcast::Sender<StepEvent>>>,
    /// Events of this node only, for the relay to other nodes.
    local: broadcast::Sender<StepEvent>,
}

impl Default for Events {
    fn default() -> Self {
        Self::new()
    }
}

impl Events {
    pub fn new() -> Self {
        let all = Mutex::new(Some(broadcast::Sender::new(CHANNEL_CAPACITY)));
        Self { all, local: broadcast::Sender::new(CHANNEL_CAPACITY) }
    }

    /// Ends every subscription.
    pub fn close(&self) {
        *self.all.lock() = None;
    }

    /// Publishes an event of this node. The closure runs only if there is a subscriber.
    pub fn publish(&self, event: impl FnOnce() -> StepEvent) {
        let has_relay = self.local.receiver_count() > 0;
        let has_subscribers =
            || self.all.lock().as_ref().is_some_and(|all| all.receiver_count() > 0);
        if has_relay || has_subscribers() {
            let event = event();
            let _ = self.local.send(event.clone()); // fails without a relay, which is normal
            self.deliver_local(event);
        }
    }

    /// Subscribes to the events of this node only.
    pub fn subscribe_local(&self) -> broadcast::Receiver<StepEvent> {
        self.local.subscribe()
    }

    /// Delivers an event to the subscribers of this node without relaying it.
    pub fn deliver_local(&self, event: StepEvent) {
        if let Some(sender) = &*self.all.lock() {
            let _ = sender.send(event); // fails without subscribers, which is normal
        }
    }

    /// Subscribes to the events of all nodes.
    pub fn subscribe(&self) -> broadcast::Receiver<StepEvent> {
        match &*self.all.lock() {
            Some(sender) => sender.subscribe(),
            None => broadcast::Sender::new(1).subscribe(), // its sender is dropped here, so it ends
        }
    }
}

/// Collects the runs whose steps were stored since its creation.
pub struct SeenRuns {
    events: broadcast::Receiver<StepEvent>,
    runs: BTreeSet<RunKey>,
}

impl SeenRuns {
    pub fn new(events: &Events) -> Self {
        Self { events: events.subscribe(), runs: BTreeSet::new() }
    }

    /// Drains pending events. Must be called at least once per `CHANNEL_CAPACITY` steps, or some are missed.
    pub fn refresh(&mut self) -> &BTreeSet<RunKey> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_visible_within_their_scope() {
        let event = StepEvent {
            run_id: "r".to_owned(),
            step_index: 0,
            org_id: "a".to_owned(),
            project_id: "p".to_owned(),
            total_score: 0.0,
            fired: vec![],
        };
        let scope = |org: Option<&str>, project: Option<&str>| Scope {
            org: org.map(str::to_owned),
            project: project.map(str::to_owned),
        };
        for (org, project, is_visible) in [
            (None, None, true),
            (Some("a"), None, true),
            (Some("a"), Some("p"), true),
            (Some("b"), None, false),
            (Some("a"), Some("q"), false),
            (None, Some("q"), false),
        ] {
            assert_eq!(event.is_in(&scope(org, project)), is_visible, "{org:?} {project:?}");
        }
    }
}
