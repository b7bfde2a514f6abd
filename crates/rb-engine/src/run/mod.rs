//! Decisions of one run: `before_model`, then `plan`, then the model call, then `record`; at the end `finish`.
//!
//! Each stage consumes the value of the previous one, so none can be skipped or repeated. The host performs the IO
//! between them: it answers `PreCall::queries` and calls the model. Planned guidance has no effect on caps, cooldowns
//! and allowances until `Run::record`, after the model has answered. A failed call is not recorded, and the next
//! `Run::before_model` offers the same guidance again.
//!
//! # Driving a run
//!
//! `Run` is a state machine without IO. It owns the difficulty score, the state, the monitors with their history, the
//! cooldowns and allowances, and the wording of guidance. The host performs all IO and reads the clock:
//!
//! | stage | the host must |
//! |---|---|
//! | `Run::before_model` | pass every step since the last model call, once and in order |
//! | retrieval | answer `PreCall::queries`, usually none; a failed query is `TierResult::Failed` |
//! | `Run::plan` | pass the answers and the id of the model it is about to call |
//! | model call | stop at `Plan::stop`, else call `Plan::route` with `Plan::fragment` in the request |
//! | `Run::record` | call it only after a reply; if the guidance was not sent, pass `Plan::without_guidance` |
//! | `Run::finish` | call it at the end of the run |
//!
//! ```
//! use std::sync::Arc;
//!
//! use rb_engine::config::Engine;
//! use rb_engine::guidance::{Query, Retrieved};
//! use rb_engine::run::Run;
//! use rb_engine::run::record::Reply;
//! use rb_engine::step::{Input, Step};
//!
//! fn retrieve(_queries: &[Query]) -> Retrieved {
//!     Retrieved::NONE // The host searches its library here.
//! }
//! fn call_model(_guidance: Option<&str>) -> Option<Reply> {
//!     Some(Reply::default()) // `None` if the call failed.
//! }
//!
//! let mut run = Run::new(Arc::new(Engine::default()), "Fix the failing test.");
//! let mut new_steps = Vec::new();
//! for _ in 0..5 {
//!     let pre_call = run.before_model(&new_steps);
//!     let retrieved = retrieve(&pre_call.queries);
//!     let plan = run.plan(pre_call, retrieved, "claude-sonnet-4");
//!     if plan.stop.is_some() {
//!         break;
//!     }
//!     new_steps.clear();
//!     if let Some(reply) = call_model(plan.fragment.as_ref().map(|fragment| fragment.as_str())) {
//!         run.record(plan, reply);
//!         new_steps.push(Step::thought("Again.").with_action("bash", Input::Text("pytest")));
//!     }
//! }
//! assert_eq!(run.finish().steps, 4);
//! ```
//!
//! **Replay.** The same settings and embedder, and the same steps, answers, model ids and replies in the same order, give
//! the same scores, decisions and texts on any machine. To rebuild a run, replay them. No other state has to be stored.

mod monitor_set;
mod plan;
/// Log entry of a model call, and the totals of a run.
pub mod record;
/// Assessment of the newest steps by a server.
pub mod remote_verdict;

pub use crate::config::weights::round4;
pub use monitor_set::{Assessment, MonitorSet, Reading};
pub use plan::{Plan, PreCall, Stop};

use std::collections::VecDeque;
use std::sync::Arc;

use crate::analysis::text::{shown_line, suffix};
use crate::config::Engine;
use crate::guidance::fragment::{Fragment, Item};
use crate::guidance::{Query, Retrieved, Source, Tier, TierResult};
use crate::monitors::ALL;
use crate::policy::fsm::{Fsm, State};
use crate::policy::gate::Gate;
use crate::policy::token_budget::Level;
use crate::step::Step;
use record::{
    FIRST_CALL, PREVIEW_CHARS_MAX, Reply, SKIPPED_IN_FAST, StepRecord, Summary,
    THOUGHT_PREVIEW_CHARS_MAX,
};
use remote_verdict::{RemoteAdvice, RemoteVerdict};

/// Number of thoughts in the context of an E1 or E2 lookup.
const E1_THOUGHTS: usize = 3;
const E2_THOUGHTS: usize = 5;
/// Length limit of a stored thought. The end is kept, because it has the latest decision.
const THOUGHT_CHARS_MAX: usize = 4_000;

/// One monitored run. A fold over its steps: the same steps, lookup results and replies give the same run.
pub struct Run {
    engine: Arc<Engine>,
    fsm: Fsm,
    monitors: MonitorSet,
    gate: Gate,
    /// Recorded model calls.
    calls: u32,
    steps: u32,
    tokens: u64,
    wrap_up_shown: bool,
    injections: u32,
    /// Number of steps on which each monitor fired.
    fired_steps: Vec<u32>,
    /// The newest thoughts, oldest first.
    thoughts: VecDeque<String>,
    /// Assessment of the newest steps; reused for a repeated call.
    latest: Arc<Assessment>,
    source: AssessmentSource,
}

/// Origin of `Run::latest`.
enum AssessmentSource {
    /// The monitors of the run.
    Own,
    /// A server, with its guidance.
    Remote { advice: Vec<RemoteAdvice> },
}

impl Run {
    /// Creates a run. The task is in the words of the user and may be empty.
    pub fn new(engine: Arc<Engine>, task: &str) -> Self {
        let monitors = MonitorSet::new(&engine, task);
        Self {
            fsm: Fsm::new(engine.limits),
            gate: Gate::new(engine.policy().gate),
            fired_steps: vec![0; monitors.monitors().count()],
            monitors,
            calls: 0,
            steps: 0,
            tokens: 0,
            wrap_up_shown: false,
            injections: 0,
            thoughts: VecDeque::new(),
            latest: Arc::default(),
            source: AssessmentSource::Own,
            engine,
        }
    }

    /// Returns the state of the run.
    pub fn state(&self) -> State {
        self.fsm.state()
    }

    /// Returns the tokens recorded so far.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns the used share of the token budget; `None` without a budget.
    pub fn budget_used(&self) -> Option<f64> {
        self.engine.config.budget.map(|budget| budget.share_used(self.tokens))
    }

    /// Returns the monitors of the run.
    pub fn monitor_set(&self) -> &MonitorSet {
        &self.monitors
    }

    /// Returns the heap memory of the run.
    pub fn heap_bytes(&self) -> usize {
        let thoughts: usize = self.thoughts.iter().map(String::capacity).sum();
        self.monitors.heap_bytes() + thoughts
    }

    /// Sets the index of the first step, which texts refer to. No effect after the first step.
    pub fn set_first_step_index(&mut self, index: u32) {
        if self.steps == 0 {
            self.monitors.set_first_step_index(index);
        }
    }

    /// First stage. `new_steps` are those since the last model call: none before the first call, usually one, several
    /// if the model made parallel tool calls.
    pub fn before_model(&mut self, new_steps: &[Step<'_>]) -> PreCall {
        self.observe(new_steps, None);
        self.pre_call(true)
    }

    /// First and second stage in one call, for a host without lookups.
    pub fn decide(&mut self, new_steps: &[Step<'_>], model_id: &str) -> Plan {
        self.observe(new_steps, None);
        self.plan(self.pre_call(false), Retrieved::NONE, model_id)
    }

    /// First stage with the assessment of a server, which replaces the run's own. The monitors of the run observe the
    /// steps as well, so that they can assess a later call for which the server fails.
    pub fn before_model_with_verdict(
        &mut self,
        new_steps: &[Step<'_>],
        verdict: RemoteVerdict,
    ) -> PreCall {
        self.observe(new_steps, Some(verdict));
        self.pre_call(true)
    }

    fn pre_call(&self, looks_up: bool) -> PreCall {
        let query = |tier: Tier| if looks_up { self.query(tier) } else { None };
        let state = self.fsm.state();
        let call = self.calls;
        let mut pre_call = PreCall {
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
            return pre_call;
        }
        if call == 0 {
            // Only standing rules: no step was assessed yet.
            pre_call.queries.extend(query(Tier::E3));
            return pre_call;
        }
        pre_call.advice.extend(self.monitor_advice(state));
        let wrap_up = self.wrap_up_advice();
        pre_call.may_wrap_up = !self.wrap_up_shown && wrap_up.is_none();
        pre_call.advice.extend(wrap_up);
        if state == State::Fast {
            pre_call.skipped_reason = Some(SKIPPED_IN_FAST);
        } else {
            pre_call.queries.extend([Tier::E3, Tier::E1, Tier::E2].into_iter().filter_map(query));
        }
        pre_call
    }

    /// Second stage: selects the model and renders the guidance for it. `model_id` is the model that the host is about
    /// to call.
    pub fn plan(&self, pre_call: PreCall, found: Retrieved, model_id: &str) -> Plan {
        let config = &self.engine.config;
        let route = config.routing.model_for(pre_call.state).filter(|routed| *routed != model_id);
        let model_id = route.unwrap_or(model_id);
        let Retrieved { e1, e2, e3 } = found;
        let mut answered = Vec::new();
        let mut items = pre_call.advice.clone();
        for (tier, lookup) in [(Tier::E3, e3), (Tier::E1, e1), (Tier::E2, e2)] {
            let asked = pre_call.queries.iter().find(|query| query.tier == tier);
            if let (Some(query), TierResult::Answered(patterns)) = (asked, lookup) {
                answered.push(tier);
                let fitting = patterns.into_iter().filter(|pattern| pattern.body.tier() == tier);
                items.extend(fitting.take(query.top_k as usize).map(Item::Pattern));
            }
        }
        let (fragment, shown) = Fragment::build(items, model_id, config.policy.fragment);
        Plan {
            stop: pre_call.stop,
            route: route.map(str::to_owned),
            fragment,
            model_id: model_id.to_owned(),
            shown,
            answered,
            pre_call,
        }
    }

    /// Third stage, after the model has answered: the planned guidance counts as shown.
    pub fn record(&mut self, plan: Plan, reply: Reply) -> StepRecord {
        let Plan { pre_call, model_id, shown, answered, .. } = plan;
        for tier in answered {
            self.gate.mark_used(tier);
        }
        let (mut texts, mut advised) = (Vec::new(), Vec::new());
        for item in &shown {
            self.injections = self.injections.saturating_add(1);
            if let Item::Advice { source, monitor, text } = item {
                texts.push(text.clone());
                if let Some(monitor) = monitor {
                    self.monitors.advised(monitor);
                    advised.push(*monitor);
                }
                match source {
                    Source::Monitor => self.gate.note_advice(pre_call.call, text.clone()),
                    Source::Budget => self.wrap_up_shown = true,
                    Source::Pattern(_) | Source::Operator => {}
                }
            }
        }
        self.calls = pre_call.call.saturating_add(1);
        self.tokens = self.tokens.saturating_add(reply.usage.total);
        StepRecord {
            step: pre_call.call,
            at_ms: reply.at_ms,
            difficulty: pre_call.difficulty,
            fsm_state: pre_call.state,
            model_id,
            injections: shown.iter().map(|item| item.preview(PREVIEW_CHARS_MAX)).collect(),
            injection_sources: shown.iter().map(Item::source).collect(),
            intervention_texts: texts,
            advised,
            monitors_fired: pre_call.assessment.fired().map(|reading| reading.monitor.id).collect(),
            failure_type: self.failure_type(&pre_call.assessment),
            skipped_reason: pre_call.skipped_reason,
            thought_preview: self.thought_preview(),
            tool_calls: reply.tool_calls,
            usage: reply.usage,
            latency_ms: reply.latency_ms,
        }
    }

    /// Last stage: ends the run. The state is END from now on.
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

    /// Returns the failure type of the most serious monitor that fired.
    pub fn failure_type(&self, assessment: &Assessment) -> Option<&'static str> {
        let ranked = self.monitors.ranked(assessment);
        ranked.first().filter(|reading| reading.fired).map(|reading| reading.monitor.failure_type)
    }

    fn observe(&mut self, new_steps: &[Step<'_>], verdict: Option<RemoteVerdict>) {
        let assessments = new_steps.iter().map(|step| self.observe_one(step));
        let Some(mut latest) = assessments.reduce(Assessment::worse) else { return };
        self.source = AssessmentSource::Own;
        if let Some(verdict) = verdict {
            latest.readings.retain(|own| {
                !verdict.has(own.monitor.id) && self.engine.policy().is_quiet(own.monitor.id)
            });
            let RemoteVerdict { readings, composite, advice } = verdict;
            latest.readings.extend(readings);
            let place = |reading: &Reading| ALL.iter().position(|spec| *spec == reading.monitor);
            latest.readings.sort_by_key(place);
            latest.composite = composite;
            self.source = AssessmentSource::Remote { advice };
        }
        self.latest = Arc::new(latest);
        self.gate.note(self.latest.fired().next().is_some(), self.latest.composite);
    }

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
        let budget = self.engine.config.budget?;
        let stop = Stop::TokenBudget { used: self.tokens, limit: budget.tokens_max };
        (budget.level(self.tokens) == Level::Over).then_some(stop)
    }

    /// Returns the advice of the most serious monitor that fired, without the text that was shown last.
    fn monitor_advice(&self, state: State) -> Option<Item> {
        if !self.gate.may_advise(self.calls, state) {
            return None;
        }
        let fired: Vec<&Reading> = self.ranked_fired().collect();
        let item = |monitor: Option<&'static str>, text: String| {
            let is_new = self.gate.is_new(&text);
            is_new.then_some(Item::Advice { source: Source::Monitor, monitor, text })
        };
        let own = |reading: &&Reading| {
            let id = reading.monitor.id;
            let text = match &self.source {
                AssessmentSource::Own => reading.advice(),
                AssessmentSource::Remote { advice } => {
                    let of = |advice: &&RemoteAdvice| advice.monitor.as_deref() == Some(id);
                    advice.iter().find(of).map(|advice| advice.text.clone())
                }
            };
            item(Some(id), text?)
        };
        let first = fired.first().map(|reading| reading.monitor.id);
        let other = match &self.source {
            AssessmentSource::Own => None,
            AssessmentSource::Remote { advice } => {
                let other = advice.iter().find(|advice| advice.monitor.is_none());
                other.and_then(|advice| item(first, advice.text.clone()))
            }
        };
        other.or_else(|| fired.iter().find_map(own))
    }

    /// Returns the readings that fired, the most serious first.
    fn ranked_fired(&self) -> impl Iterator<Item = &Reading> {
        self.monitors.ranked(&self.latest).into_iter().filter(|reading| reading.fired)
    }

    fn wrap_up_advice(&self) -> Option<Item> {
        let budget = self.engine.config.budget.filter(|_| !self.wrap_up_shown)?;
        let due = budget.level(self.tokens) == Level::WrapUp;
        due.then(|| Item::Advice {
            source: Source::Budget,
            monitor: None,
            text: budget.wrap_up_advice(self.tokens),
        })
    }

    /// Returns the lookup of a tier, if it is due.
    fn query(&self, tier: Tier) -> Option<Query> {
        if self.gate.is_used(tier) {
            return None;
        }
        let unmonitored = self.monitors.is_empty() && matches!(self.source, AssessmentSource::Own);
        let (due, thoughts, failure_type) = match tier {
            Tier::E3 => (self.engine.policy().standing_rules, 0, None),
            Tier::E1 => (unmonitored || self.gate.is_open(), E1_THOUGHTS, None),
            // Waits for a failure, because only one lookup is made per run.
            Tier::E2 => {
                let failure_type = self.failure_type(&self.latest);
                (unmonitored || failure_type.is_some(), E2_THOUGHTS, failure_type)
            }
        };
        if !due {
            return None;
        }
        let context = self.last_thoughts(thoughts);
        let is_described = tier == Tier::E3 || !context.is_empty();
        is_described.then(|| Query {
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
