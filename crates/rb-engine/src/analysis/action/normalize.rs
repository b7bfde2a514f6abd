//! Removes text that differs from call to call without meaning anything: ids, addresses, times, temporary paths.
//!
//! One pass over the text. The `Level` determines what is removed: a date in a request is an argument, the same date
//! in a log line is noise. So requests lose only colour codes and spacing, outputs also clock times and addresses, and
//! error messages also numbers.

use crate::analysis::text::{self, WORD_BYTES, byte_table};

/// Amount of text that is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Colour codes, spaces inside lines, blank lines. Indentation remains, because it is content of an edit.
    Lines,
    /// Colour codes and all spacing.
    Spacing,
    /// Also ids, addresses, clock times, durations, process ids, ports and temporary paths.
    Answer,
    /// Also every number.
    Error,
    /// Also quoted values; the type of error remains.
    Class,
}

/// Returns the fingerprint of the stripped text. `scratch` is overwritten.
pub(super) fn fingerprint(scratch: &mut String, text: &str, level: Level) -> u64 {
    scratch.clear();
    strip_into(scratch, text, level);
    text::fingerprint(scratch)
}

/// Appends the stripped text to `out`.
pub(super) fn strip_into(out: &mut String, text: &str, level: Level) {
    out.reserve(text.len());
    Strip { text, bytes: text.as_bytes(), at: 0, out, level, copy_from: 0 }.run();
}

/// White space between the last output and the next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gap {
    Start,
    None,
    Blank,
    Line,
}

struct Strip<'t, 'o> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    out: &'o mut String,
    level: Level,
    /// Start of the text that has not been copied yet.
    copy_from: usize,
}

impl<'t> Strip<'t, '_> {
    fn run(&mut self) {
        self.spacing(Gap::Start);
        // Everything volatile starts with one of these bytes or contains a digit.
        while let Some(ahead) = self
            .bytes
            .get(self.at..)
            .and_then(|rest| rest.iter().position(|b| STOP_BYTES[usize::from(*b)]))
        {
            self.at += ahead;
            let byte = self.bytes.get(self.at).copied().unwrap_or(0);
            if byte.is_ascii_digit() {
                self.number();
            } else if byte > b' ' {
                self.mark(byte);
            } else if byte == b' ' && self.bytes.get(self.at + 1).is_some_and(|next| *next > b' ') {
                self.at += 1; // A single space between two words is copied with them.
            } else {
                self.spacing(Gap::None);
            }
        }
        self.copy_up_to(self.bytes.len());
    }

    /// Copies the text up to `end`.
    fn copy_up_to(&mut self, end: usize) {
        self.out.push_str(self.slice(self.copy_from, end));
        self.copy_from = end;
    }

    /// Replaces a run of white space and colour codes.
    fn spacing(&mut self, before: Gap) {
        self.copy_up_to(self.at);
        let mut gap = before;
        let mut indent = 0_usize;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                0x1b => {
                    let rest = self.bytes.get(self.at + 1..).unwrap_or(&[]);
                    self.at += escape_len(rest);
                }
                b'\n' | b'\r' => {
                    indent = 0;
                    gap = if gap == Gap::Start { Gap::Start } else { Gap::Line };
                }
                b' ' | b'\t' | 0x0b | 0x0c | 0x1c..=0x1f => {
                    indent += if byte == b'\t' { 4 } else { 1 };
                    gap = if gap == Gap::None { Gap::Blank } else { gap };
                }
                // Other control characters are dropped.
                0..=b' ' => {}
                _ => break,
            }
            self.at += 1;
        }
        self.copy_from = self.at;
        if self.at >= self.bytes.len() {
            return;
        }
        match gap {
            Gap::None | Gap::Start => {}
            Gap::Line if self.level == Level::Lines => {
                self.out.push('\n');
                self.out.extend(std::iter::repeat_n(' ', indent.min(64)));
            }
            Gap::Blank | Gap::Line => self.out.push(' '),
        }
    }

    /// Handles a word whose first digit is at the current position.
    fn number(&mut self) {
        let passed = self.bytes.get(self.copy_from..self.at).unwrap_or(&[]);
        let start = self.at - passed.iter().rev().take_while(|b| is_word_byte(**b)).count();
        let end = self.word_end(self.at);
        self.at = end;
        if self.level >= Level::Answer
            && let Some((end, shown)) = self.volatile_word(start, end)
        {
            self.copy_up_to(start);
            self.out.push_str(shown);
            self.copy_from = end;
            self.at = end;
        }
    }

    /// Handles a punctuation mark, which may open a temporary path or a quoted value.
    fn mark(&mut self, byte: u8) {
        let replaced = match byte {
            b'/' if self.level >= Level::Answer => self.temporary_path(),
            b'\'' | b'"' | b'`' if self.level == Level::Class => self.quoted(byte),
            _ => false,
        };
        if !replaced {
            self.at += 1;
        }
    }

    fn slice(&self, start: usize, end: usize) -> &'t str {
        self.text.get(start..end).unwrap_or("")
    }

    fn word_end(&self, start: usize) -> usize {
        let rest = self.bytes.get(start..).unwrap_or(&[]);
        rest.iter().position(|&b| !is_word_byte(b)).map_or(self.bytes.len(), |n| start + n)
    }

    /// Returns the end of the volatile text that starts with this word, and its replacement.
    fn volatile_word(&self, start: usize, end: usize) -> Option<(usize, &'static str)> {
        let word = self.bytes.get(start..end)?;
        let first = *word.first()?;
        if first.is_ascii_digit() {
            if let Some(after) = self.time_end(start, end) {
                return Some((after, "<time>"));
            }
            if word.len() > 5
                && word.starts_with(b"0x")
                && word[2..].iter().all(u8::is_ascii_hexdigit)
            {
                return Some((end, "<hex>"));
            }
            if let Some(after) = self.duration_end(start) {
                return Some((after, "<span>"));
            }
        }
        if word.len() >= 8 {
            if let Some(after) = self.uuid_end(start, end) {
                return Some((after, "<id>"));
            }
            if is_random(word) {
                return Some((end, "<id>"));
            }
        }
        if word.iter().all(u8::is_ascii_digit) {
            let counted = word.len() >= 10 || self.is_process_or_port(start, word.len());
            if counted || self.level >= Level::Error {
                return Some((end, "#"));
            }
        }
        None
    }

    /// Matches `2024-05-01T10:22:33.1Z`, `2024-05-01 10:22`, `10:22:33`.
    fn time_end(&self, start: usize, end: usize) -> Option<usize> {
        let clock = match end - start {
            4 if self.shape(end, b"-dd-dd") => {
                let day = end + 6;
                if !matches!(self.bytes.get(day), Some(b'T' | b' ')) {
                    return None;
                }
                day + 1
            }
            1 | 2 if self.shape(end, b":dd:dd") => start,
            _ => return None,
        };
        let hour = self.digits_end(clock);
        if hour == clock || !self.shape(hour, b":dd") {
            return None;
        }
        let mut at = hour + 3;
        if self.shape(at, b":dd") {
            at += 3;
        }
        if matches!(self.bytes.get(at), Some(b'.' | b',')) {
            at = self.digits_end(at + 1);
        }
        Some(self.zone_end(at))
    }

    fn zone_end(&self, at: usize) -> usize {
        match self.bytes.get(at) {
            Some(b'Z') => at + 1,
            Some(b'+' | b'-') if self.shape(at + 1, b"dd:dd") => at + 6,
            Some(b'+' | b'-') if self.shape(at + 1, b"dddd") => at + 5,
            _ => at,
        }
    }

    /// Matches `0.12s`, `12ms`, `1.5 seconds`, `in 3 s`.
    fn duration_end(&self, start: usize) -> Option<usize> {
        let whole = self.digits_end(start);
        let mut at = whole;
        if self.bytes.get(at) == Some(&b'.') {
            at = self.digits_end(at + 1);
        }
        let number_end = at;
        if self.bytes.get(at) == Some(&b' ') {
            at += 1;
        }
        let unit_end = self.word_end(at);
        let unit = self.slice(at, unit_end);
        let close = at == number_end;
        let is_unit = match unit {
            "ms" | "sec" | "secs" | "second" | "seconds" | "µs" | "us" | "ns" | "milliseconds" => {
                true
            }
            "s" => close || number_end > whole,
            "m" | "h" => close && number_end > whole,
            _ => false,
        };
        is_unit.then_some(unit_end)
    }

    fn uuid_end(&self, start: usize, end: usize) -> Option<usize> {
        (end - start == 8 && self.shape(start, b"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"))
            .then_some(start + 36)
    }

    /// Reports whether a number follows a word such as `pid` or `port`, or `localhost:`.
    fn is_process_or_port(&self, start: usize, len: usize) -> bool {
        let before = self.bytes.get(start.saturating_sub(16)..start).unwrap_or(&[]);
        let gap = before.iter().rev().take_while(|b| !is_word_byte(**b)).count();
        let before = &before[..before.len() - gap];
        let word = before.iter().rev().take_while(|b| is_word_byte(**b)).count();
        let (rest, word) = before.split_at(before.len() - word);
        if gap == 0 || gap > 2 || word.is_empty() {
            return false;
        }
        let colon = self.bytes.get(start.wrapping_sub(1)) == Some(&b':');
        let names: [&[u8]; 4] = [b"pid", b"ppid", b"port", b"tid"];
        names.iter().any(|name| word.eq_ignore_ascii_case(name))
            || (colon && word == b"localhost")
            || (colon
                && len >= 4
                && rest.last() == Some(&b'.')
                && word.iter().all(u8::is_ascii_digit))
    }

    /// Replaces the random component of a path such as `/tmp/tmpab12cd/…`.
    fn temporary_path(&mut self) -> bool {
        let rest = self.slice(self.at, self.text.len());
        if !rest.starts_with("/tmp/") && !rest.starts_with("/var/") {
            return false;
        }
        let prefix =
            ["/tmp/", "/var/tmp/", "/var/folders/"].into_iter().find(|p| rest.starts_with(p));
        let Some(prefix) = prefix else { return false };
        let name = &rest[prefix.len()..];
        let end =
            name.find(|c: char| !(c.is_alphanumeric() || "._-".contains(c))).unwrap_or(name.len());
        if !is_temporary_name(&name.as_bytes()[..end]) && prefix != "/var/folders/" {
            return false;
        }
        self.copy_up_to(self.at);
        self.at += prefix.len() + end;
        self.copy_from = self.at;
        self.out.push_str("/tmp/~");
        true
    }

    /// Replaces a quoted value if it is short and ends on the same line.
    fn quoted(&mut self, quote: u8) -> bool {
        // An apostrophe inside a word is not a quote.
        if self.at > 0 && self.bytes.get(self.at - 1).is_some_and(|&b| is_word_byte(b)) {
            return false;
        }
        let inside = self.bytes.get(self.at + 1..).unwrap_or(&[]);
        let window = &inside[..inside.len().min(200)];
        let Some(len) = window.iter().position(|&b| b == quote || b == b'\n') else { return false };
        if window.get(len) != Some(&quote) {
            return false;
        }
        self.copy_up_to(self.at);
        self.at += len + 2;
        self.copy_from = self.at;
        self.out.push_str("<q>");
        true
    }

    fn digits_end(&self, start: usize) -> usize {
        let rest = self.bytes.get(start..).unwrap_or(&[]);
        rest.iter().position(|b| !b.is_ascii_digit()).map_or(self.bytes.len(), |n| start + n)
    }

    /// Matches the text at `start` with a pattern of `d` (digit), `x` (hexadecimal digit) and literal bytes.
    fn shape(&self, start: usize, shape: &[u8]) -> bool {
        let Some(found) = self.bytes.get(start..start + shape.len()) else { return false };
        found.iter().zip(shape).all(|(byte, want)| match want {
            b'd' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_hexdigit(),
            other => byte == other,
        })
    }
}

/// Returns the length of an escape sequence; `rest` starts after ESC.
fn escape_len(rest: &[u8]) -> usize {
    match rest.first() {
        Some(b'[') => {
            let end = rest.iter().skip(1).position(|b| (0x40..=0x7e).contains(b) || *b >= 0x80);
            end.map_or(rest.len(), |n| {
                if rest.get(n + 1).is_some_and(u8::is_ascii) { n + 2 } else { n + 1 }
            })
        }
        // Window titles end with BEL. The limit keeps an unterminated one from removing the whole output.
        Some(b']') => rest.iter().take(128).position(|&b| b == 0x07).map_or(1, |n| n + 1),
        Some(b) if b.is_ascii() => 1,
        _ => 0,
    }
}

/// Returns the text without colour codes, borrowed if there are none.
pub(super) fn without_escapes(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.as_bytes().contains(&0x1b) {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        rest = after.get(escape_len(after.as_bytes())..).unwrap_or(after);
    }
    plain.push_str(rest);
    plain.into()
}

/// Bytes at which text may have to be replaced.
static STOP_BYTES: [bool; 256] = byte_table!(false, |byte| matches!(
    byte,
    0..=b' ' | b'"' | b'\'' | b'/' | b'0'..=b'9' | b'`'
));

fn is_word_byte(byte: u8) -> bool {
    WORD_BYTES[usize::from(byte)]
}

/// Reports whether a word is random: a long hexadecimal number, or many alternations of letters and digits.
fn is_random(word: &[u8]) -> bool {
    let digits = word.iter().filter(|b| b.is_ascii_digit()).count();
    if digits == 0 || digits == word.len() {
        return false;
    }
    if word.len() >= 12 && word.iter().all(u8::is_ascii_hexdigit) {
        return true;
    }
    let turns = word.windows(2).filter(|w| w[0].is_ascii_digit() != w[1].is_ascii_digit()).count();
    word.len() >= 16 && digits >= 4 && turns >= 6
}

fn is_temporary_name(name: &[u8]) -> bool {
    let mixed = name.iter().any(u8::is_ascii_digit) && name.iter().any(u8::is_ascii_alphabetic);
    (name.starts_with(b"tmp") && name.len() >= 7)
        || name.starts_with(b"pytest-of-")
        || (mixed && name.len() >= 10 && !name.contains(&b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(text: &str, level: Level) -> String {
        let mut out = String::new();
        strip_into(&mut out, text, level);
        out
    }

    #[test]
    fn volatile_text_is_removed_from_outputs() {
        for (text, want) in [
            ("a  b\n\n c ", "a b c"),
            ("<Foo object at 0x7f3a9c01bd>", "<Foo object at <hex>>"),
            ("id 123e4567-e89b-12d3-a456-426614174000.", "id <id>."),
            ("2024-05-01T10:22:33.123Z start", "<time> start"),
            ("2024-05-01 10:22:33,123 INFO", "<time> INFO"),
            ("2024-05-01T10:22:33+02:00", "<time>"),
            ("on 2024-05-01 at", "on 2024-05-01 at"),
            ("at 10:22:33 ok", "at <time> ok"),
            ("departs 10:22", "departs 10:22"),
            ("3 passed in 0.12s", "3 passed in <span>"),
            ("took 12 ms, 1.5 seconds", "took <span>, <span>"),
            ("12 steps", "12 steps"),
            ("pid 4312 port=8123", "pid # port=#"),
            ("http://localhost:54321/x 127.0.0.1:9001", "http://localhost:#/x 127.0.0.1:#"),
            ("a.py:1234: x", "a.py:1234: x"),
            ("/tmp/tmpx8d_3k/out.txt", "/tmp/~/out.txt"),
            ("/tmp/repro.py", "/tmp/repro.py"),
            ("/var/folders/ab/cd/T/x", "/tmp/~/cd/T/x"),
            ("commit 3f2a9c01bd44e1aa", "commit <id>"),
            ("call_a1B2c3D4e5F6g7H8", "<id>"),
            ("HAT052 XAZ3C0", "HAT052 XAZ3C0"),
            ("1718000000", "#"),
            ("\u{1b}[31mred\u{1b}[0m é", "red é"),
        ] {
            assert_eq!(strip(text, Level::Answer), want, "{text:?}");
        }
    }

    #[test]
    fn each_level_removes_more() {
        let text = "if x:\n\n    y  = 'a1' # 12";
        assert_eq!(strip(text, Level::Lines), "if x:\n    y = 'a1' # 12");
        assert_eq!(strip(text, Level::Spacing), "if x: y = 'a1' # 12");
        assert_eq!(strip(text, Level::Error), "if x: y = 'a1' # #");
        assert_eq!(strip(text, Level::Class), "if x: y = <q> # #");
        assert_eq!(strip("can't open \"a b\"", Level::Class), "can't open <q>");
        assert_eq!(strip("pick 2024-05-20 10:00:00", Level::Spacing), "pick 2024-05-20 10:00:00");
    }

    #[test]
    fn colour_codes_are_removed() {
        assert_eq!(without_escapes("\u{1b}[1;31mE\u{1b}[0m x\u{1b}"), "E x");
        assert_eq!(without_escapes("\u{1b}é"), "é");
    }
}
