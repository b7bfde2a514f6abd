//! What several readers want to know of one step, found out once.

use crate::lexicon::{ObservationLooks, ThoughtWords};
use crate::scene::{Past, Scene};
use crate::step::Step;

/// A step and what a first reading of its texts shows.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) step: Step<'a>,
    pub(crate) thought: ThoughtWords,
    pub(crate) observation: ObservationLooks,
    /// The step understood, and what came before; only there when a semantic monitor watches.
    pub(crate) scene: Option<(&'a Scene, &'a Past)>,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(step: Step<'a>) -> Self {
        Self {
            step,
            thought: ThoughtWords::of(step.thought),
            observation: ObservationLooks::of(step.observation),
            scene: None,
        }
    }

    /// The host says so, or the observation looks like it.
    pub(crate) fn failed(&self) -> bool {
        self.step.is_error || self.observation.failed
    }
}
