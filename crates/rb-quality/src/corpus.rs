//! Labelled runs and the split into tuning and held-out tasks.

use std::borrow::Cow;

use rb_engine::step::{Input, Step};
use rb_wire::model::{Run, RunInput, RunStep};
use serde::Serialize;
use serde_json::Value;

use crate::rng::hash;

/// The outcome of a run, from a source other than the monitors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The task was solved.
    Success,
    /// The task was not solved.
    Failure,
}

/// The task of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Task {
    /// Shared by the runs of one task; the unit of resampling and splitting.
    pub key: String,
    /// The text of the task; can be empty.
    pub text: String,
}

/// An owned [`Step`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnedStep {
    /// The visible text of the model.
    pub thought: String,
    /// The name of the tool; empty without a call.
    pub tool: String,
    /// The argument of the tool; empty without one.
    pub input: String,
    /// The argument is a string rather than an object.
    pub input_is_text: bool,
    /// The result of the tool.
    pub observation: String,
    /// The host reported that the call failed.
    pub is_error: bool,
    /// The message of the user before this step.
    pub user_input: String,
}

impl OwnedStep {
    /// Borrows the step for the engine.
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

/// A step that a person labelled as a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledStep {
    /// Index in the run, from 0.
    pub index: usize,
    /// The kind of mistake, as named by the set.
    pub category: String,
}

/// One run of one agent on one task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabelledRun {
    /// Unique within its set.
    pub id: String,
    /// The set that contains it.
    pub set: String,
    /// The task.
    pub task: Task,
    /// The outcome, if known.
    pub outcome: Option<Outcome>,
    /// The steps.
    pub steps: Vec<OwnedStep>,
    /// Steps labelled as mistakes.
    pub labelled_steps: Vec<LabelledStep>,
    /// The agent.
    pub agent: String,
    /// The model.
    pub model: String,
}

/// A part of the data: rules are tuned on one part and judged by the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// All tasks.
    All,
    /// Two thirds of the tasks, for tuning.
    Dev,
    /// One third of the tasks, not used while tuning.
    HeldOut,
}

impl Split {
    /// All splits, in the order of columns.
    pub const ALL: [Self; 3] = [Self::All, Self::Dev, Self::HeldOut];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Dev => "dev",
            Self::HeldOut => "held out",
        }
    }

    /// Returns true if the run belongs to it. All runs of a task are in the same part.
    pub fn contains(self, run: &LabelledRun) -> bool {
        let held_out = (hash(&run.task.key).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 3;
        match self {
            Self::All => true,
            Self::Dev => held_out != 0,
            Self::HeldOut => held_out == 0,
        }
    }
}

/// Converts an imported run, and returns its outcome separately if that is an unknown word. `fallback_id` names a run
/// without an id. The set stays empty.
pub fn from_imported(
    run: Run<'_>,
    fallback_id: impl FnOnce() -> String,
) -> (LabelledRun, Option<String>) {
    let id = run.run_id.map_or_else(fallback_id, Cow::into_owned);
    let text = run.task.unwrap_or_default().into_owned();
    let (outcome, other_outcome) = match run.outcome.as_deref() {
        Some("success") => (Some(Outcome::Success), None),
        Some("failure") => (Some(Outcome::Failure), None),
        None => (None, None),
        Some(other) => (None, Some(other.to_owned())),
    };
    let labelled = LabelledRun {
        // A run without a task text is a task by itself.
        task: Task { key: if text.trim().is_empty() { id.clone() } else { text.clone() }, text },
        id,
        set: String::new(),
        outcome,
        labelled_steps: run.labels.as_deref().map(labels).unwrap_or_default(),
        steps: run.steps.into_iter().map(step).collect(),
        agent: run.agent.unwrap_or_default().into_owned(),
        model: run.model.unwrap_or_default().into_owned(),
    };
    (labelled, other_outcome)
}

fn step(step: RunStep<'_>) -> OwnedStep {
    let (input, input_is_text) = match step.input {
        RunInput::None => (String::new(), false),
        RunInput::Text(text) => (text.into_owned(), true),
        RunInput::Structured(json) => (json.into_owned(), false),
    };
    OwnedStep {
        thought: step.thought.into_owned(),
        tool: step.tool.into_owned(),
        input,
        input_is_text,
        observation: step.observation.into_owned(),
        is_error: step.is_error,
        user_input: step.user_input.into_owned(),
    }
}

/// Reads labelled steps in all supported forms.
fn labels(json: &str) -> Vec<LabelledStep> {
    let labels: Value = serde_json::from_str(json).unwrap_or_default();
    let lists = [&labels["labelled_steps"], &labels["errors"]];
    let listed = lists.into_iter().filter_map(Value::as_array).flatten();
    let mut found: Vec<LabelledStep> = listed.filter_map(label).collect();
    found.extend(
        index(&labels["mistake_step"])
            .map(|index| LabelledStep { index, category: "mistake".to_owned() }),
    );
    found
}

/// Reads a number, or an object with a `step_index`.
fn label(value: &Value) -> Option<LabelledStep> {
    let category = value["category"].as_str().unwrap_or("mistake").to_owned();
    let index = index(value).or_else(|| index(&value["step_index"]))?;
    Some(LabelledStep { index, category })
}

/// Reads a step index; some sets write it as a string.
fn index(value: &Value) -> Option<usize> {
    let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())?;
    usize::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_input_is_preserved() {
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
    fn one_third_of_the_tasks_is_held_out() {
        let held = (0..3000)
            .map(|n| LabelledRun {
                task: Task { key: format!("task {n}"), ..Task::default() },
                ..LabelledRun::default()
            })
            .filter(|run| {
                assert_ne!(Split::Dev.contains(run), Split::HeldOut.contains(run));
                Split::HeldOut.contains(run)
            })
            .count();
        assert!((900..1100).contains(&held), "{held}");
    }

    #[test]
    fn labels_have_several_forms() {
        for (json, expected) in [
            ("{}", ""),
            ("null", ""),
            ("[1]", ""),
            (r#"{"mistake_step": 4}"#, "4 mistake"),
            (r#"{"mistake_step": "4"}"#, "4 mistake"),
            (r#"{"mistake_step": -1}"#, ""),
            (
                r#"{"errors": [{"step_index": 2, "category": "Goal Deviation"}, {"category": "x"}]}"#,
                "2 Goal Deviation",
            ),
            (
                r#"{"labelled_steps": [3, {"step_index": 5, "category": "loop"}], "mistake_step": 0}"#,
                "3 mistake, 5 loop, 0 mistake",
            ),
        ] {
            let found: Vec<String> = labels(json)
                .iter()
                .map(|label| format!("{} {}", label.index, label.category))
                .collect();
            assert_eq!(found.join(", "), expected, "{json}");
        }
    }
}
