//! The walk of one step: `before_model`, then `plan`, then the model call, then `record`; at the end `finish`.
//!
//! Each stage takes the value of the one before, so none can be skipped or run twice. The host does the IO between
//! them: it looks up what `PreCall::queries` asks for, and it calls the model. Nothing that was merely planned counts:
//! caps, cooldowns and allowances are used up in `Run::record`, when the model has answered. A call that failed is
//! simply not recorded, and the next `Run::before_model` offers the same guidance again.

mod monitor_set;
/// Log entry of a model call, and the totals of a run.
pub mod record;
/// Assessment of the newest steps by another engine.
pub mod remote_verdict;

pub use monitor_set::{Assessment, MonitorSet, Reading, round4};

use std::collections::VecDeque;
use std::sync::Arc;

use crate::analysis::text::{shown_line, suffix};
use crate::config::{AdviceSource, Engine};
use crate::guidance::fragment::{Fragment, Item};
use crate::guidance::{Query, Retrieved, Source, Tier, TierResult, operator_message};
use crate::monitors::Suite;
use crate::policy::fsm::{Fsm, State};
use crate::policy::gate::Gate;
use crate::policy::token_budget::Level;
use crate::step::Step;
use record::{
    FIRST_CALL, PREVIEW_CHARS_MAX, Reply, SKIPPED_IN_FAST, StepRecord, Summary,
    THOUGHT_PREVIEW_CHARS_MAX,
};
use remote_verdict::RemoteVerdict;

/// How many thoughts back an E1 or E2 look-up describes the situation.
const E1_THOUGHTS: usize = 3;
const E2_THOUGHTS: usize = 5;
/// A thought is kept up to this length, its end: what was decided last stands there.
const THOUGHT_CHARS_MAX: usize = 4_000;

/// One watched run. A fold over its steps: the same steps, answers and replies give the same run.
pub struct Run {
    rules: Arc<Engine>,
    fsm: Fsm,
    monitors: MonitorSet,
    gate: Gate,
    /// Model calls recorded so far.
    calls: u32,
    steps: u32,
    tokens: u64,
    wrap_up_shown: bool,
    injections: u32,
    /// On how many steps each monitor of the panel fired.
    fired_steps: Vec<u32>,
    /// The newest thoughts, oldest first.
    thoughts: VecDeque<String>,
    /// What the monitors said of the newest steps; kept for a call that is made again.
    latest: Arc<Assessment>,
    judge: AssessmentSource,
}

/// Who said what is kept in `Run::latest`.
enum AssessmentSource {
    /// The monitors of the run.
    Own,
    /// Another engine, with the advice it gave.
    Other { advice: Option<String> },
}

/// What the engine wants before the next model call: answers to `queries`, then [`Run::plan`].
#[must_use = "look up `queries`, then call `Run::plan`"]
#[derive(Debug, Clone, PartialEq)]
pub struct PreCall {
    /// The model call this is for, counted from 0.
    pub call: u32,
    /// The state the run is in.
    pub state: State,
    /// How hard the newest thought looked; `None` where a step had none.
    pub difficulty: Option<f64>,
    /// What the monitors say of the new steps.
    pub assessment: Arc<Assessment>,
    /// What to look up; mostly empty.
    pub queries: Vec<Query>,
    advice: Vec<Item>,
    stop: Option<Stop>,
    skipped_reason: Option<&'static str>,
    /// Nobody has asked the agent to wrap up yet.
    may_wrap_up: bool,
    wrap_up: Option<String>,
}

impl PreCall {
    /// Asks the agent to wrap up, where a budget that the host keeps is nearly used up; [`crate::policy::token_budget::wrap_up`] has the
    /// words. A run is asked once, whichever budget comes first, and not before its first step.
    pub fn with_wrap_up(mut self, text: String) -> Self {
        if std::mem::take(&mut self.may_wrap_up) {
            let advice = text.clone();
            self.advice.push(Item::Advice { source: Source::Budget, monitor: None, text: advice });
            self.wrap_up = Some(text);
        }
        self
    }

    /// What the host had to say about a budget, where it was taken up.
    pub fn wrap_up(&self) -> Option<&str> {
        self.wrap_up.as_deref()
    }

    /// The same with what a person wants to say to the agent; it comes before everything else.
    pub fn with_operator_messages(mut self, words: &[String]) -> Self {
        let said = words.iter().map(|words| Item::Advice {
            source: Source::Operator,
            monitor: None,
            text: operator_message(words),
        });
        self.advice.splice(0..0, said);
        self
    }
}

/// Why a host should end the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The hard limit of the token budget is reached.
    TokenBudget {
        /// Tokens used.
        used: u64,
        /// The limit.
        limit: u64,
    },
}

/// What the host should do with the next model call. After it, `Run::record`.
#[must_use = "make the call as planned, then call `Run::record`"]
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Go on, or end the run.
    pub stop: Option<Stop>,
    /// The model that should take the call instead of the one asked for.
    pub route: Option<String>,
    /// The text to put into the request, if any is due.
    pub fragment: Option<Fragment>,
    ask: PreCall,
    model_id: String,
    shown: Vec<Item>,
    answered: Vec<Tier>,
}

impl Plan {
    /// What the plan was made from.
    pub fn pre_call(&self) -> &PreCall {
        &self.ask
    }

    /// The same call without the guidance: it was planned and did not reach the model, so none of it counts.
    pub fn without_guidance(self) -> Self {
        Self { fragment: None, route: None, shown: Vec::new(), answered: Vec::new(), ..self }
    }

    /// The pieces of guidance that the fragment shows.
    pub fn shown(&self) -> &[Item] {
        &self.shown
    }
}

impl Run {
    /// A run that has not begun. The task, as the user put it, may be empty.
    pub fn new(rules: Arc<Engine>, task: &str) -> Self {
        let config = &rules.config;
        let monitors = MonitorSet::new(&rules, task);
        Self {
            fsm: Fsm::new(rules.limits),
            gate: Gate::new(config.gate),
            fired_steps: vec![0; monitors.monitors().count()],
            monitors,
            calls: 0,
            steps: 0,
            tokens: 0,
            wrap_up_shown: false,
            injections: 0,
            thoughts: VecDeque::new(),
            latest: Arc::default(),
            judge: AssessmentSource::Own,
            rules,
        }
    }

    /// Where the run is.
    pub fn state(&self) -> State {
        self.fsm.state()
    }

    /// Tokens recorded so far.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The share of the token budget that is used; `None` without a budget.
    pub fn budget_used(&self) -> Option<f64> {
        self.rules.config.budget.map(|budget| budget.share_used(self.tokens))
    }

    /// The monitors that watch.
    pub fn monitor_set(&self) -> &MonitorSet {
        &self.monitors
    }

    /// What the run keeps on the heap.
    pub fn heap_bytes(&self) -> usize {
        let thoughts: usize = self.thoughts.iter().map(String::capacity).sum();
        self.monitors.heap_bytes() + thoughts
    }

    /// The number by which the host calls the first step, and so do texts. Without effect once there is a step.
    pub fn set_first_step_index(&mut self, index: u32) {
        if self.steps == 0 {
            self.monitors.set_first_step_index(index);
        }
    }

    /// First stage. `new_steps` are those since the last model call: none before the first one, one after most
    /// turns, several where the model asked for several tools at once.
    pub fn before_model(&mut self, new_steps: &[Step<'_>]) -> PreCall {
        self.observe(new_steps, None);
        self.ask(true)
    }

    /// The first two stages at once, for a host that looks nothing up.
    pub fn decide(&mut self, new_steps: &[Step<'_>], model_id: &str) -> Plan {
        self.observe(new_steps, None);
        self.plan(self.ask(false), Retrieved::NONE, model_id)
    }

    /// First stage, where another engine has judged the same steps: its verdict stands in place of our own readings.
    /// Ours go on watching, so that a call for which no verdict could be had is judged by them.
    pub fn before_model_with_verdict(
        &mut self,
        new_steps: &[Step<'_>],
        verdict: RemoteVerdict,
    ) -> PreCall {
        self.observe(new_steps, Some(verdict));
        self.ask(true)
    }

    fn ask(&self, looks_up: bool) -> PreCall {
        let query = |tier: Tier| if looks_up { self.query(tier) } else { None };
        let state = self.fsm.state();
        let call = self.calls;
        let mut ask = PreCall {
            call,
            state,
            difficulty: self.latest.difficulty,
            assessment: Arc::clone(&self.latest),
            queries: Vec::new(),
            advice: Vec::new(),
            stop: self.stop(),
            skipped_reason: None,
            may_wrap_up: false,
            wrap_up: None,
        };
        if state == State::End {
            return ask;
        }
        if call == 0 {
            // Standing rules first, and nothing else: there is nothing to judge yet.
            ask.queries.extend(query(Tier::E3));
            return ask;
        }
        ask.advice.extend(self.monitor_advice(state));
        let wrap_up = self.wrap_up_advice();
        ask.may_wrap_up = !self.wrap_up_shown && wrap_up.is_none();
        ask.advice.extend(wrap_up);
        if state == State::Fast {
            ask.skipped_reason = Some(SKIPPED_IN_FAST);
        } else {
            ask.queries.extend([Tier::E3, Tier::E1, Tier::E2].into_iter().filter_map(query));
        }
        ask
    }

    /// Second stage: chooses the model, then writes for that model what is due. `model_id` is the model the host
    /// is about to call.
    pub fn plan(&self, ask: PreCall, found: Retrieved, model_id: &str) -> Plan {
        let config = &self.rules.config;
        let route = config.routing.model_for(ask.state).filter(|routed| *routed != model_id);
        let model_id = route.unwrap_or(model_id);
        let Retrieved { e1, e2, e3 } = found;
        let mut answered = Vec::new();
        let mut items = ask.advice.clone();
        for (tier, lookup) in [(Tier::E3, e3), (Tier::E1, e1), (Tier::E2, e2)] {
            let asked = ask.queries.iter().find(|query| query.tier == tier);
            if let (Some(query), TierResult::Answered(patterns)) = (asked, lookup) {
                answered.push(tier);
                let fitting = patterns.into_iter().filter(|pattern| pattern.body.tier() == tier);
                items.extend(fitting.take(query.top_k as usize).map(Item::Pattern));
            }
        }
        let (fragment, shown) = Fragment::build(items, model_id, config.fragment);
        Plan {
            stop: ask.stop,
            route: route.map(str::to_owned),
            fragment,
            model_id: model_id.to_owned(),
            shown,
            answered,
            ask,
        }
    }

    /// Third stage, after the model has answered: what was planned has happened and counts.
    pub fn record(&mut self, plan: Plan, reply: Reply) -> StepRecord {
        let Plan { ask, model_id, shown, answered, .. } = plan;
        for tier in answered {
            self.gate.mark_used(tier);
        }
        let mut texts = Vec::new();
        for item in &shown {
            self.injections = self.injections.saturating_add(1);
            if let Item::Advice { source, monitor, text } = item {
                texts.push(text.clone());
                if let Some(monitor) = monitor {
                    self.monitors.advised(monitor);
                }
                match source {
                    Source::Monitor => self.gate.note_advice(ask.call, text.clone()),
                    Source::Budget => self.wrap_up_shown = true,
                    Source::Pattern(_) | Source::Operator => {}
                }
            }
        }
        self.calls = ask.call.saturating_add(1);
        self.tokens = self.tokens.saturating_add(reply.usage.total);
        let fired = ranked(&ask.assessment, &self.monitors);
        StepRecord {
            step: ask.call,
            at_ms: reply.at_ms,
            difficulty: ask.difficulty,
            fsm_state: ask.state,
            model_id,
            injections: shown.iter().map(|item| item.preview(PREVIEW_CHARS_MAX)).collect(),
            injection_sources: shown.iter().map(Item::source).collect(),
            intervention_texts: texts,
            monitors_fired: ask.assessment.fired().map(|reading| reading.monitor.id).collect(),
            failure_type: fired.first().map(|reading| reading.monitor.failure_type),
            skipped_reason: ask.skipped_reason,
            thought_preview: self.thought_preview(),
            tool_calls: reply.tool_calls,
            usage: reply.usage,
            latency_ms: reply.latency_ms,
        }
    }

    /// Last stage: the run is over, and END is never left.
    pub fn finish(&mut self) -> Summary {
        self.fsm.finish();
        let fired = self.monitors.monitors().zip(&self.fired_steps);
        Summary {
            steps: self.steps,
            calls: self.calls,
            tokens: self.tokens,
            injections: self.injections,
            fired: fired
                .filter(|(_, steps)| **steps > 0)
                .map(|(spec, steps)| (spec.id, *steps))
                .collect(),
            state: self.fsm.state(),
        }
    }

    fn observe(&mut self, new_steps: &[Step<'_>], verdict: Option<RemoteVerdict>) {
        let assessments = new_steps.iter().map(|step| self.observe_one(step));
        let Some(mut latest) = assessments.reduce(Assessment::worse) else { return };
        self.judge = AssessmentSource::Own;
        if let Some(verdict) = verdict {
            let RemoteVerdict { readings, composite, advice } = verdict;
            latest = Assessment { readings, composite, ..latest };
            self.judge = AssessmentSource::Other { advice };
        }
        self.latest = Arc::new(latest);
        self.gate.note(self.latest.fired().next().is_some(), self.latest.composite);
    }

    /// One step: how hard it looks moves the machine, and the monitors read.
    fn observe_one(&mut self, step: &Step<'_>) -> Assessment {
        self.steps = self.steps.saturating_add(1);
        let assessment = self.monitors.observe(step);
        if let Some(difficulty) = assessment.difficulty {
            self.fsm.advance(difficulty);
            if self.thoughts.len() == E2_THOUGHTS {
                self.thoughts.pop_front();
            }
            self.thoughts.push_back(suffix(step.thought, THOUGHT_CHARS_MAX).to_owned());
        }
        for (count, reading) in self.fired_steps.iter_mut().zip(&assessment.readings) {
            *count = count.saturating_add(u32::from(reading.fired));
        }
        assessment
    }

    fn stop(&self) -> Option<Stop> {
        let budget = self.rules.config.budget?;
        let stop = Stop::TokenBudget { used: self.tokens, limit: budget.tokens_max };
        (budget.level(self.tokens) == Level::Over).then_some(stop)
    }

    /// The most serious advice that may be shown now and was not the last one shown.
    fn monitor_advice(&self, state: State) -> Option<Item> {
        if !self.gate.may_advise(self.calls, state) {
            return None;
        }
        let voices = self.voices();
        let (monitor, text) = match &self.judge {
            AssessmentSource::Own => {
                let mut advices = voices
                    .into_iter()
                    .filter_map(|reading| Some((reading.monitor.id, reading.advice()?)));
                let (monitor, text) = advices.find(|(_, text)| self.gate.is_new(text))?;
                (Some(monitor), text)
            }
            AssessmentSource::Other { advice } => {
                let text = advice.clone().filter(|text| self.gate.is_new(text))?;
                (voices.first().map(|reading| reading.monitor.id), text)
            }
        };
        Some(Item::Advice { source: Source::Monitor, monitor, text })
    }

    /// The readings that may speak, the most serious first.
    fn voices(&self) -> Vec<&Reading> {
        let mut voices = ranked(&self.latest, &self.monitors);
        let watches = |suite: Suite| self.monitors.monitors().any(|monitor| monitor.suite == suite);
        let chosen = !voices.is_empty() && self.rules.config.voices == AdviceSource::Semantic;
        if chosen && watches(Suite::Semantic) {
            voices.retain(|reading| reading.monitor.suite == Suite::Semantic);
        }
        voices
    }

    fn wrap_up_advice(&self) -> Option<Item> {
        let budget = self.rules.config.budget.filter(|_| !self.wrap_up_shown)?;
        let due = budget.level(self.tokens) == Level::WrapUp;
        due.then(|| Item::Advice {
            source: Source::Budget,
            monitor: None,
            text: budget.wrap_up_advice(self.tokens),
        })
    }

    /// The look-up of a tier, if it is worth making now.
    fn query(&self, tier: Tier) -> Option<Query> {
        if self.gate.is_used(tier) {
            return None;
        }
        let unwatched = self.monitors.is_empty() && matches!(self.judge, AssessmentSource::Own);
        let (due, thoughts, failure_type) = match tier {
            Tier::E3 => (true, 0, None),
            Tier::E1 => (unwatched || self.gate.is_open(), E1_THOUGHTS, None),
            // Waits for a failure instead of being spent on the first step.
            Tier::E2 => {
                let voices = self.voices();
                let failure_type = voices.first().map(|reading| reading.monitor.failure_type);
                (unwatched || failure_type.is_some(), E2_THOUGHTS, failure_type)
            }
        };
        if !due {
            return None;
        }
        let context = self.last_thoughts(thoughts);
        let described = tier == Tier::E3 || !context.is_empty();
        described.then(|| Query {
            tier,
            context,
            failure_type,
            top_k: self.gate.config().top_k(tier),
        })
    }

    fn last_thoughts(&self, count: usize) -> String {
        let from = self.thoughts.len().saturating_sub(count);
        self.thoughts.range(from..).map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    fn thought_preview(&self) -> String {
        match self.thoughts.back() {
            Some(thought) => shown_line(thought, THOUGHT_PREVIEW_CHARS_MAX),
            None if self.steps == 0 => FIRST_CALL.to_owned(),
            None => String::new(),
        }
    }
}

/// The readings that fired, the most serious first: by weight times score, then in the order of the table.
fn ranked<'a>(assessment: &'a Assessment, monitors: &MonitorSet) -> Vec<&'a Reading> {
    let weight = |reading: &Reading| {
        monitors.weights().get(reading.monitor.id).unwrap_or(0.0) * reading.score
    };
    let mut fired: Vec<&Reading> = assessment.fired().collect();
    fired.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    fired
}
