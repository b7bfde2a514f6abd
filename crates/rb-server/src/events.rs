//! What happens, told to whoever listens: one event a stored step.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rb_store::{RunKey, Scope, StepRow};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;
use utoipa::ToSchema;

/// Events a slow listener may lag behind before it misses some.
const LAG_MAX: usize = 1_024;

/// A step was stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct StepEvent {
    pub(crate) run_id: String,
    pub(crate) step_index: u32,
    pub(crate) org_id: String,
    pub(crate) project_id: String,
    pub(crate) total_score: f64,
    pub(crate) fired: Vec<String>,
}

impl StepEvent {
    pub(crate) fn of(row: &StepRow, project: &str) -> Self {
        Self {
            run_id: row.run.run_id.clone(),
            step_index: row.step_index,
            org_id: row.run.org.clone(),
            project_id: project.to_owned(),
            total_score: row.total_score,
            fired: row.fired.clone(),
        }
    }

    /// Whether whoever has this scope may hear of it.
    pub(crate) fn is_in(&self, scope: &Scope) -> bool {
        scope.org.as_ref().is_none_or(|org| *org == self.org_id)
            && scope.project.as_ref().is_none_or(|project| *project == self.project_id)
    }
}

/// The way from whoever stores to whoever listens; gone once the server ends.
pub(crate) struct Events {
    here: Mutex<Option<broadcast::Sender<StepEvent>>>,
    /// What happened on this node alone, for the others.
    own: broadcast::Sender<StepEvent>,
}

impl Events {
    pub(crate) fn new() -> Self {
        let here = Mutex::new(Some(broadcast::Sender::new(LAG_MAX)));
        Self { here, own: broadcast::Sender::new(LAG_MAX) }
    }

    /// Nothing more is told, and every stream comes to its end.
    pub(crate) fn close(&self) {
        *self.sender() = None;
    }

    fn sender(&self) -> MutexGuard<'_, Option<broadcast::Sender<StepEvent>>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened here: tells everybody, on this node and on the others. Mostly nobody listens, and nothing is
    /// put together for nobody.
    pub(crate) fn tell(&self, event: impl FnOnce() -> StepEvent) {
        let has_others = self.own.receiver_count() > 0;
        let has_listeners = || self.sender().as_ref().is_some_and(|here| here.receiver_count() > 0);
        if has_others || has_listeners() {
            let event = event();
            let _ = self.own.send(event.clone()); // a node alone has nobody to tell
            self.pass_on(event);
        }
    }

    /// What happens on this node, from now on.
    pub(crate) fn listen_to_own(&self) -> broadcast::Receiver<StepEvent> {
        self.own.subscribe()
    }

    /// Tells whoever listens on this node; without listeners nobody hears it.
    pub(crate) fn pass_on(&self, event: StepEvent) {
        if let Some(sender) = &*self.sender() {
            let _ = sender.send(event);
        }
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<StepEvent> {
        match &*self.sender() {
            Some(sender) => sender.subscribe(),
            None => broadcast::Sender::new(1).subscribe(), // ends at once
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_hears_of_the_steps_of_others() {
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
        for (org, project, hears) in [
            (None, None, true),
            (Some("a"), None, true),
            (Some("a"), Some("p"), true),
            (Some("b"), None, false),
            (Some("a"), Some("q"), false),
            (None, Some("q"), false),
        ] {
            assert_eq!(event.is_in(&scope(org, project)), hears, "{org:?} {project:?}");
        }
    }
}
