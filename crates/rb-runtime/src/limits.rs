//! Length limits of stored texts. Longer texts are truncated and reported, because a shortened step is still useful.

use serde_json::value::RawValue;

/// Maximum characters of a thought, an argument or an observation.
pub const MAX_TEXT_CHARS: usize = 64_000;
/// Maximum characters of a task.
pub const MAX_TASK_CHARS: usize = 4_000;
/// Maximum characters of an id or a name.
pub const MAX_NAME_CHARS: usize = 256;
/// Maximum characters of a model name.
pub const MAX_MODEL_CHARS: usize = 128;
/// Maximum characters of a short label such as a framework or an outcome.
pub const MAX_SHORT_CHARS: usize = 64;
/// Maximum entries of a list in a step.
pub const MAX_LIST_ITEMS: usize = 64;
/// Maximum index of a step.
pub const MAX_STEP_INDEX: u32 = 10_000;

/// Truncates texts and collects the names of the truncated fields.
#[derive(Debug, Default, PartialEq)]
pub struct Truncations(Vec<String>);

impl Truncations {
    /// Truncates a text to `max_chars`.
    pub fn text(&mut self, name: &str, mut text: String, max_chars: usize) -> String {
        // The byte length bounds the character count, so most texts need no scan.
        if text.len() > max_chars
            && let Some((end, _)) = text.char_indices().nth(max_chars)
        {
            text.truncate(end);
            self.0.push(name.to_owned());
        }
        text
    }

    /// Truncates an optional text.
    pub fn optional(
        &mut self,
        name: &str,
        text: Option<String>,
        max_chars: usize,
    ) -> Option<String> {
        text.map(|text| self.text(name, text, max_chars))
    }

    /// Truncates an optional text; absent is empty.
    pub fn or_empty(&mut self, name: &str, text: Option<String>, max_chars: usize) -> String {
        self.text(name, text.unwrap_or_default(), max_chars)
    }

    /// Truncates a list to `MAX_LIST_ITEMS` and each entry to `max_chars`.
    pub fn list(&mut self, name: &str, list: Option<Vec<String>>, max_chars: usize) -> Vec<String> {
        let mut list = list.unwrap_or_default();
        if list.len() > MAX_LIST_ITEMS {
            list.truncate(MAX_LIST_ITEMS);
            self.0.push(name.to_owned());
        }
        list.into_iter().map(|text| self.text(name, text, max_chars)).collect()
    }

    /// Truncates a tool argument; the flag is set for JSON other than a string.
    pub fn input(&mut self, name: &str, input: Option<&RawValue>) -> (Option<String>, bool) {
        let (text, is_structured) = input_text(input);
        (self.optional(name, text, MAX_TEXT_CHARS), is_structured)
    }

    /// Names of the truncated fields without consecutive duplicates.
    pub fn names(mut self) -> Vec<String> {
        self.0.dedup();
        self.0
    }
}

/// Returns a tool argument as text; the flag is set for JSON other than a string.
pub fn input_text(input: Option<&RawValue>) -> (Option<String>, bool) {
    let Some(raw) = input.map(RawValue::get).filter(|raw| *raw != "null") else {
        return (None, false);
    };
    match serde_json::from_str::<String>(raw) {
        Ok(text) => (Some(text), false),
        Err(_) => (Some(raw.to_owned()), true),
    }
}

/// Returns `true` for an id of 1 to `MAX_NAME_CHARS` characters without control characters. Ids are never truncated.
pub fn is_valid_id(id: &str) -> bool {
    let is_long = id.chars().nth(MAX_NAME_CHARS).is_some();
    !id.is_empty() && !is_long && !id.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_truncated_and_named() {
        let mut truncations = Truncations::default();
        assert_eq!(truncations.text("a", "héé".to_owned(), 2), "hé");
        assert_eq!(truncations.text("b", "héé".to_owned(), 3), "héé");
        assert_eq!(truncations.optional("c", None, 1), None);
        let many = vec!["xy".to_owned(); MAX_LIST_ITEMS + 1];
        assert_eq!(truncations.list("d", Some(many), 1), vec!["x"; MAX_LIST_ITEMS]);
        assert_eq!(truncations.names(), ["a", "d"]);
    }

    #[test]
    fn arguments_keep_their_form() {
        for (json, expected) in [
            ("null", (None, false)),
            ("\"ls \\n\"", (Some("ls \n"), false)),
            ("{\"b\": 1,\"a\":2}", (Some("{\"b\": 1,\"a\":2}"), true)),
            ("5", (Some("5"), true)),
        ] {
            let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
            let (text, is_structured) = input_text(Some(&raw));
            assert_eq!((text.as_deref(), is_structured), expected, "{json}");
        }
        assert_eq!(input_text(None), (None, false));
    }

    #[test]
    fn empty_long_and_control_character_ids_are_invalid() {
        for (id, is_valid) in
            [("a", true), ("pydantic/pydantic", true), ("", false), ("a\nb", false)]
        {
            assert_eq!(is_valid_id(id), is_valid, "{id:?}");
        }
        assert!(is_valid_id(&"é".repeat(256)));
        assert!(!is_valid_id(&"é".repeat(257)));
    }
}
