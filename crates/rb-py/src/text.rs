//! Conversion of Python strings to UTF-8, including unpaired surrogates.
//!
//! A Python string can contain an unpaired surrogate, which UTF-8 cannot encode. Each one is replaced with a distinct
//! private-use character, so that lengths and equality are the same as in Python.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// First private-use character that replaces a surrogate; 2,048 are used.
const REPLACEMENTS_START: u32 = 0x0010_0000;
const FIRST_SURROGATE: u32 = 0xD800;

/// Returns the string as UTF-8, borrowed unless it contains unpaired surrogates.
pub(crate) fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<Cow<'a, str>> {
    if let Ok(text) = text.to_str() {
        return Ok(Cow::Borrowed(text));
    }
    let bytes = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
    Ok(Cow::Owned(replace_surrogates(bytes.cast::<PyBytes>()?.as_bytes())))
}

/// Returns the string as UTF-8, or an empty one for a value that is not a string.
pub(crate) fn utf8_or_empty<'a>(value: Option<&'a Bound<'_, PyAny>>) -> PyResult<Cow<'a, str>> {
    match value.and_then(|value| value.cast::<PyString>().ok()) {
        Some(text) => utf8(text),
        None => Ok(Cow::Borrowed("")),
    }
}

/// Decodes UTF-8 that was encoded with `surrogatepass`: a surrogate is three bytes that begin with `0xED` and a byte of
/// at least `0xA0`, which never occur in valid UTF-8.
fn replace_surrogates(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 8);
    let mut rest = bytes;
    while let Some(at) = rest.windows(2).position(|pair| pair[0] == 0xED && pair[1] >= 0xA0) {
        text.push_str(&String::from_utf8_lossy(&rest[..at]));
        let low = rest.get(at + 2).copied().unwrap_or(0x80);
        let surrogate = 0xD000 | (u32::from(rest[at + 1] & 0x3F) << 6) | u32::from(low & 0x3F);
        let replacement =
            char::from_u32(REPLACEMENTS_START + surrogate.saturating_sub(FIRST_SURROGATE));
        text.push(replacement.unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = rest.get(at + 3..).unwrap_or_default();
    }
    text.push_str(&String::from_utf8_lossy(rest));
    text
}
