//! Span attributes: a JSON map, or the list of typed values of OTLP.

use std::borrow::Cow;

use super::lazy_json::Json;
use crate::json::quoted;

/// Maximum nesting depth of OTLP values and of maps.
const DEPTH_MAX: usize = 12;
/// Keys that some recorders write as nested maps instead of dotted names.
const NESTED: [&str; 8] =
    ["llm", "input", "output", "tool", "openinference", "session", "agent", "gen_ai"];

/// Attribute value: text, or any other type as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attribute<'a> {
    Text(Cow<'a, str>),
    Json(Cow<'a, str>),
}

/// Attributes of one span or event.
#[derive(Debug, Clone, Default)]
pub(super) struct Attributes<'a>(pub(super) Vec<(Cow<'a, str>, Attribute<'a>)>);

impl<'a> Attributes<'a> {
    /// Reads both forms.
    pub(super) fn read(json: Option<Json<'a>>) -> Self {
        let mut all = Self::default();
        let Some(json) = json else { return all };
        for item in json.items() {
            let [key, value] = item.fields(["key", "value"]);
            if let (Some(key), Some(value)) = (key.and_then(Json::text), value) {
                all.0.extend(otlp_value(value).map(|value| (key, value)));
            }
        }
        for (key, value) in json.entries() {
            all.insert(Cow::Borrowed(key), value, DEPTH_MAX);
        }
        all
    }

    fn insert(&mut self, key: Cow<'a, str>, value: Json<'a>, depth: usize) {
        let is_nest = value.is_object() || value.is_list();
        let head = key.split('.').next().unwrap_or_default();
        let is_message = key.starts_with("gen_ai.") && value.is_list();
        if is_nest && depth > 0 && NESTED.contains(&head) && !is_message {
            for (inner, value) in value.entries() {
                self.insert(Cow::Owned(format!("{key}.{inner}")), value, depth - 1);
            }
            for (at, value) in value.items().enumerate() {
                self.insert(Cow::Owned(format!("{key}.{at}")), value, depth - 1);
            }
            return;
        }
        let value = match value.text() {
            Some(text) => Some(Attribute::Text(text)),
            None => value.text_or_json().map(Attribute::Json),
        };
        self.0.extend(value.map(|value| (key, value)));
    }

    pub(super) fn get(&self, key: &str) -> Option<&Attribute<'a>> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Returns the value of the first of these keys that is present, or `None` if that value is empty.
    pub(super) fn first(&self, keys: &[&str]) -> Option<&Attribute<'a>> {
        keys.iter().find_map(|key| self.get(key)).filter(|value| !value.text().is_empty())
    }

    /// Returns the value of [`Self::first`] as text.
    pub(super) fn text(&self, keys: &[&str]) -> Option<Cow<'a, str>> {
        self.first(keys).map(|value| match value {
            Attribute::Text(text) | Attribute::Json(text) => text.clone(),
        })
    }

    /// Returns the first value of these keys that is a count.
    pub(super) fn count(&self, keys: &[&str]) -> Option<u64> {
        keys.iter().find_map(|key| Json::new(self.get(key)?.text(), true).count())
    }

    /// Returns the first value of these keys that is a number.
    pub(super) fn number(&self, keys: &[&str]) -> Option<f64> {
        keys.iter().find_map(|key| Json::new(self.get(key)?.text(), true).number())
    }

    /// Returns all attributes as one object; texts that contain JSON are embedded as JSON.
    pub(super) fn to_json(&self) -> String {
        let entries = self.0.iter().map(|(key, value)| {
            let text = value.text();
            let is_json = matches!(value, Attribute::Json(_)) || text.starts_with(['{', '[']);
            let value = if is_json { text.to_owned() } else { quoted(text) };
            format!("{}: {value}", quoted(key))
        });
        format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
    }
}

impl Attribute<'_> {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Json(text) => text,
        }
    }
}

/// Reads a typed OTLP value.
pub(super) fn otlp_value(value: Json<'_>) -> Option<Attribute<'_>> {
    let (kind, inner) = value.entries().next()?;
    match kind {
        "stringValue" | "string_value" => inner.text().map(Attribute::Text),
        // OTLP encodes 64-bit numbers as strings.
        "intValue" | "int_value" => inner.name().map(Attribute::Json),
        "doubleValue" | "double_value" | "boolValue" | "bool_value" => {
            inner.text_or_json().map(Attribute::Json)
        }
        _ => Some(Attribute::Json(Cow::Owned(plain_json(value, DEPTH_MAX)))),
    }
}

/// Converts a typed OTLP value to plain JSON.
fn plain_json(value: Json<'_>, depth: usize) -> String {
    let Some((kind, inner)) = value.entries().next().filter(|_| depth > 0) else {
        return "null".to_owned();
    };
    let values = || inner.get("values").into_iter().flat_map(Json::items);
    match kind {
        "arrayValue" | "array_value" => {
            let all: Vec<String> = values().map(|value| plain_json(value, depth - 1)).collect();
            format!("[{}]", all.join(", "))
        }
        "kvlistValue" | "kvlist_value" => {
            let entry = |entry: Json<'_>| {
                let [key, value] = entry.fields(["key", "value"]);
                Some(format!("{}: {}", key?.raw(), plain_json(value?, depth - 1)))
            };
            format!("{{{}}}", values().filter_map(entry).collect::<Vec<_>>().join(", "))
        }
        "intValue" | "int_value" => inner.name().map_or("null".to_owned(), Cow::into_owned),
        _ => inner.text_or_json().map_or("null".to_owned(), |_| inner.raw().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let map = r#"{"a": "x", "b": 7, "llm": {"model_name": "m", "input_messages": [{"message": {"role": "user"}}]}}"#;
        let list = r#"[{"key": "a", "value": {"stringValue": "x"}}, {"key": "b", "value": {"intValue": "7"}},
            {"key": "llm.model_name", "value": {"stringValue": "m"}},
            {"key": "llm.input_messages.0.message.role", "value": {"stringValue": "user"}}]"#;
        let told: Vec<String> =
            [map, list].map(|text| Attributes::read(Json::first(text)).to_json()).to_vec();
        assert_eq!(
            told[0],
            r#"{"a": "x", "b": 7, "llm.model_name": "m", "llm.input_messages.0.message.role": "user"}"#
        );
        assert_eq!(told[0], told[1]);
    }

    #[test]
    fn nested_values_of_otlp_become_json() {
        let value = r#"{"arrayValue": {"values": [{"kvlistValue": {"values": [{"key": "role", "value": {"stringValue": "us\"er"}}, {"key": "n", "value": {"intValue": "1"}}]}}, {"boolValue": true}]}}"#;
        let value = Json::first(value).and_then(otlp_value);
        assert_eq!(value, Some(Attribute::Json(r#"[{"role": "us\"er", "n": 1}, true]"#.into())));
        let deep = format!("{}{}", r#"{"arrayValue": {"values": ["#.repeat(100), "]}}".repeat(100));
        assert!(Json::first(&deep).and_then(otlp_value).is_some());
    }
}
