//! Runs as people look at them: from a run, stored or recorded, to HTML with its charts drawn as SVG.
//!
//! No IO: a `RunView` goes in, markup comes out. `rb report` puts it into one file, the dashboard into its pages.
//! Whatever a run holds is written through `text::Shown`, which escapes it, makes invisible characters visible and
//! cuts what is too long; the templates escape everything else.

/// Pictures of a run.
mod chart;
/// Several runs in one page: the worst first, and agents side by side.
mod index;
/// A recorded run, judged by the engine.
mod judged;
/// A page that is whole in itself.
mod page;
/// One run in full.
mod run;
/// The steps to read.
mod steps;
/// A run that was stored.
mod stored;
/// Texts of others, made harmless.
pub(crate) mod text;

use std::borrow::Cow;

use rb_engine::policy::fsm::State;

pub(crate) use index::bar;
pub use index::{Listed, index};
pub use judged::judged;
pub use maud::Markup;
pub use page::page;
pub(crate) use run::{outcome, run_with};
pub use run::{run, title};
pub use stored::stored;
pub use text::{grouped, is_invisible};

/// The look of all pages.
pub const STYLE: &str = include_str!("style.css");

/// A run as it is drawn.
#[derive(Debug, Clone, Default)]
pub struct RunView<'a> {
    pub name: Cow<'a, str>,
    /// The file it was read from; empty for a stored run.
    pub place: Cow<'a, str>,
    pub task: Cow<'a, str>,
    pub outcome: Option<Cow<'a, str>>,
    pub agent: Cow<'a, str>,
    pub model: Cow<'a, str>,
    pub started_ms: Option<i64>,
    pub ended_ms: Option<i64>,
    pub tokens: Option<u64>,
    pub cost_usd: Option<f64>,
    /// The monitors that watched; `StepView::scores` has one for each.
    pub monitors: Vec<Cow<'a, str>>,
    pub steps: Vec<StepView<'a>>,
}

/// A step as it is drawn. Absent texts are empty.
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
    /// How hard the thought looked; `None` where there was none.
    pub difficulty: Option<f64>,
    pub state: State,
    pub composite: f64,
    pub scores: Vec<f64>,
    pub fired: Vec<Cow<'a, str>>,
    pub evidence: Vec<EvidenceView<'a>>,
    /// What was said to the agent, by whom.
    pub said: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// What would have been said, had the run been steered.
    pub would_say: Option<String>,
}

/// Why a monitor fired.
#[derive(Debug, Clone, Default)]
pub struct EvidenceView<'a> {
    pub monitor: Cow<'a, str>,
    pub score: f64,
    pub text: Cow<'a, str>,
    pub steps: Vec<u32>,
}

impl StepView<'_> {
    /// Whether guidance was given, or would have been.
    pub fn is_advised(&self) -> bool {
        !self.said.is_empty() || self.would_say.is_some()
    }
}

impl RunView<'_> {
    /// The highest composite and the index of the first step that has it.
    pub fn peak(&self) -> Option<(u32, f64)> {
        let composites = self.steps.iter().map(|step| (step.index, step.composite));
        composites.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }

    /// The monitors that fired, in the order of the table, each with its steps.
    pub fn fires(&self) -> Vec<(&str, Vec<&StepView<'_>>)> {
        let fires = self.monitors.iter().map(|monitor| {
            let fired = self.steps.iter().filter(|step| step.fired.contains(monitor));
            (monitor.as_ref(), fired.collect::<Vec<_>>())
        });
        fires.filter(|(_, steps)| !steps.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests;
