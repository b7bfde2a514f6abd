//! What several readers want to know of one step, found out once.

use crate::analysis::history::{History, StepContext};
use crate::analysis::lexicon::{ObservationLooks, ThoughtWords};
use crate::analysis::text::Lowercased;
use crate::step::Step;

/// A step and what a first reading of its texts shows.
#[derive(Clone, Copy)]
pub(crate) struct StepFeatures<'a> {
    pub(crate) step: Step<'a>,
    pub(crate) thought: ThoughtWords,
    /// The thought in lower case.
    pub(crate) folded: &'a Lowercased<'a>,
    pub(crate) observation: ObservationLooks,
    /// The step understood, and what came before; only there when a semantic monitor watches.
    pub(crate) scene: Option<(&'a StepContext, &'a History)>,
}

impl<'a> StepFeatures<'a> {
    pub(crate) fn of(step: Step<'a>, thought: &'a Lowercased<'a>) -> Self {
        Self {
            step,
            thought: ThoughtWords::of(thought),
            folded: thought,
            observation: ObservationLooks::of(step.observation),
            scene: None,
        }
    }

    /// The host says so, or the observation looks like it.
    pub(crate) fn failed(&self) -> bool {
        self.step.is_error || self.observation.failed
    }
}
