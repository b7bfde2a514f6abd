//! Data that the renderer needs of a run.

use std::borrow::Cow;

use rb_engine::policy::fsm::State;

/// Run as it is rendered.
#[derive(Debug, Clone, Default)]
pub struct RunView<'a> {
    pub name: Cow<'a, str>,
    /// File it was read from; empty for a stored run.
    pub place: Cow<'a, str>,
    pub task: Cow<'a, str>,
    pub outcome: Option<Cow<'a, str>>,
    /// Without an outcome and recently active.
    pub is_running: bool,
    pub agent: Cow<'a, str>,
    pub model: Cow<'a, str>,
    pub started_ms: Option<i64>,
    pub ended_ms: Option<i64>,
    pub tokens: Option<u64>,
    pub cost_usd: Option<f64>,
    /// Monitors that scored the run, quiet ones last; `StepView::scores` has one entry for each.
    pub monitors: Vec<Cow<'a, str>>,
    pub steps: Vec<StepView<'a>>,
}

/// Step as it is rendered. Absent texts are empty.
#[derive(Debug, Clone, Default)]
pub struct StepView<'a> {
    pub index: u32,
    pub user_input: Cow<'a, str>,
    pub thought: Cow<'a, str>,
    pub action: Cow<'a, str>,
    pub input: Cow<'a, str>,
    pub observation: Cow<'a, str>,
    pub is_error: bool,
    pub tokens: Option<u64>,
    pub cost_usd: Option<f64>,
    /// Difficulty of the thought; `None` if there was none.
    pub difficulty: Option<f64>,
    pub state: State,
    pub composite: f64,
    pub scores: Vec<f64>,
    pub fired: Vec<Cow<'a, str>>,
    /// Monitors at their thresholds that are only recorded.
    pub signals: Vec<Cow<'a, str>>,
    pub evidence: Vec<EvidenceView<'a>>,
    /// Guidance given to the agent, as (source, text).
    pub guidance: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Guidance that a steered run would have received.
    pub guidance_due: Option<String>,
}

/// Reason why a monitor fired.
#[derive(Debug, Clone, Default)]
pub struct EvidenceView<'a> {
    pub monitor: Cow<'a, str>,
    pub score: f64,
    pub text: Cow<'a, str>,
    pub steps: Vec<u32>,
}

impl StepView<'_> {
    /// Returns true if guidance was given or due.
    pub fn is_advised(&self) -> bool {
        !self.guidance.is_empty() || self.guidance_due.is_some()
    }
}

impl<'a> RunView<'a> {
    /// Returns the highest composite and the index of the first step that has it.
    pub fn peak(&self) -> Option<(u32, f64)> {
        let composites = self.steps.iter().map(|step| (step.index, step.composite));
        composites.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }

    /// Returns the monitors that fired, in the order of `monitors`, each with its steps.
    pub fn fires(&self) -> Vec<(&str, Vec<&StepView<'a>>)> {
        self.steps_by_monitor(|step| &step.fired)
    }

    /// Returns the quiet signals as [`Self::fires`] does.
    pub fn signals(&self) -> Vec<(&str, Vec<&StepView<'a>>)> {
        self.steps_by_monitor(|step| &step.signals)
    }

    fn steps_by_monitor(
        &self,
        of: for<'s> fn(&'s StepView<'a>) -> &'s Vec<Cow<'a, str>>,
    ) -> Vec<(&str, Vec<&StepView<'a>>)> {
        let monitors = self.monitors.iter().map(|monitor| {
            let steps = self.steps.iter().filter(|step| of(step).contains(monitor));
            (monitor.as_ref(), steps.collect::<Vec<_>>())
        });
        monitors.filter(|(_, steps)| !steps.is_empty()).collect()
    }
}
