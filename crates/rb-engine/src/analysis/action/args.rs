//! Parses the argument of a tool call: JSON, a printed Python dict, or plain text.
//!
//! The parser is lenient: it accepts single quotes, `True`, trailing commas and truncated input. The result is a flat
//! list of paths and values (`view_range[0]`, `edit.old`), which is looked up by name and sorted into a canonical form.

use std::borrow::Cow;

use super::normalize::{Level, strip_into};

/// Maximum nesting depth; deeper values are kept as raw text.
const DEPTH_MAX: usize = 6;
/// Maximum number of values; the rest is kept as one raw text.
const PAIRS_MAX: usize = 256;

/// The parsed argument of a call.
#[derive(Debug, Default)]
pub(super) struct Args<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The whole argument if it is not a structure.
    plain: Option<Cow<'a, str>>,
}

impl<'a> Args<'a> {
    /// Parses `text`.
    pub(super) fn read(text: &'a str) -> Self {
        let trimmed = text.trim();
        let mut parser = Parser { text: trimmed, at: 0, pairs: Vec::new() };
        match trimmed.as_bytes().first() {
            None => return Self::default(),
            Some(b'{') if opens_object(trimmed) => parser.value(Cow::Borrowed(""), 0),
            Some(b'[') if trimmed.ends_with(']') => parser.value(Cow::Borrowed(""), 0),
            Some(b'"') => {
                let value = parser.string();
                let whole = parser.at >= trimmed.len();
                return Self {
                    pairs: Vec::new(),
                    plain: Some(if whole { value } else { trimmed.into() }),
                };
            }
            Some(_) => {}
        }
        if parser.pairs.is_empty() {
            return Self { pairs: Vec::new(), plain: Some(trimmed.into()) };
        }
        Self { pairs: parser.pairs, plain: None }
    }

    /// Returns the first non-empty value of `names`, in the order of `names`.
    pub(super) fn get(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| {
            let found = self.pairs.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found
                .map(|(_, value)| value.as_ref())
                .filter(|value| !value.is_empty() && *value != "null")
        })
    }

    /// Returns all values of `name`, which may be a single value or a list.
    pub(super) fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s str> {
        self.pairs.iter().filter_map(move |(key, value)| {
            let rest = key.strip_prefix(name)?;
            (rest.is_empty() || (rest.starts_with('[') && !rest.contains('.')))
                .then_some(value.as_ref())
        })
    }

    /// Returns paths and values in the order of the text.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(key, value)| (key.as_ref(), value.as_ref()))
    }

    /// Returns the argument if it is plain text.
    pub(super) fn plain(&self) -> Option<&str> {
        self.plain.as_deref()
    }

    /// Appends the canonical form: sorted by key, with spacing normalised to `level`, without the keys for which `skip`
    /// returns true.
    pub(super) fn canonical_into(
        &self,
        out: &mut String,
        level: Level,
        skip: impl Fn(&str) -> bool,
    ) {
        if let Some(plain) = self.plain() {
            strip_into(out, plain, level);
        }
        let mut order: Vec<usize> = (0..self.pairs.len()).collect();
        order.sort_by(|a, b| {
            self.pairs.get(*a).map(|p| &p.0).cmp(&self.pairs.get(*b).map(|p| &p.0))
        });
        for (key, value) in order.iter().filter_map(|index| self.pairs.get(*index)) {
            if skip(key) {
                continue;
            }
            // Control characters are safe separators: `strip_into` removes them from values.
            out.push('\u{1e}');
            out.push_str(key);
            out.push('\u{1f}');
            strip_into(out, value, level);
        }
    }
}

/// Reports whether `{` opens an object rather than a group of shell commands or a set of words.
fn opens_object(text: &str) -> bool {
    let inside = text.get(1..).unwrap_or("").trim_start();
    match inside.as_bytes().first() {
        None | Some(b'"' | b'\'' | b'}') => true,
        Some(byte) if byte.is_ascii_alphabetic() || *byte == b'_' => {
            let end =
                inside.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(inside.len());
            inside[end..].trim_start().starts_with(':')
        }
        Some(_) => false,
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or("")
    }

    /// Parses one value and stores it under `path`. Recursion ends at [`DEPTH_MAX`].
    fn value(&mut self, path: Cow<'a, str>, depth: usize) {
        self.skip_spaces();
        match self.peek() {
            None => {}
            Some(b'{' | b'[' | b'(') if depth >= DEPTH_MAX || self.pairs.len() >= PAIRS_MAX => {
                let raw = self.raw_nested();
                self.pairs.push((path, raw.into()));
            }
            Some(b'{') => self.object(path, depth),
            Some(b'[' | b'(') => self.list(&path, depth),
            Some(b'"' | b'\'') => {
                let value = self.string();
                self.pairs.push((path, value));
            }
            Some(_) => {
                let value = self.bare();
                self.pairs.push((path, value.into()));
            }
        }
    }

    fn object(&mut self, path: Cow<'a, str>, depth: usize) {
        self.at += 1;
        let before = self.pairs.len();
        loop {
            self.skip_spaces();
            let key = match self.peek() {
                None => break,
                Some(b'}') => {
                    self.at += 1;
                    break;
                }
                Some(b',' | b']' | b')') => {
                    self.at += 1;
                    continue;
                }
                Some(b'"' | b'\'') => self.string(),
                Some(_) => self.bare_key().into(),
            };
            self.skip_spaces();
            if self.peek() == Some(b':') {
                self.at += 1;
            }
            let inner = if path.is_empty() { key } else { format!("{path}.{key}").into() };
            if self.pairs.len() >= PAIRS_MAX {
                self.rest(inner);
                return;
            }
            self.value(inner, depth + 1);
        }
        if self.pairs.len() == before && !path.is_empty() {
            self.pairs.push((path, "{}".into()));
        }
    }

    fn list(&mut self, path: &str, depth: usize) {
        self.at += 1;
        let mut index = 0_usize;
        loop {
            self.skip_spaces();
            match self.peek() {
                None => return,
                Some(b']' | b')') => {
                    self.at += 1;
                    return;
                }
                Some(b',' | b'}' | b':') => self.at += 1,
                Some(_) => {
                    let inner = Cow::Owned(format!("{path}[{index}]"));
                    if self.pairs.len() >= PAIRS_MAX {
                        self.rest(inner);
                        return;
                    }
                    self.value(inner, depth + 1);
                    index += 1;
                }
            }
        }
    }

    /// Stores the unread text as one value.
    fn rest(&mut self, path: Cow<'a, str>) {
        let raw = self.slice(self.at, self.text.len());
        self.at = self.text.len();
        self.pairs.push((path, raw.into()));
    }

    /// Returns a nested value as raw text, with balanced brackets.
    fn raw_nested(&mut self) -> &'a str {
        let start = self.at;
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'{' | b'[' | b'(' => open += 1,
                b'}' | b']' | b')' => open = open.saturating_sub(1),
                b'"' => {
                    self.string();
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                break;
            }
        }
        self.slice(start, self.at)
    }

    fn bare_key(&mut self) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(|b| !matches!(b, b':' | b',' | b'}' | b'\n')) {
            self.at += 1;
        }
        if self.at == start {
            self.at += 1; // A stray delimiter must not stop the parser.
            return "";
        }
        self.slice(start, self.at).trim()
    }

    fn bare(&mut self) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(|b| !matches!(b, b',' | b'}' | b']' | b')' | b'\n')) {
            self.at += 1;
            if self.at == start + 1 && matches!(self.peek(), Some(b'\'' | b'"')) {
                // A Python string prefix, as in `b'…'` or `r"…"`: the string is the value.
                self.string();
                return self.slice(start + 2, self.at.saturating_sub(1).max(start + 2));
            }
        }
        if self.at == start {
            self.at += 1;
            return "";
        }
        match self.slice(start, self.at).trim() {
            "True" => "true",
            "False" => "false",
            "None" => "null",
            other => other,
        }
    }

    /// Parses a quoted string. Without a closing quote it extends to the end of the text.
    fn string(&mut self) -> Cow<'a, str> {
        let Some(quote) = self.peek() else { return "".into() };
        self.at += 1;
        let mut value = Cow::Borrowed("");
        loop {
            let rest = self.slice(self.at, self.text.len());
            let is_special = |byte: u8| byte == quote || byte == b'\\';
            let len = rest.bytes().position(is_special).unwrap_or(rest.len());
            value += &rest[..len];
            self.at += len;
            if self.peek() != Some(b'\\') {
                self.at += usize::from(self.peek().is_some());
                return value;
            }
            let (c, len) = unescape(self.slice(self.at + 1, self.text.len()));
            value.to_mut().extend(c);
            self.at += 1 + len;
        }
    }
}

/// Returns the character of an escape sequence and its length after the backslash.
fn unescape(rest: &str) -> (Option<char>, usize) {
    let Some(c) = rest.chars().next() else { return (Some('\\'), 0) };
    match c {
        'n' => (Some('\n'), 1),
        't' => (Some('\t'), 1),
        'r' => (Some('\r'), 1),
        'b' | 'f' => (None, 1),
        'u' => {
            let unit =
                |at: usize| rest.get(at..at + 4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
            let Some(high) = unit(1) else { return (Some('u'), 1) };
            if (0xd800..0xdc00).contains(&high)
                && rest.get(5..7) == Some("\\u")
                && let Some(lower) = unit(7).filter(|lower| (0xdc00..0xe000).contains(lower))
            {
                return (char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (lower - 0xdc00)), 11);
            }
            (char::from_u32(high).or(Some('\u{fffd}')), 5)
        }
        'x' => match rest.get(1..3).and_then(|hex| u32::from_str_radix(hex, 16).ok()) {
            Some(code) => (char::from_u32(code), 3),
            None => (Some('x'), 1),
        },
        other => (Some(other), other.len_utf8()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> String {
        let args = Args::read(text);
        let mut shown: Vec<String> =
            args.pairs().map(|(key, value)| format!("{key}={value}")).collect();
        shown.extend(args.plain().map(|plain| format!("plain:{plain}")));
        shown.join("|")
    }

    #[test]
    fn arguments_in_every_form() {
        for (text, want) in [
            ("", ""),
            ("ls -la", "plain:ls -la"),
            ("\"ls\\n-la\"", "plain:ls\n-la"),
            ("\"a\" b", "plain:\"a\" b"),
            (r#"{"a": 1, "b": "x y"}"#, "a=1|b=x y"),
            (r#"{"a": {"b": [1, "two", {"c": null}]}}"#, "a.b[0]=1|a.b[1]=two|a.b[2].c=null"),
            ("{'a': True, 'b': None, 'c': 'it\\'s'}", "a=true|b=null|c=it's"),
            ("{'a': (1, 2), 'b': {}}", "a[0]=1|a[1]=2|b={}"),
            ("{a: 1}", "a=1"),
            ("{ echo hi; }", "plain:{ echo hi; }"),
            (r#"{"command": "ls", "#, "command=ls"),
            (r#"{"command": "ls -la && cat fo"#, "command=ls -la && cat fo"),
            (r#"{"a": "\u00e9\ud83d\ude00\x41"}"#, "a=é😀A"),
            (r#"["bash", "-lc", "ls"]"#, "[0]=bash|[1]=-lc|[2]=ls"),
            ("[ -f x ] && ls", "plain:[ -f x ] && ls"),
            ("{'k': b'raw'}", "k=raw"),
            (r#"{"a" 1 "b": 2}"#, r#"a=1 "b": 2"#),
            ("{}", "plain:{}"),
        ] {
            assert_eq!(show(text), want, "{text:?}");
        }
    }

    #[test]
    fn lists_and_names_are_found() {
        let args = Args::read(r#"{"Paths": ["a", "b"], "paths": ["c"], "path": "", "file": "f"}"#);
        assert_eq!(args.all("paths").collect::<Vec<_>>(), ["c"]);
        assert_eq!(args.get(&["path", "file"]), Some("f"));
    }

    #[test]
    fn depth_and_number_are_limited() {
        let deep = format!("{{\"a\": {}1{}}}", "[".repeat(50_000), "]".repeat(50_000));
        assert_eq!(Args::read(&deep).pairs().count(), 1);
        let wide = format!("[{}1]", "1,".repeat(50_000));
        assert!(Args::read(&wide).pairs().count() <= PAIRS_MAX + 1);
    }
}
