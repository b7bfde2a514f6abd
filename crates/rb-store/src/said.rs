//! What a run says about itself, merged with what it said before; and what of it is looked for.

use serde_json::{Map, Value};

use crate::OutcomeClass;

/// The keys of a run's metadata that make it part of an experiment, and stand once they are set.
pub(crate) const EXPERIMENT: &str = "experiment_id";
pub(crate) const ARM: &str = "arm";

pub(crate) fn merged(
    mut before: Map<String, Value>,
    new: &Map<String, Value>,
) -> Map<String, Value> {
    let standing = [EXPERIMENT, ARM].map(|key| (key, !word(&before, key).is_empty()));
    for (key, value) in new {
        if !standing.contains(&(key.as_str(), true)) {
            before.insert(key.clone(), value.clone());
        }
    }
    before
}

/// A value as a text; nothing is an empty one.
pub(crate) fn word(metadata: &Map<String, Value>, key: &str) -> String {
    match metadata.get(key) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => {
            other.to_string()
        }
    }
}

/// What the search over runs looks in: id, agent's name and task, in small letters.
pub(crate) fn search_text(run_id: &str, agent_name: &str, task: &str) -> String {
    format!("{run_id}\n{agent_name}\n{task}").to_lowercase()
}

/// An outcome's class as it is stored.
pub(crate) fn class_number(class: OutcomeClass) -> i64 {
    match class {
        OutcomeClass::Success => 0,
        OutcomeClass::Failure => 1,
        OutcomeClass::Other => 2,
        OutcomeClass::Unfinished => 3,
    }
}
