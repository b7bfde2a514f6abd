//! One run's state: the engine, what was last told, and how its positions are called outside.

use std::sync::Arc;

use rb_engine::config::Engine;
use rb_engine::guidance::Retrieved;
use rb_engine::guidance::fragment::Item;
use rb_engine::policy::token_budget::Usage;
use rb_engine::run::record::{FIRST_CALL, PREVIEW_CHARS_MAX, Reply};
use rb_engine::run::{Plan, PreCall, Run};
use rb_engine::step::{Input, Step};
use rb_store::{RunKey, RunRow, RunStart, Scope, StepRow, StoreError};

use crate::app::App;
use crate::error::ApiResult;
use crate::judge;
use crate::replay::Replay;

/// Steps read from the store at once while a run is rebuilt.
const PAGE_STEPS: u32 = 500;

/// The state of one run after its newest step.
pub(crate) struct Live {
    run: Run,
    /// What was told for the newest step. It counts once a later step shows that the model has answered.
    told: Option<Plan>,
    /// The index of the newest step.
    newest: Option<u32>,
    names: Names,
    /// The engine's position of the newest step it has seen; the first one is where its index says.
    position: Option<u32>,
    /// How often the run was changed when this was its state: a change by another node is noticed by it.
    pub(crate) version: u64,
    /// Whether the store knows the run.
    pub(crate) is_known: bool,
    pub(crate) is_finished: bool,
    pub(crate) project: String,
    /// The model the run said it uses.
    pub(crate) model: String,
}

impl Live {
    /// A run of which no step is known.
    fn new(rules: Arc<Engine>, row: Option<&RunRow>) -> Self {
        let task = row.map_or("", |row| row.task.as_str());
        Self {
            run: Run::new(rules, task),
            told: None,
            newest: None,
            names: Names::default(),
            position: None,
            version: row.map_or(0, |row| row.version),
            is_known: row.is_some(),
            is_finished: row.is_some_and(|row| row.finished_ms.is_some()),
            project: row.map(|row| row.project.clone()).unwrap_or_default(),
            model: row.map(|row| row.model.clone()).unwrap_or_default(),
        }
    }

    /// A run under rules that no configuration makes.
    #[cfg(test)]
    pub(crate) fn judged_by(rules: Arc<Engine>) -> Self {
        Self::new(rules, Some(&RunRow::default()))
    }

    /// A run that begins with what it says about itself.
    pub(crate) async fn begin(app: &App, start: &RunStart) -> ApiResult<Self> {
        let place = (start.run.org.as_str(), start.project.as_str());
        let profile = Some(start.task_profile.as_str());
        let (weights, _) = app.profiles.weights(&*app.store, place, profile, []).await?;
        let row = RunRow {
            project: start.project.clone(),
            task: start.task.clone(),
            model: start.model.clone(),
            ..RunRow::default()
        };
        let rules = judge::rules_of_run(&app.embedder, weights, &start.metadata);
        Ok(Self::new(rules, Some(&row)))
    }

    /// What was told did not reach the model; the call itself was made.
    pub(crate) fn untell(&mut self) {
        self.told = self.told.take().map(Plan::without_guidance);
    }

    /// Rebuilds a run from the store: all of its steps, or those before an index.
    pub(crate) async fn load(app: &App, run: &RunKey, before: Option<u32>) -> ApiResult<Self> {
        let row = stored(app, run).await?;
        Self::rebuild(app, run, row.as_ref(), before).await
    }

    /// Rebuilds a run with all of its steps, if the store has it.
    pub(crate) async fn load_known(app: &App, run: &RunKey) -> ApiResult<Option<Self>> {
        match stored(app, run).await? {
            Some(row) => Self::rebuild(app, run, Some(&row), None).await.map(Some),
            None => Ok(None),
        }
    }

    async fn rebuild(
        app: &App,
        run: &RunKey,
        row: Option<&RunRow>,
        before: Option<u32>,
    ) -> ApiResult<Self> {
        let profile = row.map(|row| row.task_profile.as_str());
        let project = row.map_or("", |row| row.project.as_str());
        let place = (run.org.as_str(), project);
        let (weights, _) = app.profiles.weights(&*app.store, place, profile, []).await?;
        let nothing = serde_json::Map::new();
        let metadata = row.map_or(&nothing, |row| &row.metadata);
        let rules = judge::rules_of_run(&app.embedder, weights, metadata);
        let mut live = Self::new(rules, row);
        if live.is_known {
            live.replay_stored(app, run, before).await?;
        }
        Ok(live)
    }

    async fn replay_stored(
        &mut self,
        app: &App,
        run: &RunKey,
        before: Option<u32>,
    ) -> ApiResult<()> {
        let end = before.unwrap_or(u32::MAX);
        let mut from = 0;
        while from < end {
            let rows = app.store.steps(run, from, PAGE_STEPS).await?;
            let Some(last) = rows.last() else { break };
            from = last.step_index.saturating_add(1);
            let is_last_page = rows.len() < PAGE_STEPS as usize;
            rows.iter().filter(|row| row.step_index < end).for_each(|row| self.replay(row));
            if is_last_page {
                break;
            }
        }
        if self.newest.is_some() {
            app.metrics.replays.inc();
        }
        Ok(())
    }

    /// Goes through a stored step again.
    fn replay(&mut self, row: &StepRow) {
        match row.replay.as_deref().and_then(Replay::read) {
            None => drop(self.observe(row)), // it was told, not walked: nothing was asked for
            Some(kept) => {
                let mut ask = self.observe(row);
                if let Some(text) = kept.wrap_up.clone() {
                    ask = ask.with_wrap_up(text);
                }
                let ask = ask.with_operator_messages(&kept.words);
                self.told = Some(self.run.plan(ask, kept.found(), &kept.model));
            }
        }
    }

    /// The index of the newest step.
    pub(crate) fn newest(&self) -> Option<u32> {
        self.newest
    }

    /// Whether a step comes right after the newest one: otherwise some may have been stored elsewhere.
    pub(crate) fn is_next(&self, index: u32) -> bool {
        self.newest.map_or(index == 0, |newest| newest.checked_add(1) == Some(index))
    }

    /// What was told for the newest step, where it was walked.
    pub(crate) fn told(&self) -> Option<&Plan> {
        self.told.as_ref()
    }

    /// Tokens used, and their share of the budget where there is one.
    pub(crate) fn budget_used(&self) -> (u64, Option<f64>) {
        (self.run.tokens(), self.run.budget_used())
    }

    /// Takes a step that was only told, and writes into its row what the monitors read.
    pub(crate) fn read(&mut self, row: &mut StepRow) {
        let ask = self.observe(row);
        self.write_readings(&ask, row);
    }

    /// Takes a step that is walked: first stage. What was told before it has happened.
    pub(crate) fn ask(&mut self, row: &mut StepRow) -> PreCall {
        let ask = self.observe(row);
        self.write_readings(&ask, row);
        row.failure_type = self.failure_type(&ask).map(str::to_owned);
        row.monitors_fired.clone_from(&row.fired);
        ask
    }

    /// Second stage: what to do with the next call, written into the row too. `words` are what people say to the agent.
    pub(crate) fn plan(
        &mut self,
        ask: PreCall,
        found: &Retrieved,
        words: &[String],
        model: &str,
        row: &mut StepRow,
    ) -> &Plan {
        row.replay = Replay::new(model, found, ask.wrap_up(), words).write();
        let plan = self.run.plan(ask.with_operator_messages(words), found.clone(), model);
        row.injections = plan.shown().iter().map(|item| item.preview(PREVIEW_CHARS_MAX)).collect();
        row.injection_sources =
            plan.shown().iter().map(|item| item.source().name().to_owned()).collect();
        row.intervention_texts = plan.shown().iter().filter_map(advice).collect();
        self.told.insert(plan)
    }

    fn observe(&mut self, row: &StepRow) -> PreCall {
        if let Some(plan) = self.told.take() {
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
                self.names.note(next, row.step_index);
                self.position = Some(next);
                self.run.before_model(&[step])
            }
            None => self.run.before_model(&[]),
        }
    }

    fn write_readings(&self, ask: &PreCall, row: &mut StepRow) {
        if step_of(row).is_none() {
            return; // nothing was done yet, so there is nothing to read
        }
        let assessment = &ask.assessment;
        row.scores = judge::scores(assessment);
        row.total_score = assessment.composite;
        row.fired = judge::fired(assessment);
        row.evidence = self.evidence(ask).into_iter().map(judge::Evidence::row).collect();
    }

    /// The kind of failure the most serious monitor that fired is a sign of.
    pub(crate) fn failure_type(&self, ask: &PreCall) -> Option<&'static str> {
        let ranked = judge::ranked(&ask.assessment, self.run.monitor_set());
        ranked.first().filter(|reading| reading.fired).map(|reading| reading.monitor.failure_type)
    }

    /// Why monitors fired, with the steps as they are called outside.
    pub(crate) fn evidence(&self, ask: &PreCall) -> Vec<judge::Evidence> {
        judge::evidence(&ask.assessment, |position| self.names.of(position))
    }
}

/// What the store has of a run. While a database is away whose steps may wait, a run that is not in memory is as good as
/// unknown: what it does from here on is better than nothing.
pub(crate) async fn stored(app: &App, run: &RunKey) -> ApiResult<Option<RunRow>> {
    match app.store.run(&Scope::org(&run.org), &run.run_id).await {
        Err(StoreError::Unavailable(_)) if app.store.backlog().is_some() => Ok(None),
        found => Ok(found?),
    }
}

/// The words of an advice; patterns are told by their ids.
fn advice(item: &Item) -> Option<String> {
    match item {
        Item::Advice { text, .. } => Some(text.clone()),
        Item::Pattern(_) => None,
    }
}

/// The step in a row; `None` for the row of a call before which nothing was done.
pub(crate) fn step_of(row: &StepRow) -> Option<Step<'_>> {
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

/// Whether two rows tell the same step; what it cost may differ.
pub(crate) fn is_same_step(a: &StepRow, b: &StepRow) -> bool {
    step_of(a) == step_of(b)
}

/// How the engine's positions are called outside: later indices may leave some out.
#[derive(Default)]
struct Names(Vec<(u32, u32)>);

impl Names {
    /// The step at a position has this index. Both only ever grow.
    fn note(&mut self, position: u32, index: u32) {
        let ahead = index.saturating_sub(position);
        if self.0.last().is_none_or(|(_, last)| *last != ahead) {
            self.0.push((position, ahead));
        }
    }

    fn of(&self, position: u32) -> u32 {
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
    fn positions_have_the_names_of_their_steps() {
        let mut names = Names::default();
        for (position, index) in [(0, 1), (1, 2), (2, 5), (3, 6), (4, 90)] {
            names.note(position, index);
        }
        assert_eq!([0, 1, 2, 3, 4, 5].map(|at| names.of(at)), [1, 2, 5, 6, 90, 91]);
        assert_eq!(names.0.len(), 3);
    }

    #[test]
    fn a_first_call_is_no_step() {
        let row = |thought: &str| StepRow { thought: thought.to_owned(), ..StepRow::default() };
        assert_eq!(step_of(&row("(first call)")), None);
        assert_eq!(step_of(&row("")), None);
        assert_eq!(step_of(&row("x")), Some(Step::thought("x")));
        let acts = StepRow { action: Some("ls".to_owned()), ..row("(first call)") };
        assert_eq!(step_of(&acts).map(|step| (step.thought, step.tool())), Some(("", "ls")));
    }

    fn rules() -> Arc<Engine> {
        let metadata = json!({"token_budget": 9_000, "model_routing": {"SLOW": "claude-opus"}});
        let packed = crate::seconded::packed();
        judge::rules_of_run(&packed, Weights::default(), metadata.as_object().unwrap())
    }

    /// A step of a made-up run: told or walked, with what the look-ups gave.
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

        /// A run that is rebuilt from its rows goes on as the one that never left memory.
        #[test]
        fn a_replayed_run_equals_the_live_one(events in prop::collection::vec(event(), 1..40), cut in 0..40_usize) {
            let mut live = Live::new(rules(), None);
            let mut rows = Vec::new();
            let mut told = Vec::new();
            let mut replayed = Live::new(rules(), None);
            for (at, (mut row, found)) in events.into_iter().enumerate() {
                row.step_index = u32::try_from(at).unwrap();
                if at == cut {
                    for row in &rows {
                        replayed.replay(row);
                    }
                    prop_assert_eq!(format!("{:?}", replayed.told), format!("{:?}", live.told));
                }
                let walk = |live: &mut Live| {
                    let mut row = row.clone();
                    match &found {
                        None => live.read(&mut row),
                        Some((found, said)) => {
                            let ask = live.ask(&mut row);
                            live.plan(ask, found, said, "claude-sonnet", &mut row);
                        }
                    }
                    (row, format!("{:?} {:?}", live.told, live.budget_used()))
                };
                let lived = walk(&mut live);
                if at >= cut {
                    prop_assert_eq!(&walk(&mut replayed), &lived);
                }
                rows.push(lived.0);
                told.push(lived.1);
            }
        }
    }
}
