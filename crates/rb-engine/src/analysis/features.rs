//! Features of a step that several monitors use, computed once.

use crate::analysis::history::{History, StepContext};
use crate::analysis::lexicon::{ObservationLooks, ThoughtWords};
use crate::analysis::text::Lowercased;
use crate::step::Step;

/// A step with the results of the analysis of its texts.
#[derive(Clone, Copy)]
pub(crate) struct StepFeatures<'a> {
    pub(crate) step: Step<'a>,
    pub(crate) thought: ThoughtWords,
    /// The thought in lower case.
    pub(crate) lowercased: &'a Lowercased<'a>,
    pub(crate) observation: ObservationLooks,
    /// The analysed step and the history before it; `None` without semantic monitors.
    pub(crate) context: Option<(&'a StepContext, &'a History)>,
}

impl<'a> StepFeatures<'a> {
    pub(crate) fn of(step: Step<'a>, thought: &'a Lowercased<'a>) -> Self {
        Self {
            step,
            thought: ThoughtWords::of(thought),
            lowercased: thought,
            observation: ObservationLooks::of(step.observation),
            context: None,
        }
    }

    /// Reports whether the host marked the step as failed or the observation looks like a failure.
    pub(crate) fn failed(&self) -> bool {
        self.step.is_error || self.observation.failed
    }
}
