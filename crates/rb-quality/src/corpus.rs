//! Runs whose outcome, and perhaps whose mistakes, are known.

use rb_engine::step::{Input, Step};
use serde::Serialize;

use crate::dice::hash;

/// How a run ended, by a judge that is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The task was done.
    Success,
    /// It was not.
    Failure,
}

/// What the agent was asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Task {
    /// Runs of the same task share it; resampling and splitting go by it.
    pub key: String,
    /// The words of the task; may be empty.
    pub text: String,
}

/// A step that owns its texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnedStep {
    /// The model's visible text.
    pub thought: String,
    /// The tool's name; empty when nothing was called.
    pub tool: String,
    /// What the tool was given; empty when nothing.
    pub input: String,
    /// The argument was a string, not an object.
    pub input_is_text: bool,
    /// What came back.
    pub observation: String,
    /// The host said that the call failed.
    pub is_error: bool,
    /// What a person said just before.
    pub user_input: String,
}

impl OwnedStep {
    /// The step as the engine sees it.
    pub fn step(&self) -> Step<'_> {
        let input = match (self.input.is_empty(), self.input_is_text) {
            (true, _) => Input::None,
            (false, true) => Input::Text(&self.input),
            (false, false) => Input::Structured(&self.input),
        };
        let step = Step { user_input: &self.user_input, ..Step::thought(&self.thought) };
        step.with_action(&self.tool, input)
            .with_observation(&self.observation)
            .with_error(self.is_error)
    }
}

/// A step in which a person saw a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledStep {
    /// Its place in the run, from 0.
    pub index: usize,
    /// What kind of mistake; in the words of the set.
    pub category: String,
}

/// One run of one agent on one task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelledRun {
    /// Unique within its set.
    pub id: String,
    /// The set it comes from.
    pub set: String,
    /// What was asked.
    pub task: Task,
    /// How it ended, where that is known.
    pub outcome: Option<Outcome>,
    /// What happened.
    pub steps: Vec<OwnedStep>,
    /// Where people saw mistakes.
    pub labelled_steps: Vec<LabelledStep>,
    /// Who ran.
    pub agent: String,
    /// On which model.
    pub model: String,
}

/// A part of the data. What is tuned on one part is believed on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// Everything.
    All,
    /// Two tasks in three: the part to look at while tuning.
    Dev,
    /// One task in three: the part not to look at.
    HeldOut,
}

impl Split {
    /// Every split, in the order of columns.
    pub const ALL: [Self; 3] = [Self::All, Self::Dev, Self::HeldOut];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Dev => "dev",
            Self::HeldOut => "held out",
        }
    }

    /// Whether the run belongs to it. All runs of a task fall on the same side.
    pub fn holds(self, run: &LabelledRun) -> bool {
        let held_out = (hash(&run.task.key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 3;
        match self {
            Self::All => true,
            Self::Dev => held_out != 0,
            Self::HeldOut => held_out == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_keeps_the_form_of_its_input() {
        let step = |input: &str, input_is_text| OwnedStep {
            tool: "bash".into(),
            input: input.into(),
            input_is_text,
            ..OwnedStep::default()
        };
        let form =
            |step: &OwnedStep| step.step().action.map(|action| format!("{:?}", action.input));
        assert_eq!(form(&step("ls", true)).as_deref(), Some("Text(\"ls\")"));
        assert_eq!(form(&step("{}", false)).as_deref(), Some("Structured(\"{}\")"));
        assert_eq!(form(&step("", true)).as_deref(), Some("None"));
        assert_eq!(form(&OwnedStep::default()), None);
    }

    #[test]
    fn about_a_third_of_the_tasks_is_held_out() {
        let held = (0..3000)
            .map(|n| LabelledRun {
                task: Task { key: format!("task {n}"), ..Task::default() },
                ..LabelledRun::default()
            })
            .filter(|run| {
                assert_ne!(Split::Dev.holds(run), Split::HeldOut.holds(run));
                Split::HeldOut.holds(run)
            })
            .count();
        assert!((900..1100).contains(&held), "{held}");
    }
}
