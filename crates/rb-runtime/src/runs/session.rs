//! Exclusive access to one run, and the changes that are made under it.
//!
//! State is taken out of the lock while it changes and put back once the change is stored. A failure, a timeout, a
//! cancelled request or a panic therefore drops it, and the next access rebuilds it from the store.

use std::sync::Arc;

use rb_engine::guidance::Query;
use rb_engine::guidance::fragment::Item;
use rb_engine::run::Plan;
use rb_store::{Change, RunKey, RunStart, StepRow, StoreError};

use super::decision::{CallContext, Decided, Delivery, Durability};
use super::live_run::LiveRun;
use super::registry::RunGuard;
use super::{RunError, RunService};
use crate::retrieval::Match;
use crate::retrieval::lookup::Lookup;
use crate::telemetry::{StepAmended, StepAssessed, StepStored};

/// A locked run.
pub struct RunSession<'a> {
    service: &'a RunService,
    run: RunKey,
    state: RunGuard,
    /// The store was queried under this lock and does not have the run.
    is_absent: bool,
    /// Description that is stored with the first steps of the run.
    description: Option<RunStart>,
}

impl<'a> RunSession<'a> {
    pub(super) fn new(service: &'a RunService, run: RunKey, state: RunGuard) -> Self {
        Self { service, run, state, is_absent: false, description: None }
    }

    pub fn run(&self) -> &RunKey {
        &self.run
    }

    /// Returns `true` if the state is in memory.
    pub fn is_loaded(&self) -> bool {
        self.state.is_some()
    }

    /// Plan for the newest step; `None` for a step without a decision.
    pub fn plan(&self) -> Option<&Plan> {
        self.state.as_ref().and_then(LiveRun::current_plan)
    }

    /// Drops the state, so that the next access rebuilds it.
    pub fn forget(&mut self) {
        *self.state = None;
        self.is_absent = false;
        self.description = None;
    }

    /// Replaces the state, for tests.
    pub fn replace(&mut self, live: LiveRun) {
        *self.state = Some(live);
    }

    pub(super) fn take_description(&mut self) -> Option<RunStart> {
        self.description.take()
    }

    pub(super) fn state(&self) -> Option<&LiveRun> {
        self.state.as_ref()
    }

    pub(super) fn state_mut(&mut self) -> Option<&mut LiveRun> {
        self.state.as_mut()
    }

    pub(super) fn take(&mut self) -> Option<LiveRun> {
        self.state.take()
    }

    pub(super) fn put(&mut self, live: LiveRun) {
        *self.state = Some(live);
    }

    /// Rebuilds the state if it is not in memory and the store has the run.
    pub async fn load(&mut self) -> Result<(), RunError> {
        if self.state.is_none() && !self.is_absent {
            *self.state = self.service.loader.load_known(&self.run).await?;
            self.is_absent = self.state.is_none();
        }
        Ok(())
    }

    /// Rebuilds the state if other nodes may have stored steps before a step.
    pub(super) async fn load_before(&mut self, step_index: u32) -> Result<(), RunError> {
        let is_behind = |live: &LiveRun| {
            live.newest().is_none_or(|newest| step_index > newest) && !live.is_next(step_index)
        };
        if self.state.as_ref().is_some_and(is_behind) {
            self.forget();
        }
        self.load().await
    }

    /// Begins a run that the store does not have.
    pub(super) async fn load_or_begin(
        &mut self,
        description: impl FnOnce() -> RunStart,
    ) -> Result<(), RunError> {
        self.load().await?;
        if self.state.is_none() {
            let description = description();
            *self.state = Some(self.service.loader.begin(&description).await?);
            self.description = Some(description);
        }
        Ok(())
    }

    /// Decides on a model call: assesses the steps since the call before, retrieves patterns, plans and stores.
    ///
    /// `steps` are in order and not empty; the plan belongs to the last one.
    pub async fn decide(
        &mut self,
        call: &CallContext<'_>,
        mut steps: Vec<StepRow>,
    ) -> Result<Decided, RunError> {
        call.within(self.load_or_begin(call.description)).await??;
        let Some(mut live) = self.take() else { return Err(RunError::NotFound) };
        let service = self.service;
        let mut decided = Decided::default();
        let newest = steps.pop();
        let first = steps.first().or(newest.as_ref()).map_or(0, |row| row.step_index);
        let replaced = live.take_replaced(first);
        let mut rows = Vec::with_capacity(steps.len() + 1);
        for mut row in steps {
            row.project.clone_from(&live.project);
            live.assess(&mut row);
            rows.push(Arc::new(row));
        }
        if let Some(mut row) = newest {
            row.project.clone_from(&live.project);
            let mut pre_call = live.before_call(&mut row);
            if let Some(text) = call.budget_warning.clone() {
                pre_call = pre_call.with_wrap_up(text);
            }
            let model = if call.model.is_empty() { live.model.clone() } else { call.model.into() };
            let lookup = self.look_up(call, &model, &pre_call.queries).await;
            if call.may_steer {
                decided.messages = service.messages.claim(&self.run).await;
            }
            let texts = decided.messages.texts();
            let plan = live.plan(pre_call, &lookup.retrieved, &texts, &model, &mut row);
            decided.matches = lookup.matches;
            decided.matches.retain(|matched| is_shown(plan, matched));
            decided.is_over_quota = lookup.is_over_quota;
            decided.row = Arc::new(row);
            rows.push(Arc::clone(&decided.row));
        }
        if let Err(error) = self.commit_call(call, &mut live, &rows).await {
            service.messages.put_back(decided.messages).await;
            return Err(error);
        }
        self.put(live);
        self.emit(call.delivery, &rows, replaced.as_deref(), &decided);
        Ok(decided)
    }

    /// Repeats the newest call: its plan stays as it is, and `row` replaces the row of its step.
    pub async fn repeat(
        &mut self,
        call: &CallContext<'_>,
        mut row: StepRow,
    ) -> Result<Decided, RunError> {
        call.within(self.load_or_begin(call.description)).await??;
        let Some(mut live) = self.take() else { return Err(RunError::NotFound) };
        row.project.clone_from(&live.project);
        let row = Arc::new(row);
        self.commit_call(call, &mut live, std::slice::from_ref(&row)).await?;
        self.put(live);
        StepAmended { row: &row }.emit(&self.service.events);
        Ok(Decided { row, ..Decided::default() })
    }

    /// Answers the queries of the engine. After the deadline there are no patterns.
    async fn look_up(&mut self, call: &CallContext<'_>, model: &str, queries: &[Query]) -> Lookup {
        let guidance = &self.service.guidance;
        let lookup = call.within(guidance.look_up(&self.run.org, model, queries)).await;
        lookup.unwrap_or_default()
    }

    fn emit(
        &self,
        delivery: Delivery,
        rows: &[Arc<StepRow>],
        mut replaced: Option<&StepRow>,
        decided: &Decided,
    ) {
        let RunService { metrics, events, patterns, .. } = self.service;
        for row in rows {
            let before = replaced.take(); // only the first row can replace a closing step
            match delivery {
                Delivery::Assumed => StepStored { row, before }.emit(metrics, events),
                Delivery::Confirmed => StepAssessed { row, before }.emit(metrics, events),
            }
        }
        if delivery == Delivery::Assumed {
            patterns.record_uses(&decided.matches);
        }
    }

    async fn commit_call(
        &mut self,
        call: &CallContext<'_>,
        live: &mut LiveRun,
        rows: &[Arc<StepRow>],
    ) -> Result<(), RunError> {
        let again = || call.is_described_again.then(call.description);
        let description = self.take_description().or_else(again);
        let changes = changes(description, rows);
        let companion = (call.companion)();
        let is_queued = call.durability == Durability::Queued && !self.service.store.is_shared();
        if is_queued {
            live.version += changes.len() as u64;
            for change in changes.into_iter().chain(companion) {
                self.service.queue.put(change);
            }
            return Ok(());
        }
        call.within(self.commit(live, changes, companion)).await?
    }

    /// Stores changes that depend on the state, if no other node has changed the run.
    pub(super) async fn commit(
        &mut self,
        live: &mut LiveRun,
        changes: Vec<Change>,
        companion: Option<Change>,
    ) -> Result<(), RunError> {
        let version = live.version + changes.len() as u64;
        self.service
            .apply_at(&self.run, live.version, changes.into_iter().chain(companion))
            .await?;
        live.version = version;
        Ok(())
    }
}

/// Returns `true` if the fragment of a plan contains a pattern; the fragment may be too short for all of them.
fn is_shown(plan: &Plan, matched: &Match) -> bool {
    plan.shown().iter().any(|item| match item {
        Item::Pattern(pattern) => {
            pattern.id == matched.row.pattern_id && pattern.body.tier() == matched.tier
        }
        Item::Advice { .. } => false,
    })
}

/// Changes that store steps, after the description of a run that begins.
pub(super) fn changes(description: Option<RunStart>, rows: &[Arc<StepRow>]) -> Vec<Change> {
    let start = description.map(|description| Change::StartRun(Box::new(description)));
    let steps = rows.iter().map(|row| Change::PutStep(Arc::clone(row)));
    start.into_iter().chain(steps).collect()
}

impl RunService {
    /// Applies changes to a run that has exactly `version` changes.
    pub(crate) async fn apply_at(
        &self,
        run: &RunKey,
        version: u64,
        changes: impl Iterator<Item = Change>,
    ) -> Result<(), RunError> {
        let guard = Change::ExpectVersion { run: run.clone(), version };
        match self.store.apply(std::iter::once(guard).chain(changes).collect()).await {
            Ok(_) => Ok(()),
            Err(StoreError::VersionConflict) => {
                self.metrics.version_conflicts.inc();
                Err(RunError::Conflict { attempts: 1 })
            }
            Err(error) => Err(error.into()),
        }
    }
}
