//! Lazy JSON reader: a value is a slice of the body, and nothing is allocated.
//!
//! Strings are skipped by a search for their closing quote, at memory speed. Skipped values are not validated: the
//! provider reports errors in them, because the body is forwarded unmodified. Keys are compared without
//! unescaping.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr_iter};

/// Byte range in a body.
pub type Span = Range<usize>;

/// The body is not JSON, or is truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body is no JSON from byte {at} on; send it as one whole object")]
pub struct Malformed {
    /// Offset of the error.
    pub at: usize,
}

type Read<T> = Result<T, Malformed>;

/// Position in a body.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn malformed<T>(&self) -> Read<T> {
        Err(Malformed { at: self.at.min(self.bytes.len()) })
    }

    /// Returns the next byte that is not white space; 0 at the end.
    pub(crate) fn peek(&mut self) -> u8 {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return byte;
            }
            self.at += 1;
        }
        0
    }

    /// Consumes `byte` if it is next.
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == byte;
        self.at += usize::from(is_next);
        is_next
    }

    /// Returns the next key of an object, with the cursor before its value; `None` after the closing brace.
    pub(crate) fn key(&mut self, is_first: bool) -> Read<Option<&'a [u8]>> {
        if self.eat(b'}') {
            return Ok(None);
        }
        if (!is_first && !self.eat(b',')) || self.peek() != b'"' {
            return self.malformed();
        }
        let start = self.at + 1;
        self.skip_string()?;
        let key = &self.bytes[start..self.at - 1];
        if self.eat(b':') { Ok(Some(key)) } else { self.malformed() }
    }

    /// Returns whether a list has another item, with the cursor before it or after the closing bracket.
    pub(crate) fn item(&mut self, is_first: bool) -> Read<bool> {
        if self.eat(b']') {
            return Ok(false);
        }
        if is_first || self.eat(b',') { Ok(true) } else { self.malformed() }
    }

    /// Returns the next value.
    pub(crate) fn value(&mut self) -> Read<Value<'a>> {
        let first = self.peek();
        let start = self.at;
        match first {
            b'"' => self.skip_string()?,
            b'{' | b'[' => self.skip_nested()?,
            _ => {
                let rest = self.bytes.get(start..).unwrap_or_default();
                let is_end = |byte: &u8| b",]} \n\r\t".contains(byte);
                self.at = start + rest.iter().position(is_end).unwrap_or(rest.len());
                if self.at == start {
                    return self.malformed();
                }
            }
        }
        Ok(Value { bytes: &self.bytes[start..self.at], at: start })
    }

    /// Checks that only white space is left.
    pub(crate) fn end(&mut self) -> Read<()> {
        self.peek();
        if self.at >= self.bytes.len() { Ok(()) } else { self.malformed() }
    }

    /// Skips a string.
    fn skip_string(&mut self) -> Read<()> {
        let inside = self.at + 1;
        let Some(rest) = self.bytes.get(inside..) else { return self.malformed() };
        for quote in memchr_iter(b'"', rest) {
            // Every run of backslashes precedes at most one quote, so each is counted at most once.
            let slashes = rest[..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
            if slashes % 2 == 0 {
                self.at = inside + quote + 1;
                return Ok(());
            }
        }
        self.at = self.bytes.len();
        self.malformed()
    }

    /// Skips an object or a list of any depth.
    fn skip_nested(&mut self) -> Read<()> {
        let mut depth = 0_usize;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'"' => {
                    self.skip_string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
        self.malformed()
    }
}

/// A value in the body.
#[derive(Debug, Clone, Copy)]
pub struct Value<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Value<'a> {
    /// Returns the first value of a text.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        Cursor::new(bytes).value().ok()
    }

    /// Returns the value at a position that was found before.
    pub(crate) fn at(body: &'a [u8], span: &Span) -> Self {
        Self { bytes: body.get(span.clone()).unwrap_or_default(), at: span.start }
    }

    pub(crate) fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn span(self) -> Span {
        self.at..self.at + self.bytes.len()
    }

    fn opens_with(self, byte: u8) -> bool {
        self.bytes.first() == Some(&byte)
    }

    pub(crate) fn is_string(self) -> bool {
        self.opens_with(b'"')
    }

    pub(crate) fn is_list(self) -> bool {
        self.opens_with(b'[')
    }

    pub(crate) fn is_object(self) -> bool {
        self.opens_with(b'{')
    }

    pub(crate) fn is_null(self) -> bool {
        self.bytes == b"null"
    }

    pub(crate) fn is_true(self) -> bool {
        self.bytes == b"true"
    }

    /// Returns the bytes between the quotes of a string, with escapes; empty for other values.
    pub(crate) fn raw_str(self) -> &'a [u8] {
        self.bytes.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or_default()
    }

    /// Returns the text of a string.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        self.is_string().then(|| unescape(self.raw_str()))
    }

    /// Returns the JSON as text.
    pub(crate) fn json(self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.bytes)
    }

    /// Returns a non-negative integer; fractions are truncated.
    pub(crate) fn count(self) -> Option<u64> {
        let digits = self.bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(&self.bytes[..digits]).ok()?.parse().ok()
    }

    /// Returns an integer.
    pub(crate) fn number(self) -> Option<i64> {
        std::str::from_utf8(self.bytes).ok()?.parse().ok()
    }

    /// Returns the members of an object, up to the first syntax error.
    pub(crate) fn members(self) -> impl Iterator<Item = (&'a [u8], Value<'a>)> {
        let mut cursor = Cursor { bytes: self.bytes, at: 0 };
        let (is_object, base) = (cursor.eat(b'{'), self.at);
        let mut is_first = true;
        std::iter::from_fn(move || {
            if !is_object {
                return None;
            }
            let key = cursor.key(is_first).ok()??;
            is_first = false;
            let value = cursor.value().ok()?;
            Some((key, Value { at: base + value.at, ..value }))
        })
    }

    /// Returns the items of a list, up to the first syntax error.
    pub(crate) fn items(self) -> impl Iterator<Item = Value<'a>> {
        let mut cursor = Cursor { bytes: self.bytes, at: 0 };
        let (is_list, base) = (cursor.eat(b'['), self.at);
        let mut is_first = true;
        std::iter::from_fn(move || {
            if !is_list || !cursor.item(is_first).ok()? {
                return None;
            }
            is_first = false;
            let value = cursor.value().ok()?;
            Some(Value { at: base + value.at, ..value })
        })
    }

    /// Returns the member with this name; the last of several.
    pub(crate) fn get(self, name: &str) -> Option<Value<'a>> {
        self.members().filter(|(key, _)| *key == name.as_bytes()).last().map(|(_, value)| value)
    }

    /// Returns the members with these names in one pass; the last of several.
    pub(crate) fn fields<const N: usize>(self, names: [&str; N]) -> [Option<Value<'a>>; N] {
        let mut found = [None; N];
        for (key, value) in self.members() {
            if let Some(at) = names.iter().position(|name| name.as_bytes() == key) {
                found[at] = Some(value);
            }
        }
        found
    }

    /// Returns the text of the member with this name, or an empty text.
    pub(crate) fn text_of(self, name: &str) -> Cow<'a, str> {
        self.get(name).and_then(Value::text).unwrap_or_default()
    }

    /// Returns the bytes of the member with this name, for values without escapes.
    pub(crate) fn str_bytes(self, name: &str) -> &'a [u8] {
        self.get(name).map(Value::raw_str).unwrap_or_default()
    }
}

/// Returns the text of an optional field, or an empty text.
pub(crate) fn text(field: Option<Value<'_>>) -> Cow<'_, str> {
    field.and_then(Value::text).unwrap_or_default()
}

/// Returns the bytes of an optional field, for values without escapes.
pub(crate) fn str_bytes(field: Option<Value<'_>>) -> &[u8] {
    field.map(Value::raw_str).unwrap_or_default()
}

/// Unescapes a string. Lone surrogates and invalid UTF-8 become U+FFFD.
fn unescape(inside: &[u8]) -> Cow<'_, str> {
    let Some(first) = memchr(b'\\', inside) else { return String::from_utf8_lossy(inside) };
    let mut text = Vec::with_capacity(inside.len());
    text.extend_from_slice(&inside[..first]);
    let mut rest = &inside[first..];
    while let [b'\\', escape, ..] = rest {
        let mut used = 2;
        match escape {
            b'n' => text.push(b'\n'),
            b't' => text.push(b'\t'),
            b'r' => text.push(b'\r'),
            b'b' => text.push(8),
            b'f' => text.push(12),
            b'u' => {
                let (symbol, length) = unicode_escape(rest);
                text.extend_from_slice(symbol.encode_utf8(&mut [0; 4]).as_bytes());
                used = length;
            }
            other => text.push(*other),
        }
        rest = rest.get(used..).unwrap_or_default();
        let plain = memchr(b'\\', rest).unwrap_or(rest.len());
        text.extend_from_slice(&rest[..plain]);
        rest = &rest[plain..];
    }
    match String::from_utf8(text) {
        Ok(text) => Cow::Owned(text),
        Err(error) => Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

/// Returns the character of a `\u` escape and its length in bytes.
fn unicode_escape(bytes: &[u8]) -> (char, usize) {
    let unit = |from: usize| -> Option<u32> {
        let digits = bytes.get(from..from + 6)?.strip_prefix(b"\\u")?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let Some(first) = unit(0) else { return (char::REPLACEMENT_CHARACTER, 2) };
    if let (0xd800..=0xdbff, Some(second @ 0xdc00..=0xdfff)) = (first, unit(6)) {
        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
    }
    (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
}

/// Returns a text as a JSON string, with its quotes.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_found_where_they_stand() {
        let body = br#" { "a" : "x\"y\\" ,"b":[ 1 , {"c":[[]]},null ], "d":{} , "a":-2.5} "#;
        let value = Value::parse(body).expect("a value");
        let members: Vec<_> = value
            .members()
            .map(|(key, value)| {
                (String::from_utf8_lossy(key).into_owned(), value.json().into_owned())
            })
            .collect();
        let expected =
            [("a", r#""x\"y\\""#), ("b", r#"[ 1 , {"c":[[]]},null ]"#), ("d", "{}"), ("a", "-2.5")];
        assert_eq!(members, expected.map(|(key, json)| (key.to_owned(), json.to_owned())));
        let list = value.get("b").expect("a list");
        let items: Vec<_> = list.items().map(|item| body[item.span()].to_vec()).collect();
        assert_eq!(items, [b"1".to_vec(), br#"{"c":[[]]}"#.to_vec(), b"null".to_vec()]);
    }

    #[test]
    fn what_is_cut_short_is_malformed_and_no_more() {
        let body = br#"{"a":["x\\",{"b":1}],"c":"d\""}"#;
        for end in 0..body.len() {
            let cut = &body[..end];
            let mut cursor = Cursor::new(cut);
            assert!(cursor.value().and_then(|_| cursor.end()).is_err(), "{end}");
            if let Some(value) = Value::parse(cut) {
                assert!(value.members().count() <= 2);
            }
        }
    }

    #[test]
    fn counts_are_read_from_whole_numbers() {
        let cases = [
            ("12", Some(12)),
            ("12.9", Some(12)),
            ("-1", None),
            ("null", None),
            ("\"7\"", None),
            ("99999999999999999999", None),
        ];
        for (json, expected) in cases {
            assert_eq!(Value::parse(json.as_bytes()).and_then(Value::count), expected, "{json}");
        }
    }

    #[test]
    fn broken_escapes_cost_only_themselves() {
        let cases = [
            (r#""a\ud83d\ude00b""#, "a😀b"),
            (r#""\ud800x""#, "\u{fffd}x"),
            (r#""\ud800\u0041""#, "\u{fffd}A"),
            (r#""\u12""#, "\u{fffd}12"),
            (r#""\q\/""#, "q/"),
        ];
        for (json, expected) in cases {
            let text = Value::parse(json.as_bytes()).and_then(Value::text);
            assert_eq!(text.as_deref(), Some(expected), "{json}");
        }
        assert_eq!(
            Value::parse(b"\"a\xffb\"").and_then(Value::text).as_deref(),
            Some("a\u{fffd}b")
        );
    }

    proptest! {
        #[test]
        fn texts_survive_quoting(text in any::<String>()) {
            let json = quoted(&text);
            prop_assert_eq!(serde_json::from_str::<String>(&json).expect("JSON"), text.clone());
            let ours = Value::parse(json.as_bytes()).and_then(Value::text);
            prop_assert_eq!(ours.as_deref(), Some(text.as_str()));
            let theirs = serde_json::to_string(&text).expect("JSON");
            let read = Value::parse(theirs.as_bytes()).and_then(Value::text);
            prop_assert_eq!(read.as_deref(), Some(text.as_str()));
        }

        #[test]
        fn any_bytes_are_passed_over_without_harm(bytes in proptest::collection::vec(
            prop_oneof![Just(b'{'), Just(b'['), Just(b'}'), Just(b']'), Just(b'"'), Just(b'\\'),
                Just(b','), Just(b':'), Just(b'u'), Just(b'd'), Just(b'8'), any::<u8>()], 0..80)) {
            if let Some(value) = Value::parse(&bytes) {
                value.members().for_each(|(_, value)| { value.text(); });
                value.items().for_each(|value| { value.text(); });
            }
        }
    }
}
