//! Lazy JSON reader: no tree, no recursion, tolerates truncated input.
//!
//! A value is a slice of the text. Each access scans the slice again, which is faster than building a tree of
//! unused values. Files that are still being written are truncated: unclosed objects and lists return the entries
//! present, and an unfinished string or number counts as absent.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use super::json;

/// JSON value as a slice of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Json<'a> {
    raw: &'a str,
    /// The value is complete.
    whole: bool,
}

impl<'a> Json<'a> {
    /// Returns the value at the start of a text; the text must be valid JSON up to its truncation.
    pub(super) fn first(text: &'a str) -> Option<Self> {
        let text = text.trim_ascii_start();
        let (end, whole) = end_of_value(text.as_bytes(), 0)?;
        // A number or literal at the end of the text may be incomplete.
        let whole = whole || !matches!(text.as_bytes().first(), Some(b'{' | b'[' | b'"'));
        Some(Self { raw: &text[..end], whole })
    }

    /// Wraps a raw value that is known to be complete or truncated.
    pub(super) fn new(raw: &'a str, whole: bool) -> Self {
        Self { raw, whole }
    }

    /// Returns the raw JSON text.
    pub(super) fn raw(self) -> &'a str {
        self.raw
    }

    /// Returns `true` if the value is complete.
    pub(super) fn is_whole(self) -> bool {
        self.whole
    }

    pub(super) fn is_object(self) -> bool {
        self.raw.starts_with('{')
    }

    pub(super) fn is_list(self) -> bool {
        self.raw.starts_with('[')
    }

    pub(super) fn is_string(self) -> bool {
        self.raw.starts_with('"')
    }

    pub(super) fn is_null(self) -> bool {
        self.raw == "null"
    }

    /// Returns the type of the value in words.
    pub(super) fn kind(self) -> &'static str {
        json::kind(self.raw)
    }

    /// Returns the text of a string; `None` for other types.
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        if !self.whole {
            return None;
        }
        json::unquoted(self.raw, &mut false)
    }

    /// Returns the text of a non-empty string.
    pub(super) fn some_text(self) -> Option<Cow<'a, str>> {
        self.text().filter(|text| !text.is_empty())
    }

    /// Returns the text of a string or a number, for names that may be either.
    pub(super) fn name(self) -> Option<Cow<'a, str>> {
        match self.raw.as_bytes().first() {
            Some(b'-' | b'0'..=b'9') if self.whole => Some(Cow::Borrowed(self.raw)),
            _ => self.some_text(),
        }
    }

    /// Returns the text of a string, or any other value as JSON; `None` for null and truncated values.
    pub(super) fn text_or_json(self) -> Option<Cow<'a, str>> {
        if self.is_string() {
            return self.text();
        }
        (self.whole && !self.is_null()).then_some(Cow::Borrowed(self.raw))
    }

    /// Compares the raw text of a string, without decoding escapes.
    pub(super) fn is(self, text: &str) -> bool {
        self.whole && self.raw.len() == text.len() + 2 && self.is_string() && self.inside() == text
    }

    fn inside(self) -> &'a str {
        self.raw.get(1..self.raw.len().saturating_sub(1)).unwrap_or_default()
    }

    /// Returns a number, including one in a string.
    pub(super) fn number(self) -> Option<f64> {
        let digits = if self.is_string() { self.inside() } else { self.raw };
        let number: f64 = self.whole.then_some(digits)?.trim().parse().ok()?;
        number.is_finite().then_some(number)
    }

    /// Returns a non-negative integer, including one in a string.
    pub(super) fn count(self) -> Option<u64> {
        let digits = if self.is_string() { self.inside() } else { self.raw };
        let digits = self.whole.then_some(digits)?.trim();
        digits.strip_suffix(".0").unwrap_or(digits).parse().ok()
    }

    /// Returns a boolean; `None` for other types.
    pub(super) fn truth(self) -> Option<bool> {
        match self.raw {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Iterates over the values of a list; empty for other types.
    pub(super) fn items(self) -> Items<'a> {
        Items(Walk::new(self, b'['))
    }

    /// Iterates over the entries of an object, with raw keys; empty for other types.
    pub(super) fn entries(self) -> Entries<'a> {
        Entries(Walk::new(self, b'{'))
    }

    /// Returns the values of several keys in one pass; null counts as absent.
    pub(super) fn fields<const N: usize>(self, keys: [&str; N]) -> [Option<Self>; N] {
        let mut found = [None; N];
        for (key, value) in self.entries() {
            if let Some(at) = keys.iter().position(|known| *known == key) {
                found[at] = (!value.is_null()).then_some(value);
            }
        }
        found
    }

    /// Returns the value of a key; null counts as absent.
    pub(super) fn get(self, key: &str) -> Option<Self> {
        let found = self.entries().find(|(known, _)| *known == key);
        found.map(|(_, value)| value).filter(|value| !value.is_null())
    }

    /// Returns the value at a path of keys.
    pub(super) fn at(self, path: &[&str]) -> Option<Self> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }
}

/// Cursor inside an object or a list.
#[derive(Debug, Clone)]
struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    fn new(value: Json<'a>, open: u8) -> Self {
        let is_one = value.raw.as_bytes().first() == Some(&open);
        Self { text: if is_one { value.raw } else { "" }, at: 1 }
    }

    /// Skips whitespace and one occurrence of `mark`.
    fn pass(&mut self, mark: u8) -> Option<u8> {
        loop {
            let byte = *self.text.as_bytes().get(self.at)?;
            if !byte.is_ascii_whitespace() && byte != mark {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    fn value(&mut self) -> Option<Json<'a>> {
        let (end, whole) = end_of_value(self.text.as_bytes(), self.at)?;
        let raw = self.text.get(self.at..end)?;
        self.at = end;
        Some(Json { raw, whole })
    }
}

/// Iterator of [`Json::items`].
#[derive(Debug, Clone)]
pub(super) struct Items<'a>(Walk<'a>);

impl<'a> Iterator for Items<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Json<'a>> {
        match self.0.pass(b',')? {
            b']' => None,
            _ => self.0.value(),
        }
    }
}

/// Iterator of [`Json::entries`].
#[derive(Debug, Clone)]
pub(super) struct Entries<'a>(Walk<'a>);

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a str, Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.pass(b',')? != b'"' {
            return None;
        }
        let key = self.0.value().filter(|key| key.whole)?.inside();
        self.0.pass(b':')?;
        Some((key, self.0.value()?))
    }
}

/// Returns the end position of the value at `start`, and whether the value is complete; `None` if there is no
/// value.
fn end_of_value(bytes: &[u8], start: usize) -> Option<(usize, bool)> {
    match bytes.get(start)? {
        b'"' => Some(end_of_string(bytes, start)),
        b'{' | b'[' => Some(end_of_nest(bytes, start)),
        b',' | b':' | b'}' | b']' => None,
        _ => {
            let is_end =
                |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
            let end = bytes[start..].iter().position(is_end).map(|len| start + len);
            Some((end.unwrap_or(bytes.len()), end.is_some()))
        }
    }
}

fn end_of_string(bytes: &[u8], start: usize) -> (usize, bool) {
    let mut at = start + 1;
    while let Some(rest) = bytes.get(at..) {
        match memchr2(b'"', b'\\', rest) {
            Some(len) if rest[len] == b'"' => return (at + len + 1, true),
            Some(len) => at += len + 2,
            None => break,
        }
    }
    (bytes.len(), false)
}

fn end_of_nest(bytes: &[u8], start: usize) -> (usize, bool) {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = end_of_string(bytes, at).0;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return (at + 1, true);
                }
            }
            _ => {}
        }
        at += 1;
    }
    (bytes.len(), false)
}

/// Returns the first line of a text without its line break.
pub(super) fn first_line(text: &str) -> &str {
    &text[..memchr(b'\n', text.as_bytes()).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json<'_> {
        Json::first(text).expect("a value")
    }

    #[test]
    fn values_are_found_without_a_tree() {
        let value = json(r#" {"a": [1, "x\"]", {"b": null}], "c" : "d", "e":true,"f":-1.50} x"#);
        let [list, text, truth, number, none] = value.fields(["a", "c", "e", "f", "g"]);
        let items: Vec<&str> = list.into_iter().flat_map(Json::items).map(Json::raw).collect();
        assert_eq!(items, ["1", r#""x\"]""#, r#"{"b": null}"#]);
        assert_eq!(text.and_then(Json::text).as_deref(), Some("d"));
        assert!(text.is_some_and(|text| text.is("d") && !text.is("dd") && !text.is("")));
        assert_eq!((truth.and_then(Json::truth), none), (Some(true), None));
        assert_eq!(number.and_then(Json::number), Some(-1.5));
        assert_eq!(value.at(&["a", "b"]), None);
    }

    #[test]
    fn what_is_cut_off_gives_what_is_there() {
        let text = r#"{"a": [1, 22, {"b": "cd"}, "ef"], "g": 7}"#;
        let told = |end: usize| -> Vec<String> {
            let Some(value) = Json::first(&text[..end]) else { return Vec::new() };
            let a = value.get("a").into_iter().flat_map(Json::items);
            let g = value.get("g").and_then(Json::count).map(|g| g.to_string());
            a.filter_map(|item| item.get("b").and_then(Json::text).or(item.name()))
                .map(Cow::into_owned)
                .chain(g)
                .collect()
        };
        let mut before: Vec<String> = Vec::new();
        for end in 0..=text.len() {
            let now = told(end);
            assert!(now.starts_with(&before), "{end}: {before:?} {now:?}");
            before = now;
        }
        assert_eq!(before, ["1", "22", "cd", "ef", "7"]);
    }

    #[test]
    fn numbers_in_strings_are_numbers() {
        for (text, count, number) in [
            ("12", Some(12), Some(12.0)),
            ("\"12\"", Some(12), Some(12.0)),
            ("12.0", Some(12), Some(12.0)),
            ("-1", None, Some(-1.0)),
            ("1.5", None, Some(1.5)),
            ("1e999", None, None),
            ("\"\"", None, None),
            ("NaN", None, None),
            ("null", None, None),
            ("[1]", None, None),
        ] {
            assert_eq!((json(text).count(), json(text).number()), (count, number), "{text}");
        }
    }

    #[test]
    fn nothing_breaks_it() {
        for text in [
            "", " ", "{", "[", "\"", "\"\\", "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":}", "]",
            "{,}", "[,,]", "{]}", "tru",
        ] {
            if let Some(value) = Json::first(text) {
                let _ = (value.text(), value.number(), value.count(), value.truth(), value.name());
                assert!(value.entries().count() + value.items().count() <= 1, "{text}");
            }
        }
    }
}
