//! Lists and maps as every backend stores them: JSON, and nothing where they are empty.

use serde::Serialize;

/// Lists and maps, which are NULL where they are empty.
pub(crate) trait Emptiness: Serialize {
    fn is_nothing(&self) -> bool;
}

impl<T: Serialize> Emptiness for Vec<T> {
    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl<K: Serialize, V: Serialize> Emptiness for std::collections::BTreeMap<K, V> {
    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl Emptiness for serde_json::Map<String, serde_json::Value> {
    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

/// The JSON of a list or map that is not empty.
pub(crate) fn json_text<T: Emptiness>(value: &T) -> serde_json::Result<Option<String>> {
    if value.is_nothing() { Ok(None) } else { serde_json::to_string(value).map(Some) }
}
