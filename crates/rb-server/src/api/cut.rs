//! What is too long is cut and said so: a lost step is worse than a shortened one.

use serde_json::value::RawValue;

use crate::error::{ApiResult, unprocessable};

/// Characters of a thought, an argument or an observation.
pub(crate) const TEXT_CHARS_MAX: usize = 64_000;
pub(crate) const TASK_CHARS_MAX: usize = 4_000;
pub(crate) const NAME_CHARS_MAX: usize = 256;
pub(crate) const MODEL_CHARS_MAX: usize = 128;
pub(crate) const SHORT_CHARS_MAX: usize = 64;
/// Entries of a list in a step.
pub(crate) const LIST_MAX: usize = 64;
/// Steps have indices up to this.
pub(crate) const STEP_INDEX_MAX: u32 = 10_000;

/// The names of what was cut.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Cuts(Vec<String>);

impl Cuts {
    /// The text, at most so many characters of it.
    pub(crate) fn text(&mut self, name: &str, mut text: String, chars_max: usize) -> String {
        // Most texts are shorter than the limit in bytes already.
        if text.len() > chars_max
            && let Some((end, _)) = text.char_indices().nth(chars_max)
        {
            text.truncate(end);
            self.0.push(name.to_owned());
        }
        text
    }

    /// The same for a text that may be absent.
    pub(crate) fn optional(
        &mut self,
        name: &str,
        text: Option<String>,
        chars_max: usize,
    ) -> Option<String> {
        text.map(|text| self.text(name, text, chars_max))
    }

    /// The same; absent is empty.
    pub(crate) fn or_empty(
        &mut self,
        name: &str,
        text: Option<String>,
        chars_max: usize,
    ) -> String {
        self.text(name, text.unwrap_or_default(), chars_max)
    }

    /// A list of texts: so many of them, each so long.
    pub(crate) fn list(
        &mut self,
        name: &str,
        list: Option<Vec<String>>,
        chars_max: usize,
    ) -> Vec<String> {
        let mut list = list.unwrap_or_default();
        if list.len() > LIST_MAX {
            list.truncate(LIST_MAX);
            self.0.push(name.to_owned());
        }
        list.into_iter().map(|text| self.text(name, text, chars_max)).collect()
    }

    /// An argument, and whether it arrived as something else than text.
    pub(crate) fn input(&mut self, name: &str, input: Option<&RawValue>) -> (Option<String>, bool) {
        let (text, is_structured) = plain(input);
        (self.optional(name, text, TEXT_CHARS_MAX), is_structured)
    }

    /// What was cut, each name once.
    pub(crate) fn names(mut self) -> Vec<String> {
        self.0.dedup();
        self.0
    }
}

/// An argument as text, and whether it arrived as something else.
pub(crate) fn plain(input: Option<&RawValue>) -> (Option<String>, bool) {
    let Some(raw) = input.map(RawValue::get).filter(|raw| *raw != "null") else {
        return (None, false);
    };
    match serde_json::from_str::<String>(raw) {
        Ok(text) => (Some(text), false),
        Err(_) => (Some(raw.to_owned()), true),
    }
}

/// Ids are names of things and cannot be cut.
pub(crate) fn check_id(place: &[&str], id: &str) -> ApiResult<()> {
    let is_long = id.chars().nth(NAME_CHARS_MAX).is_some();
    if id.is_empty() || is_long || id.chars().any(char::is_control) {
        let wanted = "an id has 1 to 256 characters and no control characters";
        return Err(unprocessable(place, wanted));
    }
    Ok(())
}

/// Steps are numbered from 0.
pub(crate) fn check_index(index: u32) -> ApiResult<()> {
    if index > STEP_INDEX_MAX {
        let wanted = format!("{index} is too large: steps are numbered from 0 to {STEP_INDEX_MAX}");
        return Err(unprocessable(&["body", "step_index"], wanted));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_and_named() {
        let mut cuts = Cuts::default();
        assert_eq!(cuts.text("a", "héé".to_owned(), 2), "hé");
        assert_eq!(cuts.text("b", "héé".to_owned(), 3), "héé");
        assert_eq!(cuts.optional("c", None, 1), None);
        let many = vec!["xy".to_owned(); LIST_MAX + 1];
        assert_eq!(cuts.list("d", Some(many), 1), vec!["x"; LIST_MAX]);
        assert_eq!(cuts.names(), ["a", "d"]);
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
            let (text, is_structured) = plain(Some(&raw));
            assert_eq!((text.as_deref(), is_structured), expected, "{json}");
        }
        assert_eq!(plain(None), (None, false));
    }

    #[test]
    fn ids_that_name_nothing_are_refused() {
        for (id, is_good) in
            [("a", true), ("pydantic/pydantic", true), ("", false), ("a\nb", false)]
        {
            assert_eq!(check_id(&["path", "run_id"], id).is_ok(), is_good, "{id:?}");
        }
        assert!(check_id(&["path", "run_id"], &"é".repeat(256)).is_ok());
        assert!(check_id(&["path", "run_id"], &"é".repeat(257)).is_err());
        assert!(check_index(10_000).is_ok() && check_index(10_001).is_err());
    }
}
