//! JSON columns: lists and maps, stored as NULL if empty.

use serde::Serialize;

/// List or map in a JSON column.
pub(crate) trait JsonCollection: Serialize {
    fn is_empty_json(&self) -> bool;
}

impl<T: Serialize> JsonCollection for Vec<T> {
    fn is_empty_json(&self) -> bool {
        self.is_empty()
    }
}

impl<K: Serialize, V: Serialize> JsonCollection for std::collections::BTreeMap<K, V> {
    fn is_empty_json(&self) -> bool {
        self.is_empty()
    }
}

impl JsonCollection for serde_json::Map<String, serde_json::Value> {
    fn is_empty_json(&self) -> bool {
        self.is_empty()
    }
}

/// Serialises a list or map; returns `None` if it is empty.
pub(crate) fn json_text<T: JsonCollection>(value: &T) -> serde_json::Result<Option<String>> {
    if value.is_empty_json() { Ok(None) } else { serde_json::to_string(value).map(Some) }
}
