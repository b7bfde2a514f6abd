//! Helpers for raw JSON values, without a tree and without recursion.
//!
//! A value remains raw text until it is needed. The last of several equal keys wins, a value of the wrong type
//! affects only itself, and nesting of any depth is skipped.

use std::borrow::Cow;

use memchr::memchr;
use serde_json::value::RawValue;

/// Returns the type of a JSON value in words, based on its first character.
pub(super) fn kind(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Returns the text of a string; `None` for other types. Sets `repaired` if the text needed a repair.
pub(super) fn text<'a>(value: &'a RawValue, repaired: &mut bool) -> Option<Cow<'a, str>> {
    unquoted(value.get(), repaired)
}

/// Returns the text of a string, given with its quotes.
pub(super) fn unquoted<'a>(json: &'a str, repaired: &mut bool) -> Option<Cow<'a, str>> {
    let inside = json.strip_prefix('"')?.strip_suffix('"')?;
    if memchr(b'\\', inside.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inside));
    }
    if let Ok(text) = serde_json::from_str(json) {
        return Some(Cow::Owned(text));
    }
    *repaired = true;
    serde_json::from_str(&without_lone_surrogates(json)).ok().map(Cow::Owned)
}

/// Returns the byte offset of the first lone surrogate, if any.
pub(super) fn lone_surrogate(json: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = memchr(b'\\', &json.as_bytes()[at..]) {
        at += found;
        at += match surrogate(&json[at..]) {
            None => json[at..].chars().nth(1).map_or(1, |c| 1 + c.len_utf8()),
            Some(Half::High) if surrogate(&json[at + 6..]) == Some(Half::Low) => 12,
            Some(Half::High | Half::Low) => return Some(at),
        };
    }
    None
}

/// Returns the JSON without line breaks inside strings, where they are invalid; `None` if there are none.
///
/// Terminals wrap long lines, so text copied from them contains such breaks.
pub(super) fn without_wrapped_lines(json: &str) -> Option<String> {
    let mut repaired = String::new();
    let (mut kept, mut at) = (0, 0);
    let mut in_string = false;
    while let Some(&byte) = json.as_bytes().get(at) {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => at += 1,
            b'\n' | b'\r' if in_string => {
                repaired.push_str(&json[kept..at]);
                kept = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if kept == 0 {
        return None;
    }
    repaired.push_str(&json[kept..]);
    Some(repaired)
}

/// Returns the text of a string or a number; `None` for other types.
pub(super) fn text_or_number<'a>(value: &'a RawValue, repaired: &mut bool) -> Option<Cow<'a, str>> {
    match value.get().as_bytes().first() {
        Some(b'-' | b'0'..=b'9') => Some(Cow::Borrowed(value.get())),
        _ => text(value, repaired),
    }
}

/// Returns the first element of a list as text; `None` for other types and for empty lists.
pub(super) fn first_of_list<'a>(value: &'a RawValue, repaired: &mut bool) -> Option<Cow<'a, str>> {
    let rest = value.get().strip_prefix('[')?;
    // Reads one value and ignores the rest.
    let first = serde_json::Deserializer::from_str(rest).into_iter::<&'a RawValue>().next()?;
    text(first.ok()?, repaired)
}

/// Returns `true` if the value is truthy in Python.
pub(super) fn is_truthy(value: &RawValue) -> bool {
    let json = value.get();
    let holds_something = |end: char| !json[1..].trim_start().starts_with(end);
    match json.as_bytes().first() {
        Some(b't') => true,
        Some(b'f' | b'n') | None => false,
        Some(b'"') => json.len() > 2,
        Some(b'[') => holds_something(']'),
        Some(b'{') => holds_something('}'),
        Some(_) => json.parse::<f64>().is_ok_and(|number| number != 0.0),
    }
}

/// Replaces each lone surrogate by the escape of U+FFFD.
fn without_lone_surrogates(json: &str) -> String {
    let mut repaired = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        repaired.push_str(&rest[..at]);
        rest = &rest[at..];
        let escape = match surrogate(rest) {
            None => rest.chars().nth(1).map_or(1, |c| 1 + c.len_utf8()),
            Some(Half::High) if surrogate(&rest[6..]) == Some(Half::Low) => 12,
            Some(Half::High | Half::Low) => {
                repaired.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
        };
        repaired.push_str(&rest[..escape]);
        rest = &rest[escape..];
    }
    repaired.push_str(rest);
    repaired
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    High,
    Low,
}

/// Returns the surrogate half that is escaped at the start of the text, if any.
fn surrogate(json: &str) -> Option<Half> {
    let digits = json.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Half::High),
        0xdc00..=0xdfff => Some(Half::Low),
        _ => None,
    }
}

/// Replaces `NaN`, `Infinity` and `-Infinity` by null; returns `None` if there are none.
pub(super) fn without_nan(json: &str) -> Option<String> {
    let mut repaired = String::new();
    let (mut kept, mut at) = (0, 0);
    let bytes = json.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        if byte == b'"' {
            at = end_of_string(bytes, at);
            continue;
        }
        let word = ["NaN", "Infinity", "-Infinity"]
            .into_iter()
            .find(|word| bytes[at..].starts_with(word.as_bytes()));
        let Some(word) = word else {
            at += 1;
            continue;
        };
        repaired.push_str(&json[kept..at]);
        repaired.push_str("null");
        at += word.len();
        kept = at;
    }
    if kept == 0 {
        return None;
    }
    repaired.push_str(&json[kept..]);
    Some(repaired)
}

/// Returns the position after the string that begins at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).expect("JSON")
    }

    #[test]
    fn truth_is_that_of_python() {
        for json in
            ["true", "1", "-0.5", "1e999", "\"false\"", "\" \"", "[0]", "[ null ]", "{\"a\":0}"]
        {
            assert!(is_truthy(raw(json)), "{json}");
        }
        for json in
            ["false", "null", "0", "-0", "0.0", "0e5", "1e-999", "\"\"", "[]", "[ \t]", "{ }"]
        {
            assert!(!is_truthy(raw(json)), "{json}");
        }
    }

    #[test]
    fn lone_halves_are_replaced_and_pairs_are_not() {
        let cases = [
            (r#""plain""#, "plain", false),
            (r#""a\nb""#, "a\nb", false),
            (r#""\ud83d\ude00""#, "😀", false),
            (r#""a\ud800b""#, "a\u{fffd}b", true),
            (r#""\udc00\ud800""#, "\u{fffd}\u{fffd}", true),
            (r#""\ud800\ud83d\ude00""#, "\u{fffd}😀", true),
            (r#""\\ud800 \uD800""#, "\\ud800 \u{fffd}", true),
            (r#""\ud800é\"""#, "\u{fffd}é\"", true),
        ];
        for (json, expected, expected_mended) in cases {
            let mut repaired = false;
            assert_eq!(text(raw(json), &mut repaired).as_deref(), Some(expected), "{json}");
            assert_eq!(repaired, expected_mended, "{json}");
        }
    }

    #[test]
    fn lone_halves_are_found() {
        for (json, expected) in [
            (r#"{"a": "plain \n \\ud800"}"#, None),
            (r#"["\ud83d\ude00"]"#, None),
            (r#"["a", "\ud800"]"#, Some(7)),
            (r#"["\ud83d\ude00\udc00"]"#, Some(14)),
            (r#"["\"#, None),
            (r#"["\é"#, None),
        ] {
            assert_eq!(lone_surrogate(json), expected, "{json}");
        }
    }

    #[test]
    fn wrapped_lines_are_joined_inside_strings_only() {
        let cases = [
            ("{\"a\": \"b\nc\",\n\"d\": 1}", Some("{\"a\": \"bc\",\n\"d\": 1}")),
            ("{\"a\": \"b\\\"\r\nc\"}", Some("{\"a\": \"b\\\"c\"}")),
            ("{\n}\n", None),
            ("\"\\", None),
        ];
        for (json, expected) in cases {
            assert_eq!(without_wrapped_lines(json).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn numbers_that_json_lacks_become_null() {
        let cases = [
            (r#"{"a": NaN, "b": [-Infinity,Infinity]}"#, Some(r#"{"a": null, "b": [null,null]}"#)),
            (r#"{"NaN": "a \" NaN"}"#, None),
            (r#"{"a": NaN, "unclosed \"#, Some(r#"{"a": null, "unclosed \"#)),
            ("", None),
        ];
        for (json, expected) in cases {
            assert_eq!(without_nan(json).as_deref(), expected, "{json}");
        }
    }
}
