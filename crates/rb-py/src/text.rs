//! Python's texts as UTF-8, whatever they hold.
//!
//! A Python text may hold half of a surrogate pair, which UTF-8 cannot. Such a half becomes a private character of its
//! own, one for one: lengths and equality stay what they are in Python, and it is no letter, digit or space in either.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// Where the 2,048 halves are put: the last private plane.
const HALVES_AT: u32 = 0x0010_0000;
const FIRST_HALF: u32 = 0xD800;

/// The text; borrowed unless it holds halves of surrogate pairs.
pub(crate) fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<Cow<'a, str>> {
    if let Ok(text) = text.to_str() {
        return Ok(Cow::Borrowed(text));
    }
    let bytes = text.call_method1("encode", ("utf-8", "surrogatepass"))?;
    Ok(Cow::Owned(without_halves(bytes.cast::<PyBytes>()?.as_bytes())))
}

/// The same for a value that may be anything: what is no text is empty.
pub(crate) fn utf8_or_empty<'a>(value: Option<&'a Bound<'_, PyAny>>) -> PyResult<Cow<'a, str>> {
    match value.and_then(|value| value.cast::<PyString>().ok()) {
        Some(text) => utf8(text),
        None => Ok(Cow::Borrowed("")),
    }
}

/// UTF-8 in which halves were let through as if they were characters: three bytes, the first of them `0xED`, the
/// second at least `0xA0`. No proper UTF-8 has that.
fn without_halves(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 8);
    let mut rest = bytes;
    while let Some(at) = rest.windows(2).position(|pair| pair[0] == 0xED && pair[1] >= 0xA0) {
        text.push_str(&String::from_utf8_lossy(&rest[..at]));
        let low = rest.get(at + 2).copied().unwrap_or(0x80);
        let half = 0xD000 | (u32::from(rest[at + 1] & 0x3F) << 6) | u32::from(low & 0x3F);
        let stand_in = char::from_u32(HALVES_AT + half.saturating_sub(FIRST_HALF));
        text.push(stand_in.unwrap_or(char::REPLACEMENT_CHARACTER));
        rest = rest.get(at + 3..).unwrap_or_default();
    }
    text.push_str(&String::from_utf8_lossy(rest));
    text
}
