//! View of a recorded run: assessed by the engine as in `rb check`, with the guidance that a steered run would have received.

use std::borrow::Cow;
use std::sync::Arc;

use rb_engine::config::Engine;
use rb_engine::guidance::Retrieved;
use rb_engine::monitors::MonitorSpec;
use rb_engine::policy::fsm::{Fsm, Limits};
use rb_engine::run::Run as SteeredRun;
use rb_engine::run::record::Reply;
use rb_engine::run::{Assessment, MonitorSet};
use rb_engine::step::Step;
use rb_wire::model::{RecordedUsage, Run, RunInput, RunStep};

use crate::model::{EvidenceView, RunView, StepView};

/// Assesses a recorded run. `place` names a run without an id; `file` is the file it was read from.
pub fn from_transcript<'a>(
    run: &'a Run<'_>,
    place: &'a str,
    file: &'a str,
    engine: &Arc<Engine>,
) -> RunView<'a> {
    let task = run.task.as_deref().unwrap_or_default();
    let mut monitor_set = MonitorSet::new(engine, task);
    let mut fsm = Fsm::new(Limits::default());
    // Scores are those of the unsteered run; the advisor simulates the steered one.
    let mut advisor = Advisor::new(engine, task, run.model.as_deref().unwrap_or_default());
    let policy = *engine.policy();
    let mut monitors: Vec<&'static MonitorSpec> = monitor_set.monitors().collect();
    monitors.sort_by_key(|monitor| !policy.fires(monitor.suite));
    let monitors: Vec<Cow<'_, str>> =
        monitors.into_iter().map(|monitor| Cow::Borrowed(monitor.id)).collect();
    let steps = run.steps.iter().zip(0..).map(|(recorded, index)| {
        let step = recorded.step();
        let assessment = monitor_set.observe(&step);
        let state = fsm.observe(assessment.difficulty);
        let view =
            StepView { index, state, guidance_due: advisor.observe(&step), ..texts(recorded) };
        with_assessment(view, &assessment, &monitors)
    });
    let steps: Vec<_> = steps.collect();
    RunView {
        name: Cow::Borrowed(run.run_id.as_deref().unwrap_or(place)),
        place: Cow::Borrowed(file),
        task: Cow::Borrowed(task),
        outcome: run.outcome.as_deref().map(Cow::Borrowed),
        is_running: false,
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

/// Adds scores, fired monitors and evidence to a step.
fn with_assessment<'a>(
    step: StepView<'a>,
    assessment: &Assessment,
    monitors: &[Cow<'_, str>],
) -> StepView<'a> {
    let score = |monitor: &Cow<'_, str>| {
        let reading = assessment.readings.iter().find(|reading| reading.monitor.id == monitor);
        reading.map(|reading| reading.score).unwrap_or_default()
    };
    let evidence = assessment.fired().chain(assessment.signals()).filter_map(|reading| {
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
        scores: monitors.iter().map(score).collect(),
        fired: assessment.fired().map(|reading| Cow::Borrowed(reading.monitor.id)).collect(),
        signals: assessment.signals().map(|reading| Cow::Borrowed(reading.monitor.id)).collect(),
        evidence: evidence.collect(),
        ..step
    }
}

fn tokens(usage: RecordedUsage) -> Option<u64> {
    summed([usage.input_tokens, usage.output_tokens].into_iter())
}

fn summed(counts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    counts.flatten().reduce(u64::saturating_add)
}

/// Simulates a steered run on the same steps.
struct Advisor {
    run: SteeredRun,
    model: String,
}

impl Advisor {
    fn new(engine: &Arc<Engine>, task: &str, model: &str) -> Self {
        let run = SteeredRun::new(Arc::clone(engine), task);
        let mut advisor = Self { run, model: model.to_owned() };
        let _ = advisor.call(&[]); // the first model call precedes every step
        advisor
    }

    /// Returns the guidance due after this step.
    fn observe(&mut self, step: &Step<'_>) -> Option<String> {
        self.call(std::slice::from_ref(step))
    }

    fn call(&mut self, steps: &[Step<'_>]) -> Option<String> {
        let pre_call = self.run.before_model(steps);
        let plan = self.run.plan(pre_call, Retrieved::NONE, &self.model);
        let guidance = plan.fragment.as_ref().map(|fragment| fragment.as_str().to_owned());
        let _ = self.run.record(plan, Reply::default());
        guidance
    }
}
