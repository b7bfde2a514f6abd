//! Run service: the only way in which steps enter a run.
//!
//! Requests for one run are serialised. Its state is rebuilt by replay if it is not in memory, changes are stored under
//! a version check and retried after a conflict, and metrics and events are emitted once they are stored.

use std::sync::Arc;
use std::time::Duration;

use rb_engine::guidance::{OPERATOR_PREFIX, Source};
use rb_store::{Change, RunKey, RunStart, Scope, StepRow, Store, StoreError};

use super::decision::{CallContext, Decided, Decision};
use super::live_run::{LiveRun, RunLoader, is_closing, is_same_step, mark_closing, stored_steps};
use super::owner_cache::RunOwnerCache;
use super::registry::LiveRuns;
use super::session::{RunSession, changes};
use crate::auth::{Caller, DEFAULT_ORG};
use crate::clock::now_ms;
use crate::events::Events;
use crate::metrics::Metrics;
use crate::operator_messages::{Claimed, OperatorMessages};
use crate::prices::Prices;
use crate::retrieval::PatternRetriever;
use crate::retrieval::lookup::GuidanceLookup;
use crate::telemetry::{GuidanceInjected, StepAmended, StepAssessed, StepCharged, StepStored};
use crate::write_queue::WriteQueue;

/// Attempts to store a change while other nodes change the same run.
pub const MAX_ATTEMPTS: u32 = 12;

/// Reason why steps did not enter a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run belongs to a project that the caller may not access.
    #[error("run not found")]
    NotFound,
    #[error("run is finished; start another one")]
    Finished,
    /// A later step was decided before, or this one was observed without a decision.
    #[error(
        "step {step_index} was skipped or observed without a decision; continue with a later one"
    )]
    NotDecided { step_index: u32 },
    #[error("version conflict in {attempts} attempts; send the request again")]
    Conflict { attempts: u32 },
    #[error("deadline exceeded")]
    TimedOut,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Steps of a finished run, which are stored in one transaction.
#[derive(Debug, Clone)]
pub struct Trace {
    pub start: RunStart,
    pub steps: Vec<StepRow>,
    pub outcome: String,
}

/// Dependencies of the run service.
pub struct RunService {
    pub(crate) store: Arc<dyn Store>,
    pub(super) loader: RunLoader,
    pub(super) guidance: Arc<GuidanceLookup>,
    pub(super) patterns: Arc<PatternRetriever>,
    pub(super) messages: Arc<OperatorMessages>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) events: Arc<Events>,
    pub(super) queue: WriteQueue,
    live_runs: LiveRuns,
    owners: RunOwnerCache,
    prices: Arc<Prices>,
}

/// Services that the run service uses.
pub struct RunDependencies {
    pub store: Arc<dyn Store>,
    pub loader: RunLoader,
    pub guidance: Arc<GuidanceLookup>,
    pub patterns: Arc<PatternRetriever>,
    pub messages: Arc<OperatorMessages>,
    pub metrics: Arc<Metrics>,
    pub events: Arc<Events>,
    pub prices: Arc<Prices>,
    pub queue: WriteQueue,
    pub live_runs: LiveRuns,
}

impl RunService {
    pub fn new(dependencies: RunDependencies) -> Self {
        let RunDependencies {
            store,
            loader,
            guidance,
            patterns,
            messages,
            metrics,
            events,
            prices,
            queue,
            live_runs,
        } = dependencies;
        let owners = RunOwnerCache::default();
        Self {
            store,
            loader,
            guidance,
            patterns,
            messages,
            metrics,
            events,
            queue,
            live_runs,
            owners,
            prices,
        }
    }

    /// Waits for exclusive access to a run.
    pub async fn lock(&self, run: &RunKey) -> RunSession<'_> {
        RunSession::new(self, run.clone(), self.live_runs.lock(run).await)
    }

    /// Finds the run that a caller names. The SDKs name the organisation only when a run starts, and operator keys
    /// belong to none, so for them the newest run with the id is meant.
    pub async fn find(
        &self,
        caller: &Caller,
        org: Option<&str>,
        run_id: &str,
    ) -> Result<RunKey, StoreError> {
        let run_id = run_id.to_owned();
        if let Some(org) = caller.scope(org, None).org.or_else(|| self.owners.get(&run_id)) {
            return Ok(RunKey { org, run_id });
        }
        let row = self.store.run(&Scope::default(), &run_id).await?;
        let run = row.map_or(RunKey { org: DEFAULT_ORG.to_owned(), run_id }, |row| row.run);
        self.owners.set(&run.run_id, &run.org);
        Ok(run)
    }

    /// Starts a run, or updates the description of a known one. Descriptions affect the monitors, so the state is
    /// rebuilt when it is needed again.
    pub async fn start(&self, caller: &Caller, start: RunStart) -> Result<(), RunError> {
        let mut session = self.lock(&start.run).await;
        session.forget();
        self.check_access(caller, &start.run).await?;
        let run = start.run.clone();
        self.store.apply(vec![Change::StartRun(Box::new(start))]).await?;
        self.owners.set(&run.run_id, &run.org);
        Ok(())
    }

    /// Assesses and stores a step without a decision, and returns its row. A step that was stored before is assessed
    /// in its place and counted once. `start` describes the run if the store does not have it.
    pub async fn observe(
        &self,
        caller: &Caller,
        start: impl Fn() -> RunStart + Send + Sync,
        step: StepRow,
    ) -> Result<Arc<StepRow>, RunError> {
        let mut session = self.lock(&step.run).await;
        for _ in 0..MAX_ATTEMPTS {
            match self.try_observe(&mut session, caller, &start, step.clone()).await {
                Err(RunError::Conflict { .. }) => session.forget(),
                result => return result,
            }
        }
        Err(RunError::Conflict { attempts: MAX_ATTEMPTS })
    }

    async fn try_observe(
        &self,
        session: &mut RunSession<'_>,
        caller: &Caller,
        start: &(impl Fn() -> RunStart + Send + Sync),
        mut row: StepRow,
    ) -> Result<Arc<StepRow>, RunError> {
        session.load_before(row.step_index).await?;
        session.check_access(caller)?;
        session.load_or_begin(start).await?;
        let Some(mut live) = session.take() else { return Err(RunError::NotFound) };
        self.complete(&live, &mut row);
        let replaced = live.take_replaced(row.step_index);
        let place = if live.newest().is_none_or(|newest| newest < row.step_index) {
            live.assess(&mut row);
            Place::Next
        } else {
            self.assess_again(session.run(), &mut row).await?
        };
        note_operator_message(&mut row);
        let row = Arc::new(row);
        let changes = changes(session.take_description(), std::slice::from_ref(&row));
        session.commit(&mut live, changes, None).await?;
        let before = match &place {
            Place::Next => replaced.as_deref(),
            Place::Repeated(before) => Some(&**before),
            Place::Changed(before) => before.as_deref(),
        };
        StepStored { row: &row, before }.emit(&self.metrics, &self.events);
        if !matches!(place, Place::Changed(_)) {
            session.put(live);
        }
        Ok(row)
    }

    /// Assesses a step whose index is not after the newest one.
    async fn assess_again(&self, run: &RunKey, row: &mut StepRow) -> Result<Place, RunError> {
        let stored = self.store.steps(run, row.step_index, 1).await?.into_iter().next();
        let stored = stored.filter(|stored| stored.step_index == row.step_index).map(Box::new);
        match stored {
            Some(stored) if is_same_step(&stored, row) && stored.tokens == row.tokens => {
                row.scores.clone_from(&stored.scores);
                row.total_score = stored.total_score;
                row.fired.clone_from(&stored.fired);
                row.evidence.clone_from(&stored.evidence);
                row.state.clone_from(&stored.state);
                row.replay.clone_from(&stored.replay);
                Ok(Place::Repeated(stored))
            }
            stored => {
                self.loader.load(run, Some(row.step_index)).await?.assess(row);
                row.replay = stored.as_ref().and_then(|stored| stored.replay.clone());
                Ok(Place::Changed(stored))
            }
        }
    }

    /// Stores all steps of a finished run. A run that was stored before gets its steps replaced.
    pub async fn observe_trace(&self, caller: &Caller, trace: Trace) -> Result<(), RunError> {
        let mut session = self.lock(&trace.start.run).await;
        for _ in 0..MAX_ATTEMPTS {
            session.forget();
            match self.try_observe_trace(&mut session, caller, &trace).await {
                Err(RunError::Conflict { .. }) => {}
                result => return result,
            }
        }
        Err(RunError::Conflict { attempts: MAX_ATTEMPTS })
    }

    async fn try_observe_trace(
        &self,
        session: &mut RunSession<'_>,
        caller: &Caller,
        trace: &Trace,
    ) -> Result<(), RunError> {
        let run = &trace.start.run;
        let is_stored = self.check_access(caller, run).await?;
        let (mut live, stored) = if is_stored {
            (self.loader.load(run, Some(0)).await?, stored_steps(&*self.store, run).await?)
        } else {
            (self.loader.begin(&trace.start).await?, Vec::new())
        };
        let mut steps = trace.steps.clone();
        steps.sort_by_key(|row| row.step_index);
        steps.dedup_by_key(|row| row.step_index);
        let steps: Vec<Arc<StepRow>> = steps
            .into_iter()
            .map(|mut row| {
                live.assess(&mut row);
                row.model.clone_from(&trace.start.model);
                row.project.clone_from(&trace.start.project);
                row.cost_usd = self.prices.cost_usd(&row.model, &row.tokens, row.at_ms);
                Arc::new(row)
            })
            .collect();
        let mut changes = changes(Some(trace.start.clone()), &steps);
        let (run, outcome) = (run.clone(), trace.outcome.clone());
        changes.push(Change::FinishRun { run, at_ms: now_ms(), outcome });
        session.commit(&mut live, changes, None).await?;
        self.emit_replaced(steps.iter().map(|row| &**row), &stored);
        Ok(())
    }

    /// Decides on the next model call of a host: assesses the newest step, retrieves, plans and stores. A step that was
    /// decided before gets the same decision again.
    pub async fn decide(
        &self,
        caller: &Caller,
        call: &CallContext<'_>,
        step: StepRow,
    ) -> Result<Decision, RunError> {
        let mut session = self.lock(&step.run).await;
        for _ in 0..MAX_ATTEMPTS {
            match self.try_decide(&mut session, caller, call, step.clone()).await {
                Err(RunError::Conflict { .. }) => session.forget(),
                result => return result,
            }
        }
        Err(RunError::Conflict { attempts: MAX_ATTEMPTS })
    }

    async fn try_decide(
        &self,
        session: &mut RunSession<'_>,
        caller: &Caller,
        call: &CallContext<'_>,
        mut row: StepRow,
    ) -> Result<Decision, RunError> {
        let index = row.step_index;
        session.load_before(index).await?;
        session.check_access(caller)?;
        let (newest, is_finished) =
            session.state().map_or((None, false), |live| (live.newest(), live.is_finished));
        if newest.is_some_and(|newest| index < newest) {
            let then = self.loader.load(&row.run, Some(index.saturating_add(1))).await?;
            return Ok(Decision { is_repeated: true, ..Decision::of(&then, index)? });
        }
        if let Some(live) = session.state().filter(|_| newest == Some(index)) {
            return Ok(Decision { is_repeated: true, ..Decision::of(live, index)? });
        }
        if is_finished {
            return Err(RunError::Finished);
        }
        session.load_or_begin(call.description).await?;
        if let Some(live) = session.state() {
            self.complete(live, &mut row);
        }
        let decided = session.decide(call, vec![row]).await?;
        let live = session.state().ok_or(RunError::NotFound)?;
        Ok(Decision { is_over_quota: decided.is_over_quota, ..Decision::of(live, index)? })
    }

    /// Assesses the final answer of a run and stores it as the closing step. It does not become part of the state: if
    /// the run continues, its next request contains the answer, and the step is decided on in place of this one.
    pub async fn close(&self, mut row: StepRow) -> Result<(), RunError> {
        let run = row.run.clone();
        if !self.store.is_shared() {
            self.queue.flush().await; // the replay reads the steps before
        }
        let mut live = self.loader.load(&run, Some(row.step_index)).await?;
        // Another node may have continued the run; the version check below covers what is stored after this read.
        let later = self.store.steps(&run, row.step_index, 1).await?;
        if later.iter().any(|row| !is_closing(row)) {
            return Ok(());
        }
        row.project.clone_from(&live.project);
        let _ = live.before_call(&mut row);
        mark_closing(&mut row);
        let version = live.version;
        let mut session = self.lock(&run).await;
        let newest = session.state().and_then(LiveRun::newest);
        if newest.is_some_and(|newest| newest >= row.step_index) {
            return Ok(()); // the run has continued
        }
        let change = Change::AmendStep(Arc::new(row.clone()));
        if self.store.is_shared() {
            self.apply_at(&run, version, std::iter::once(change)).await?;
        } else {
            self.queue.put(change);
        }
        let before = session.state_mut().and_then(|live| live.set_closing(row.clone()));
        StepAssessed { row: &row, before: before.as_deref() }.emit(&self.metrics, &self.events);
        Ok(())
    }

    /// Drops the guidance of the newest plan because it did not reach the model. Its operator messages are queued again
    /// and the row is stored without it.
    pub async fn discard_plan(&self, row: &mut Arc<StepRow>, messages: Claimed) {
        let mut session = self.lock(&row.run).await;
        if let Some(live) = session.state_mut() {
            live.discard_plan();
        }
        self.messages.put_back(messages).await;
        let row = Arc::make_mut(row);
        row.injections.clear();
        row.injection_sources.clear();
        row.intervention_texts.clear();
    }

    /// Counts the guidance of a decision as shown, because it reached the model.
    pub fn guidance_delivered(&self, decided: &Decided) {
        GuidanceInjected { sources: &decided.row.injection_sources }.emit(&self.metrics);
        self.patterns.record_uses(&decided.matches);
    }

    /// Queues an update of a stored step.
    pub fn amend(&self, row: Arc<StepRow>) {
        StepAmended { row: &row }.emit(&self.events);
        self.queue.put(Change::AmendStep(row));
    }

    /// Counts the cost of a model call whose step is amended.
    pub fn charge(&self, usd: f64) {
        StepCharged { usd }.emit(&self.metrics);
    }

    /// Stores a change that accompanies the newest decision of a run. On a shared store it is committed
    /// within `timeout`, unless another node has changed the run, whose own change is newer then.
    pub async fn save_companion(
        &self,
        run: &RunKey,
        timeout: Duration,
        companion: impl FnOnce() -> Change,
    ) {
        if !self.store.is_shared() {
            self.queue.put(companion());
            return;
        }
        let session = self.lock(run).await;
        let Some(version) = session.state().map(|live| live.version) else { return };
        let change = companion(); // includes what was decided while this call waited for the lock
        drop(session);
        let saving = self.apply_at(run, version, std::iter::once(change));
        // Other nodes miss a change that is not stored in time.
        let _ = tokio::time::timeout(timeout, saving).await;
    }

    /// Finishes a run. If repeated, the last outcome is stored. `start` describes the run if the store does not have
    /// it.
    pub async fn finish(
        &self,
        caller: &Caller,
        start: RunStart,
        outcome: String,
    ) -> Result<(), RunError> {
        let run = start.run.clone();
        let mut session = self.lock(&run).await;
        session.forget();
        let mut changes = Vec::new();
        if !self.check_access(caller, &run).await? {
            changes.push(Change::StartRun(Box::new(start)));
        }
        changes.push(Change::FinishRun { run, at_ms: now_ms(), outcome });
        self.store.apply(changes).await?;
        Ok(())
    }

    /// Checks that the caller may access a run; returns `false` if the store does not have it.
    async fn check_access(&self, caller: &Caller, run: &RunKey) -> Result<bool, RunError> {
        match self.loader.row(run).await? {
            Some(row) if caller.may_access(&row.project) => Ok(true),
            Some(_) => Err(RunError::NotFound),
            None => Ok(false),
        }
    }

    /// Fills in the model and the cost of a step.
    fn complete(&self, live: &LiveRun, row: &mut StepRow) {
        row.project.clone_from(&live.project);
        if row.model.is_empty() {
            row.model.clone_from(&live.model);
        }
        row.cost_usd = self.prices.cost_usd(&row.model, &row.tokens, row.at_ms);
    }

    /// Emits rows that may replace stored ones; both are in order of index.
    pub(crate) fn emit_replaced<'a>(
        &self,
        rows: impl Iterator<Item = &'a StepRow>,
        stored: &[StepRow],
    ) {
        for row in rows {
            let before = stored.binary_search_by_key(&row.step_index, |stored| stored.step_index);
            let before = before.ok().map(|at| &stored[at]);
            StepStored { row, before }.emit(&self.metrics, &self.events);
        }
    }
}

impl RunSession<'_> {
    fn check_access(&self, caller: &Caller) -> Result<(), RunError> {
        match self.state() {
            Some(live) if !caller.may_access(&live.project) => Err(RunError::NotFound),
            Some(_) | None => Ok(()),
        }
    }
}

/// Place of an observed step in its run.
enum Place {
    /// After the newest step.
    Next,
    /// Equal to the stored step with its index.
    Repeated(Box<StepRow>),
    /// Before the newest step, in place of the stored one if there is one. The state in memory is outdated.
    Changed(Option<Box<StepRow>>),
}

/// Adds the source of operator messages: clients report the text of guidance and not its author.
fn note_operator_message(row: &mut StepRow) {
    let mut shown = row.intervention_texts.iter().chain(&row.injections);
    let source = Source::Operator.name();
    if shown.any(|text| text.contains(OPERATOR_PREFIX))
        && !row.injection_sources.iter().any(|listed| listed == source)
    {
        row.injection_sources.push(source.to_owned());
    }
}
