//! Field names of patterns. The SDKs and the documentation use different names for one field.
//!
//! Rows keep the names they were written with; replies contain all names.

use rb_engine::guidance::{PatternBody, Tier};
use rb_store::PatternRow;
use serde_json::{Map, Value};

/// A text field: the name that the SDKs read, then its aliases.
struct Field {
    names: &'static [&'static str],
    is_required: bool,
}

const SITUATION: Field = Field {
    names: &["task_context_embedding_text", "situation", "task_context"],
    is_required: true,
};
const DEAD_END: Field =
    Field { names: &["observation", "dead_ends", "dead_end"], is_required: false };
const UNLOCK: Field = Field { names: &["recommended_action", "unlock"], is_required: true };
const TRAJECTORY: Field =
    Field { names: &["trajectory_description", "trajectory", "situation"], is_required: true };
const DIAGNOSIS: Field = Field { names: &["diagnosis"], is_required: false };
const INTERVENTION: Field = Field { names: &["intervention", "unlock"], is_required: true };
const ANTI_PATTERN: Field =
    Field { names: &["anti_pattern", "avoid", "dead_ends", "dead_end"], is_required: false };
const INSTRUCTION: Field = Field { names: &["instruction", "rule"], is_required: true };
const QUESTION: Field = Field { names: &["meta_reasoning_prompt", "question"], is_required: false };

/// Object in which the SDKs expect the trajectory of E2.
const TRIGGER_STATE: &str = "trigger_state";

fn fields_of(tier: Tier) -> &'static [Field] {
    match tier {
        Tier::E1 => &[SITUATION, DEAD_END, UNLOCK],
        Tier::E2 => &[TRAJECTORY, DIAGNOSIS, INTERVENTION, ANTI_PATTERN],
        Tier::E3 => &[INSTRUCTION, QUESTION],
    }
}

impl Field {
    /// Text under the first name that has one.
    fn text(&self, fields: &Map<String, Value>) -> String {
        let inner = fields.get(TRIGGER_STATE).and_then(Value::as_object);
        let named = |name: &&str| {
            let value = fields.get(*name).or_else(|| inner?.get(*name))?;
            Some(joined(value)).filter(|text| !text.trim().is_empty())
        };
        self.names.iter().find_map(named).unwrap_or_default()
    }
}

/// Returns a text, or a list of texts joined by `; `.
fn joined(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(joined).collect::<Vec<_>>().join("; "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Returns the names of the first required field that is missing.
pub fn missing_field(tier: Tier, fields: &Map<String, Value>) -> Option<&'static [&'static str]> {
    let mut required = fields_of(tier).iter().filter(|field| field.is_required);
    required.find(|field| field.text(fields).is_empty()).map(|field| field.names)
}

/// Converts fields to the engine's type.
pub fn body(tier: Tier, fields: &Map<String, Value>) -> PatternBody {
    match tier {
        Tier::E1 => PatternBody::E1 {
            situation: SITUATION.text(fields),
            observation: DEAD_END.text(fields),
            recommended_action: UNLOCK.text(fields),
        },
        Tier::E2 => PatternBody::E2 {
            trajectory: TRAJECTORY.text(fields),
            diagnosis: DIAGNOSIS.text(fields),
            intervention: INTERVENTION.text(fields),
            anti_pattern: ANTI_PATTERN.text(fields),
        },
        Tier::E3 => {
            let question = QUESTION.text(fields);
            PatternBody::E3 {
                instruction: INSTRUCTION.text(fields),
                meta_reasoning_prompt: (!question.is_empty()).then_some(question),
            }
        }
    }
}

/// Default text to compare with a run's context.
pub fn context(tier: Tier, fields: &Map<String, Value>) -> String {
    match tier {
        Tier::E1 => SITUATION.text(fields),
        Tier::E2 => TRAJECTORY.text(fields),
        Tier::E3 => String::new(),
    }
}

/// Fields under all their names, with the pattern id, by which injections are attributed.
pub fn with_aliases(tier: Tier, row: &PatternRow) -> Map<String, Value> {
    let mut fields = row.fields.clone();
    for field in fields_of(tier) {
        let value = field.text(&row.fields);
        for name in field.names {
            fields.entry((*name).to_owned()).or_insert_with(|| value.clone().into());
        }
    }
    if tier == Tier::E2 {
        let state = fields.entry(TRIGGER_STATE).or_insert_with(|| Map::new().into());
        if !state.is_object() {
            *state = Map::new().into();
        }
        if let Some(state) = state.as_object_mut() {
            state
                .entry("trajectory_description")
                .or_insert_with(|| TRAJECTORY.text(&row.fields).into());
        }
    }
    fields.insert("pattern_id".to_owned(), row.pattern_id.clone().into());
    fields.insert("tier".to_owned(), row.tier.clone().into());
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(tier: &str, fields: Value) -> PatternRow {
        let Value::Object(fields) = fields else { panic!("an object") };
        let (tier, pattern_id) = (tier.to_owned(), "p".to_owned());
        PatternRow { tier, pattern_id, fields, ..PatternRow::default() }
    }

    #[test]
    fn replies_contain_all_field_names() {
        let cases = [
            (
                Tier::E1,
                json!({"situation": "s", "dead_ends": ["a", "b"], "unlock": "u"}),
                vec![
                    ("task_context_embedding_text", "s"),
                    ("observation", "a; b"),
                    ("recommended_action", "u"),
                    ("situation", "s"),
                    ("pattern_id", "p"),
                ],
            ),
            (
                Tier::E2,
                json!({"trigger_state": {"trajectory_description": "t"}, "intervention": "i"}),
                vec![
                    ("trajectory_description", "t"),
                    ("situation", "t"),
                    ("intervention", "i"),
                    ("diagnosis", ""),
                    ("anti_pattern", ""),
                ],
            ),
            (
                Tier::E3,
                json!({"instruction": "r"}),
                vec![("instruction", "r"), ("meta_reasoning_prompt", ""), ("tier", "e3")],
            ),
        ];
        for (tier, fields, expected) in cases {
            let fields = with_aliases(tier, &row(tier.name(), fields));
            for (name, text) in expected {
                assert_eq!(fields.get(name).and_then(Value::as_str), Some(text), "{tier:?} {name}");
            }
        }
        let trigger =
            with_aliases(Tier::E2, &row("e2", json!({"trajectory": "t", "trigger_state": 1})));
        assert_eq!(trigger["trigger_state"]["trajectory_description"], "t");
    }

    #[test]
    fn missing_required_fields_are_detected() {
        let cases = [
            (Tier::E1, json!({"situation": "s"}), Some("recommended_action")),
            (Tier::E1, json!({"situation": "s", "unlock": "u"}), None),
            (
                Tier::E2,
                json!({"trajectory": " ", "intervention": "i"}),
                Some("trajectory_description"),
            ),
            (Tier::E3, json!({"instruction": 5}), Some("instruction")),
            (Tier::E3, json!({"rule": "r"}), None),
        ];
        for (tier, fields, name) in cases {
            let fields = row("", fields).fields;
            assert_eq!(missing_field(tier, &fields).map(|names| names[0]), name, "{fields:?}");
        }
    }
}
