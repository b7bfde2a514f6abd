//! Merging and searching of run metadata.

use serde_json::{Map, Value};

use crate::OutcomeClass;

/// Metadata keys that make a run part of an experiment; they keep their first value.
pub(crate) const EXPERIMENT_KEY: &str = "experiment_id";
pub(crate) const ARM_KEY: &str = "arm";

pub(crate) fn merge_metadata(
    mut before: Map<String, Value>,
    new: &Map<String, Value>,
) -> Map<String, Value> {
    let standing = [EXPERIMENT_KEY, ARM_KEY].map(|key| (key, !text_value(&before, key).is_empty()));
    for (key, value) in new {
        if !standing.contains(&(key.as_str(), true)) {
            before.insert(key.clone(), value.clone());
        }
    }
    before
}

/// Returns a value as text; empty if it is missing or null.
pub(crate) fn text_value(metadata: &Map<String, Value>, key: &str) -> String {
    match metadata.get(key) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => {
            other.to_string()
        }
    }
}

/// Returns the text that the search over runs matches: id, agent name and task in lower case.
pub(crate) fn search_text(run_id: &str, agent_name: &str, task: &str) -> String {
    format!("{run_id}\n{agent_name}\n{task}").to_lowercase()
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
