//! State of one run: the engine, the current plan, and the mapping from engine positions to step indices.

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use rb_engine::analysis::embedding::Embedder;
use rb_engine::config::Engine;
use rb_engine::guidance::Retrieved;
use rb_engine::guidance::fragment::Item;
use rb_engine::policy::Policy;
use rb_engine::policy::token_budget::Usage;
use rb_engine::run::record::{FIRST_CALL, PREVIEW_CHARS_MAX, Reply};
use rb_engine::run::{Plan, PreCall, Run};
use rb_engine::step::{Input, Step};
use rb_store::{RunKey, RunRow, RunStart, Scope, StepRow, Store, StoreError};

use super::assessment;
use super::replay::Replay;
use crate::profiles::Profiles;

/// Steps read from the store at once during a replay.
const REPLAY_PAGE: u32 = 500;

/// State of one run after its newest step.
pub struct LiveRun {
    run: Run,
    /// Plan for the newest step. It takes effect once a later step shows that the model has answered.
    plan: Option<Plan>,
    /// Index of the newest step.
    newest: Option<u32>,
    numbering: StepNumbering,
    /// Engine position of the newest step; the first step has its own index as position.
    position: Option<u32>,
    /// Closing step after the newest one. It becomes part of the state when the run continues after it.
    closing: Option<Box<StepRow>>,
    /// Version of the stored run; a change by another node is detected by it.
    pub version: u64,
    /// `true` if the store has the run.
    pub is_known: bool,
    pub is_finished: bool,
    pub project: String,
    /// Model named at the start of the run.
    pub model: String,
}

/// Builds live runs from stored rows.
pub struct RunLoader {
    store: Arc<dyn Store>,
    profiles: Arc<Profiles>,
    embedder: Arc<dyn Embedder>,
    policy: Policy,
    /// Counts runs rebuilt from their steps.
    replays: Counter,
}

impl RunLoader {
    pub fn new(
        store: Arc<dyn Store>,
        profiles: Arc<Profiles>,
        embedder: Arc<dyn Embedder>,
        policy: Policy,
        replays: Counter,
    ) -> Self {
        Self { store, profiles, embedder, policy, replays }
    }

    /// Creates the state of a run that starts now.
    pub async fn begin(&self, start: &RunStart) -> rb_store::Result<LiveRun> {
        let row = RunRow {
            project: start.project.clone(),
            task: start.task.clone(),
            model: start.model.clone(),
            task_profile: start.task_profile.clone(),
            metadata: start.metadata.clone(),
            ..RunRow::default()
        };
        let engine = self.engine(&start.run.org, Some(&row)).await?;
        Ok(LiveRun::new(engine, Some(&row)))
    }

    /// Rebuilds a run from its stored steps, or from those before an index.
    pub async fn load(&self, run: &RunKey, before: Option<u32>) -> rb_store::Result<LiveRun> {
        let row = self.row(run).await?;
        self.rebuild(run, row.as_ref(), before).await
    }

    /// Rebuilds a run from all of its steps; `None` if the store does not have it.
    pub async fn load_known(&self, run: &RunKey) -> rb_store::Result<Option<LiveRun>> {
        match self.row(run).await? {
            Some(row) => self.rebuild(run, Some(&row), None).await.map(Some),
            None => Ok(None),
        }
    }

    /// Reads the row of a run. While a database with a write backlog is unavailable, a run that is not in memory counts
    /// as unknown, so that its further steps are assessed at all.
    pub async fn row(&self, run: &RunKey) -> rb_store::Result<Option<RunRow>> {
        match self.store.run(&Scope::org(&run.org), &run.run_id).await {
            Err(StoreError::Unavailable(_)) if self.store.backlog().is_some() => Ok(None),
            row => row,
        }
    }

    async fn engine(&self, org: &str, row: Option<&RunRow>) -> rb_store::Result<Arc<Engine>> {
        let profile = row.map(|row| row.task_profile.as_str());
        let owner = (org, row.map_or("", |row| row.project.as_str()));
        let (weights, _) = self.profiles.weights(&*self.store, owner, profile, []).await?;
        let no_metadata = serde_json::Map::new();
        let metadata = row.map_or(&no_metadata, |row| &row.metadata);
        Ok(assessment::run_engine(&self.embedder, self.policy, weights, metadata))
    }

    async fn rebuild(
        &self,
        run: &RunKey,
        row: Option<&RunRow>,
        before: Option<u32>,
    ) -> rb_store::Result<LiveRun> {
        let mut live = LiveRun::new(self.engine(&run.org, row).await?, row);
        if live.is_known {
            self.replay_stored(&mut live, run, before).await?;
        }
        Ok(live)
    }

    async fn replay_stored(
        &self,
        live: &mut LiveRun,
        run: &RunKey,
        before: Option<u32>,
    ) -> rb_store::Result<()> {
        let end = before.unwrap_or(u32::MAX);
        let mut from = 0;
        while from < end {
            let rows = self.store.steps(run, from, REPLAY_PAGE).await?;
            let Some(last) = rows.last() else { break };
            from = last.step_index.saturating_add(1);
            let is_last_page = rows.len() < REPLAY_PAGE as usize;
            rows.iter().filter(|row| row.step_index < end).for_each(|row| live.replay(row));
            if is_last_page {
                break;
            }
        }
        if live.newest.is_some() {
            self.replays.inc();
        }
        Ok(())
    }
}

impl LiveRun {
    fn new(engine: Arc<Engine>, row: Option<&RunRow>) -> Self {
        let task = row.map_or("", |row| row.task.as_str());
        Self {
            run: Run::new(engine, task),
            plan: None,
            newest: None,
            numbering: StepNumbering::default(),
            position: None,
            closing: None,
            version: row.map_or(0, |row| row.version),
            is_known: row.is_some(),
            is_finished: row.is_some_and(|row| row.finished_ms.is_some()),
            project: row.map(|row| row.project.clone()).unwrap_or_default(),
            model: row.map(|row| row.model.clone()).unwrap_or_default(),
        }
    }

    /// Creates an empty run with a given engine, for tests.
    pub fn with_engine(engine: Arc<Engine>) -> Self {
        Self::new(engine, Some(&RunRow::default()))
    }

    /// Drops the guidance of the current plan because it did not reach the model; the call itself was made.
    pub fn discard_plan(&mut self) {
        self.plan = self.plan.take().map(Plan::without_guidance);
    }

    /// Sets the closing step, and returns the one that it replaces.
    pub fn set_closing(&mut self, row: StepRow) -> Option<Box<StepRow>> {
        self.closing.replace(Box::new(row))
    }

    /// Takes the closing step if a step replaces it: the run has continued, and the client has sent the answer back.
    pub fn take_replaced(&mut self, step_index: u32) -> Option<Box<StepRow>> {
        self.closing.take_if(|closing| closing.step_index == step_index)
    }

    /// Applies a stored step.
    fn replay(&mut self, row: &StepRow) {
        if is_closing(row) {
            self.closing = Some(Box::new(row.clone()));
            return;
        }
        match row.replay.as_deref().and_then(Replay::parse) {
            None => drop(self.observe(row)), // observed without a decision
            Some(stored) => {
                let mut call = self.observe(row);
                if let Some(text) = stored.wrap_up.clone() {
                    call = call.with_wrap_up(text);
                }
                let call = call.with_operator_messages(&stored.messages);
                self.plan = Some(self.run.plan(call, stored.retrieved(), &stored.model));
            }
        }
    }

    /// Index of the newest step.
    pub fn newest(&self) -> Option<u32> {
        self.newest
    }

    /// Returns `true` if the index follows the newest one; otherwise another node may have stored steps.
    pub fn is_next(&self, index: u32) -> bool {
        self.newest.map_or(index == 0, |newest| newest.checked_add(1) == Some(index))
    }

    /// Plan for the newest step; `None` for a step without a decision.
    pub fn current_plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// Tokens used, and their share of the budget if there is one.
    pub fn budget_used(&self) -> (u64, Option<f64>) {
        (self.run.tokens(), self.run.budget_used())
    }

    /// Assesses a step without a decision, and writes the scores into its row.
    pub fn assess(&mut self, row: &mut StepRow) {
        let call = self.observe(row);
        self.write_readings(&call, row);
    }

    /// First stage of a decision: assesses a step and returns the queries for retrieval. The previous plan takes effect.
    pub fn before_call(&mut self, row: &mut StepRow) -> PreCall {
        let call = self.observe(row);
        self.write_readings(&call, row);
        row.failure_type = self.failure_type(&call).map(str::to_owned);
        row.monitors_fired.clone_from(&row.fired);
        call
    }

    /// Second stage of a decision: plans the next call and writes the plan into the row.
    pub fn plan(
        &mut self,
        call: PreCall,
        retrieved: &Retrieved,
        messages: &[String],
        model: &str,
        row: &mut StepRow,
    ) -> &Plan {
        row.replay = Replay::new(model, retrieved, call.wrap_up(), messages).to_json();
        let plan = self.run.plan(call.with_operator_messages(messages), retrieved.clone(), model);
        row.injections = plan.shown().iter().map(|item| item.preview(PREVIEW_CHARS_MAX)).collect();
        row.injection_sources =
            plan.shown().iter().map(|item| item.source().name().to_owned()).collect();
        row.intervention_texts = plan.shown().iter().filter_map(advice).collect();
        self.plan.insert(plan)
    }

    fn observe(&mut self, row: &StepRow) -> PreCall {
        if let Some(closing) = self.closing.take_if(|closing| closing.step_index < row.step_index) {
            let _ = self.observe(&closing);
        }
        if let Some(plan) = self.plan.take() {
            let usage = Usage {
                total: row.tokens.total,
                input: row.tokens.input,
                output: row.tokens.output,
                cache_read: row.tokens.cache_read,
            };
            let _ = self.run.record(plan, Reply { usage, ..Reply::default() });
        }
        self.newest = Some(row.step_index);
        match step_of(row) {
            Some(step) => {
                self.run.set_first_step_index(row.step_index);
                let next = self.position.map_or(row.step_index, |last| last.saturating_add(1));
                self.numbering.record(next, row.step_index);
                self.position = Some(next);
                self.run.before_model(&[step])
            }
            None => self.run.before_model(&[]),
        }
    }

    fn write_readings(&self, call: &PreCall, row: &mut StepRow) {
        call.state.name().clone_into(&mut row.state);
        if step_of(row).is_none() {
            return; // the row of a first call has no step
        }
        let assessment = &call.assessment;
        call.state.name().clone_into(&mut row.state);
        row.scores = assessment::scores(assessment);
        row.total_score = assessment.composite;
        row.fired = assessment::fired(assessment);
        let step_index = |position| self.numbering.step_index(position);
        row.evidence = assessment::recorded_evidence(assessment, step_index);
    }

    /// Failure type of the highest ranked fired monitor.
    pub fn failure_type(&self, call: &PreCall) -> Option<&'static str> {
        self.run.failure_type(&call.assessment)
    }

    /// Evidence of the fired monitors, with public step indices.
    pub fn evidence(&self, call: &PreCall) -> Vec<assessment::Evidence> {
        assessment::evidence(&call.assessment, |position| self.numbering.step_index(position))
    }
}

/// Text of an advice; patterns are recorded by id instead.
fn advice(item: &Item) -> Option<String> {
    match item {
        Item::Advice { text, .. } => Some(text.clone()),
        Item::Pattern(_) => None,
    }
}

/// Reads all steps of a run.
pub async fn stored_steps(store: &dyn Store, run: &RunKey) -> Result<Vec<StepRow>, StoreError> {
    let mut all: Vec<StepRow> = Vec::new();
    loop {
        let from = all.last().map_or(0, |step| step.step_index.saturating_add(1));
        let page = store.steps(run, from, REPLAY_PAGE).await?;
        let is_last = page.len() < REPLAY_PAGE as usize;
        all.extend(page);
        if is_last {
            return Ok(all);
        }
    }
}

/// Step of a row; `None` for the row of a first call.
pub fn step_of(row: &StepRow) -> Option<Step<'_>> {
    let thought = if row.thought == FIRST_CALL { "" } else { row.thought.as_str() };
    let text = row.action_input.as_deref();
    let input = match text {
        None => Input::None,
        Some(text) if row.input_is_structured => Input::Structured(text),
        Some(text) => Input::Text(text),
    };
    let step = Step { user_input: &row.user_input, ..Step::thought(thought) }
        .with_action(row.action.as_deref().unwrap_or_default(), input)
        .with_observation(row.observation.as_deref().unwrap_or_default())
        .with_error(row.is_error);
    (step != Step::default()).then_some(step)
}

/// Metadata key of a closing step.
const CLOSING: &str = "is_closing";

/// Marks a row as the closing step of its run.
pub fn mark_closing(row: &mut StepRow) {
    row.metadata.insert(CLOSING.to_owned(), true.into());
}

/// Returns `true` for a closing step.
pub fn is_closing(row: &StepRow) -> bool {
    row.metadata.contains_key(CLOSING)
}

/// Compares the steps of two rows, ignoring cost and scores.
pub fn is_same_step(a: &StepRow, b: &StepRow) -> bool {
    step_of(a) == step_of(b)
}

/// Maps engine positions to step indices, which may have gaps. Holds one entry per gap: first position and offset.
#[derive(Default)]
struct StepNumbering(Vec<(u32, u32)>);

impl StepNumbering {
    /// Records the index of the step at a position. Both only increase.
    fn record(&mut self, position: u32, index: u32) {
        let ahead = index.saturating_sub(position);
        if self.0.last().is_none_or(|(_, last)| *last != ahead) {
            self.0.push((position, ahead));
        }
    }

    fn step_index(&self, position: u32) -> u32 {
        let after = self.0.partition_point(|(from, _)| *from <= position);
        let ahead = after.checked_sub(1).map_or(0, |at| self.0[at].1);
        position.saturating_add(ahead)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rb_engine::config::weights::Weights;
    use rb_engine::guidance::{Pattern, PatternBody, TierResult};
    use rb_store::Tokens;
    use serde_json::json;

    use super::*;

    #[test]
    fn positions_map_to_step_indices() {
        let mut numbering = StepNumbering::default();
        for (position, index) in [(0, 1), (1, 2), (2, 5), (3, 6), (4, 90)] {
            numbering.record(position, index);
        }
        assert_eq!([0, 1, 2, 3, 4, 5].map(|at| numbering.step_index(at)), [1, 2, 5, 6, 90, 91]);
        assert_eq!(numbering.0.len(), 3);
    }

    #[test]
    fn a_first_call_has_no_step() {
        let row = |thought: &str| StepRow { thought: thought.to_owned(), ..StepRow::default() };
        assert_eq!(step_of(&row("(first call)")), None);
        assert_eq!(step_of(&row("")), None);
        assert_eq!(step_of(&row("x")), Some(Step::thought("x")));
        let acts = StepRow { action: Some("ls".to_owned()), ..row("(first call)") };
        assert_eq!(step_of(&acts).map(|step| (step.thought, step.tool())), Some(("", "ls")));
    }

    fn engine() -> Arc<Engine> {
        let metadata = json!({"token_budget": 9_000, "model_routing": {"SLOW": "claude-opus"}});
        let embedder = crate::retrieval::embedding::builtin();
        let policy = Policy { standing_rules: true, ..Policy::default() };
        assessment::run_engine(&embedder, policy, Weights::default(), metadata.as_object().unwrap())
    }

    /// A generated step, with the retrieved patterns and operator messages if it has a decision.
    fn event() -> impl Strategy<Value = (StepRow, Option<(Retrieved, Vec<String>)>)> {
        let text = |text: &str| text.to_owned();
        let rule = PatternBody::E3 { instruction: text("Cite."), meta_reasoning_prompt: None };
        let known = PatternBody::E1 {
            situation: text("s"),
            observation: text("o"),
            recommended_action: text("a"),
        };
        let answers = |body: PatternBody| {
            prop::sample::select(vec![
                TierResult::NotAsked,
                TierResult::Failed,
                TierResult::Answered(vec![]),
                TierResult::Answered(vec![Pattern { id: text("p"), body }]),
            ])
        };
        let said = prop::sample::select(vec![vec![], vec![text("Look at the lexer.")]]);
        let thoughts = vec![
            "",
            "(first call)",
            "Let me run the tests again",
            "Maybe the cache is broken, not sure, I could be wrong about this error",
            "Done, everything works",
        ];
        (
            prop::sample::select(thoughts),
            prop::sample::select(vec![None, Some("bash"), Some("edit_file")]),
            prop::sample::select(vec!["pytest", "{\"path\": \"a.py\"}"]),
            prop::sample::select(vec!["1 failed: AssertionError", "ok", ""]),
            any::<bool>(),
            0..2_000_u64,
            prop::option::weighted(0.7, (answers(known), answers(rule), said)),
        )
            .prop_map(|(thought, action, input, seen, is_error, total, walked)| {
                let row = StepRow {
                    thought: thought.to_owned(),
                    action: action.map(str::to_owned),
                    action_input: action.map(|_| input.to_owned()),
                    input_is_structured: input.starts_with('{'),
                    observation: (!seen.is_empty()).then(|| seen.to_owned()),
                    is_error,
                    tokens: Tokens { total, ..Tokens::default() },
                    ..StepRow::default()
                };
                let found =
                    |(e1, e3, said): (_, _, _)| (Retrieved { e1, e3, ..Retrieved::NONE }, said);
                (row, walked.map(found))
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        /// A run rebuilt from its rows continues exactly like the one in memory.
        #[test]
        fn a_replayed_run_equals_the_live_one(events in prop::collection::vec(event(), 1..40), cut in 0..40_usize) {
            let mut live = LiveRun::new(engine(), None);
            let mut rows = Vec::new();
            let mut replayed = LiveRun::new(engine(), None);
            for (at, (mut row, found)) in events.into_iter().enumerate() {
                row.step_index = u32::try_from(at).unwrap();
                if at == cut {
                    for row in &rows {
                        replayed.replay(row);
                    }
                    prop_assert_eq!(format!("{:?}", replayed.plan), format!("{:?}", live.plan));
                }
                let apply = |live: &mut LiveRun| {
                    let mut row = row.clone();
                    match &found {
                        None => live.assess(&mut row),
                        Some((found, said)) => {
                            let call = live.before_call(&mut row);
                            live.plan(call, found, said, "claude-sonnet", &mut row);
                        }
                    }
                    (row, format!("{:?} {:?}", live.plan, live.budget_used()))
                };
                let lived = apply(&mut live);
                if at >= cut {
                    prop_assert_eq!(&apply(&mut replayed), &lived);
                }
                rows.push(lived.0);
            }
        }
    }
}
