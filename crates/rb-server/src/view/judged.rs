//! A recorded run, judged by the engine as `rb check` does, with what would have been said.

use std::borrow::Cow;
use std::sync::Arc;

use rb_engine::config::Engine;
use rb_engine::guidance::Retrieved;
use rb_engine::policy::fsm::{Fsm, Limits};
use rb_engine::run::Run as Walk;
use rb_engine::run::record::Reply;
use rb_engine::run::{Assessment, MonitorSet};
use rb_engine::step::Step;
use rb_wire::transcripts::{Run, RunInput, RunStep, Usage};

use super::{EvidenceView, RunView, StepView};

/// Watches a run that was not steered. The name and the place are for a run that does not say its own.
pub fn judged<'a>(
    run: &'a Run<'_>,
    place: &'a str,
    file: &'a str,
    rules: &Arc<Engine>,
) -> RunView<'a> {
    let task = run.task.as_deref().unwrap_or_default();
    let mut panel = MonitorSet::new(rules, task);
    let mut fsm = Fsm::new(Limits::default());
    // Readings are those of the run as it was; the walk beside them says when and what a steered one would have heard.
    let mut advisor = Advisor::new(rules, task, run.model.as_deref().unwrap_or_default());
    let monitors = panel.monitors().map(|monitor| Cow::Borrowed(monitor.id)).collect();
    let steps = run.steps.iter().zip(0..).map(|(recorded, index)| {
        let step = recorded.step();
        let assessment = panel.observe(&step);
        let state = assessment.difficulty.map_or(fsm.state(), |difficulty| fsm.advance(difficulty));
        let view = StepView { index, state, would_say: advisor.hear(&step), ..texts(recorded) };
        read(view, &assessment)
    });
    let steps: Vec<_> = steps.collect();
    RunView {
        name: Cow::Borrowed(run.run_id.as_deref().unwrap_or(place)),
        place: Cow::Borrowed(file),
        task: Cow::Borrowed(task),
        outcome: run.outcome.as_deref().map(Cow::Borrowed),
        agent: Cow::Borrowed(run.agent.as_deref().unwrap_or_default()),
        model: Cow::Borrowed(run.model.as_deref().unwrap_or_default()),
        started_ms: run.started_ms.and_then(|ms| i64::try_from(ms).ok()),
        ended_ms: run.ended_ms.and_then(|ms| i64::try_from(ms).ok()),
        tokens: tokens(run.usage).or_else(|| summed(steps.iter().map(|step| step.tokens))),
        cost_usd: run
            .cost_usd
            .or_else(|| steps.iter().filter_map(|step| step.cost_usd).reduce(|a, b| a + b)),
        monitors,
        steps,
    }
}

fn texts<'a>(step: &'a RunStep<'_>) -> StepView<'a> {
    let input = match &step.input {
        RunInput::None => "",
        RunInput::Text(text) | RunInput::Structured(text) => text,
    };
    StepView {
        user_input: Cow::Borrowed(&step.user_input),
        thought: Cow::Borrowed(&step.thought),
        action: Cow::Borrowed(&step.tool),
        input: Cow::Borrowed(input),
        observation: Cow::Borrowed(&step.observation),
        is_error: step.is_error,
        tokens: tokens(step.usage),
        cost_usd: step.cost_usd,
        ..StepView::default()
    }
}

/// The step with what the monitors say of it.
fn read<'a>(step: StepView<'a>, assessment: &Assessment) -> StepView<'a> {
    let evidence = assessment.fired().filter_map(|reading| {
        let seen = reading.evidence.as_ref()?;
        Some(EvidenceView {
            monitor: Cow::Borrowed(reading.monitor.id),
            score: reading.score,
            text: Cow::Owned(reading.monitor.advice(seen)),
            steps: seen.steps.iter().map(|step| step.0).collect(),
        })
    });
    StepView {
        difficulty: assessment.difficulty,
        composite: assessment.composite,
        scores: assessment.readings.iter().map(|reading| reading.score).collect(),
        fired: assessment.fired().map(|reading| Cow::Borrowed(reading.monitor.id)).collect(),
        evidence: evidence.collect(),
        ..step
    }
}

fn tokens(usage: Usage) -> Option<u64> {
    summed([usage.input_tokens, usage.output_tokens].into_iter())
}

fn summed(counts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    counts.flatten().reduce(u64::saturating_add)
}

/// A walk beside the run, as if it had been steered.
struct Advisor {
    walk: Walk,
    model: String,
}

impl Advisor {
    fn new(rules: &Arc<Engine>, task: &str, model: &str) -> Self {
        let mut new = Self { walk: Walk::new(Arc::clone(rules), task), model: model.to_owned() };
        let _ = new.call(&[]); // the first call comes before any step
        new
    }

    /// What would have been said after this step.
    fn hear(&mut self, step: &Step<'_>) -> Option<String> {
        self.call(std::slice::from_ref(step))
    }

    fn call(&mut self, steps: &[Step<'_>]) -> Option<String> {
        let ask = self.walk.before_model(steps);
        let plan = self.walk.plan(ask, Retrieved::NONE, &self.model);
        let said = plan.fragment.as_ref().map(|fragment| fragment.as_str().to_owned());
        let _ = self.walk.record(plan, Reply::default());
        said
    }
}
