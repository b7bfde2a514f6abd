//! The fields of patterns under all their names: the SDKs read some, the documentation shows others.
//!
//! What is stored stays as it was written. What goes out has every name, so that both kinds of readers find theirs.

use rb_engine::guidance::{PatternBody, Tier};
use rb_store::PatternRow;
use serde_json::{Map, Value};

/// One text of a pattern: the name the SDKs read, then other names for it.
struct Text {
    names: &'static [&'static str],
    is_needed: bool,
}

const SITUATION: Text =
    Text { names: &["task_context_embedding_text", "situation", "task_context"], is_needed: true };
const DEAD_END: Text = Text { names: &["observation", "dead_ends", "dead_end"], is_needed: false };
const UNLOCK: Text = Text { names: &["recommended_action", "unlock"], is_needed: true };
const TRAJECTORY: Text =
    Text { names: &["trajectory_description", "trajectory", "situation"], is_needed: true };
const DIAGNOSIS: Text = Text { names: &["diagnosis"], is_needed: false };
const INTERVENTION: Text = Text { names: &["intervention", "unlock"], is_needed: true };
const ANTI_PATTERN: Text =
    Text { names: &["anti_pattern", "avoid", "dead_ends", "dead_end"], is_needed: false };
const INSTRUCTION: Text = Text { names: &["instruction", "rule"], is_needed: true };
const QUESTION: Text = Text { names: &["meta_reasoning_prompt", "question"], is_needed: false };

/// Where E2 keeps its trajectory for the SDKs.
const TRIGGER_STATE: &str = "trigger_state";

fn texts(tier: Tier) -> &'static [Text] {
    match tier {
        Tier::E1 => &[SITUATION, DEAD_END, UNLOCK],
        Tier::E2 => &[TRAJECTORY, DIAGNOSIS, INTERVENTION, ANTI_PATTERN],
        Tier::E3 => &[INSTRUCTION, QUESTION],
    }
}

impl Text {
    /// The text under the first of its names that holds one.
    fn of(&self, fields: &Map<String, Value>) -> String {
        let inner = fields.get(TRIGGER_STATE).and_then(Value::as_object);
        let named = |name: &&str| {
            let value = fields.get(*name).or_else(|| inner?.get(*name))?;
            Some(flat(value)).filter(|text| !text.trim().is_empty())
        };
        self.names.iter().find_map(named).unwrap_or_default()
    }
}

/// A text, or a list of texts as one.
fn flat(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(flat).collect::<Vec<_>>().join("; "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// What is missing for a pattern to say anything: the names under which it may be given.
pub(crate) fn missing(tier: Tier, fields: &Map<String, Value>) -> Option<&'static [&'static str]> {
    let needed = texts(tier).iter().filter(|text| text.is_needed);
    needed.filter(|text| text.of(fields).is_empty()).map(|text| text.names).next()
}

/// The pattern as the engine renders it.
pub(crate) fn body(tier: Tier, fields: &Map<String, Value>) -> PatternBody {
    match tier {
        Tier::E1 => PatternBody::E1 {
            situation: SITUATION.of(fields),
            observation: DEAD_END.of(fields),
            recommended_action: UNLOCK.of(fields),
        },
        Tier::E2 => PatternBody::E2 {
            trajectory: TRAJECTORY.of(fields),
            diagnosis: DIAGNOSIS.of(fields),
            intervention: INTERVENTION.of(fields),
            anti_pattern: ANTI_PATTERN.of(fields),
        },
        Tier::E3 => {
            let question = QUESTION.of(fields);
            PatternBody::E3 {
                instruction: INSTRUCTION.of(fields),
                meta_reasoning_prompt: (!question.is_empty()).then_some(question),
            }
        }
    }
}

/// What is compared with a run's situation when the pattern does not say: the situation it describes.
pub(crate) fn context(tier: Tier, fields: &Map<String, Value>) -> String {
    match tier {
        Tier::E1 => SITUATION.of(fields),
        Tier::E2 => TRAJECTORY.of(fields),
        Tier::E3 => String::new(),
    }
}

/// The fields under every name, with the pattern's id among them: injections are attributed by it.
pub(crate) fn wire(tier: Tier, row: &PatternRow) -> Map<String, Value> {
    let mut fields = row.fields.clone();
    for text in texts(tier) {
        let value = text.of(&row.fields);
        for name in text.names {
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
                .or_insert_with(|| TRAJECTORY.of(&row.fields).into());
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
    fn both_kinds_of_readers_find_their_names() {
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
            let wire = wire(tier, &row(tier.name(), fields));
            for (name, text) in expected {
                assert_eq!(wire.get(name).and_then(Value::as_str), Some(text), "{tier:?} {name}");
            }
        }
        let trigger = wire(Tier::E2, &row("e2", json!({"trajectory": "t", "trigger_state": 1})));
        assert_eq!(trigger["trigger_state"]["trajectory_description"], "t");
    }

    #[test]
    fn a_pattern_without_words_is_found_out() {
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
            assert_eq!(missing(tier, &fields).map(|names| names[0]), name, "{fields:?}");
        }
    }
}
