//! Merging and searching of run metadata.

use serde_json::{Map, Value};

use crate::{OutcomeClass, RunStart};

/// Description of a run.
#[derive(Default)]
pub(crate) struct RunDescription {
    pub(crate) project: String,
    pub(crate) agent_name: String,
    pub(crate) task: String,
    pub(crate) model: String,
    pub(crate) framework: String,
    pub(crate) codebase: String,
    pub(crate) task_profile: String,
    pub(crate) parent: String,
    pub(crate) key_name: String,
    pub(crate) metadata: Map<String, Value>,
}

impl RunDescription {
    /// Replaces the fields that `start` has, except for the name of the first key.
    pub(crate) fn merge(&mut self, start: &RunStart) {
        for (before, new) in [
            (&mut self.project, &start.project),
            (&mut self.agent_name, &start.agent_name),
            (&mut self.task, &start.task),
            (&mut self.model, &start.model),
            (&mut self.framework, &start.framework),
            (&mut self.codebase, &start.codebase),
            (&mut self.task_profile, &start.task_profile),
            (&mut self.parent, &start.parent),
        ] {
            if !new.is_empty() {
                before.clone_from(new);
            }
        }
        if self.key_name.is_empty() {
            self.key_name.clone_from(&start.key_name);
        }
        self.metadata = merge_metadata(std::mem::take(&mut self.metadata), &start.metadata);
    }

    pub(crate) fn experiment_id(&self) -> String {
        text_value(&self.metadata, EXPERIMENT_KEY)
    }

    pub(crate) fn arm(&self) -> String {
        text_value(&self.metadata, ARM_KEY)
    }

    /// Returns the text that the search over runs matches: id, agent name and task in lower case.
    pub(crate) fn search_text(&self, run_id: &str) -> String {
        format!("{run_id}\n{}\n{}", self.agent_name, self.task).to_lowercase()
    }
}

/// Metadata keys that make a run part of an experiment; they keep their first value.
const EXPERIMENT_KEY: &str = "experiment_id";
const ARM_KEY: &str = "arm";

fn merge_metadata(mut before: Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let standing = [EXPERIMENT_KEY, ARM_KEY].map(|key| (key, !text_value(&before, key).is_empty()));
    for (key, value) in new {
        if !standing.contains(&(key.as_str(), true)) {
            before.insert(key.clone(), value.clone());
        }
    }
    before
}

/// Returns a value as text; empty if it is missing or null.
fn text_value(metadata: &Map<String, Value>, key: &str) -> String {
    match metadata.get(key) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => {
            other.to_string()
        }
    }
}

/// Returns the stored number of an outcome class.
pub(crate) fn class_number(class: OutcomeClass) -> i64 {
    match class {
        OutcomeClass::Success => 0,
        OutcomeClass::Failure => 1,
        OutcomeClass::Other => 2,
        OutcomeClass::Unfinished => 3,
    }
}
