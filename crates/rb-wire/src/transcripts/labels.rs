//! Source-specific fields that a run has no fields for, as one JSON object.

use std::borrow::Cow;

use super::lazy_json::Json;

/// Builds an object of the present values; `None` if there are none.
pub(super) fn labels(known: &[(&str, Option<Json<'_>>)]) -> Option<Cow<'static, str>> {
    let there = known.iter().filter_map(|(key, value)| {
        let raw = value.filter(|value| value.text_or_json().is_some())?.raw();
        Some(format!("\"{key}\": {raw}"))
    });
    let there: Vec<String> = there.collect();
    (!there.is_empty()).then(|| Cow::Owned(format!("{{{}}}", there.join(", "))))
}
