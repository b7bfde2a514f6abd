//! Signature of a failure: its text without parts that differ from run to run.
//!
//! Temporary paths, UUIDs, addresses, process ids, times and long numbers are replaced by a mark, one type after the
//! other, so that a repeated failure compares equal.

use std::borrow::Cow;

use crate::analysis::text::{is_digit, is_space, is_word, prefix, run_len, trim};

/// Replacement of volatile text.
const MARK: char = '∎';
/// Maximum length of a signature.
const SIGNATURE_CHARS_MAX: usize = 200;

/// Returns the signature of a failing observation.
pub(super) fn signature(observation: &str) -> String {
    // Volatile text extends at most into the next word, so the text before the last word of a prefix that ends in white
    // space is cleaned like the whole. The first prefix is usually long enough.
    let mut len = 2 * SIGNATURE_CHARS_MAX;
    while let Some(cut) = next_space(observation, len) {
        let cleaned = clean(&observation[..cut]);
        let sure = trim(&cleaned);
        let sure = sure.rfind(is_space).map_or("", |last| &sure[..last]);
        let signature = prefix(sure, SIGNATURE_CHARS_MAX);
        if signature.len() < sure.len() {
            return signature.to_owned();
        }
        len = 2 * cut;
    }
    prefix(trim(&clean(observation)), SIGNATURE_CHARS_MAX).to_owned()
}

/// Returns the position of the first white space at or after `from`.
fn next_space(text: &str, from: usize) -> Option<usize> {
    let from = text.ceil_char_boundary(from);
    text[from..].find(is_space).map(|at| from + at)
}

/// Replaces all volatile text, one type after the other.
fn clean(text: &str) -> Cow<'_, str> {
    let mut clean = Cow::Borrowed(text);
    // A mark never makes other text volatile, so types that the text cannot contain are skipped.
    let possible = possible(text);
    for kind in KINDS.iter().zip(possible).filter_map(|(kind, possible)| possible.then_some(kind)) {
        if let Some(replaced) = replace(&clean, *kind) {
            clean = Cow::Owned(replaced);
        }
    }
    clean
}

/// Returns the length of the volatile text at the start of `rest`, which follows the character `before`.
type Volatile = fn(rest: &str, before: Option<char>) -> Option<usize>;

const KINDS: [Volatile; 6] = [temporary_path, uuid, address, process_id, timestamp, long_number];

/// Returns the types that a text may contain: a cheap check that errs on the side of true, because most texts contain
/// none.
fn possible(text: &str) -> [bool; KINDS.len()] {
    if !text.is_ascii() {
        return [true; KINDS.len()]; // Digits of other scripts count too.
    }
    let bytes = text.as_bytes();
    let mut possible = [false; KINDS.len()];
    let [temporary_path, uuid, address, process_id, timestamp, long_number] = &mut possible;
    let mut in_word = false;
    for (at, byte) in bytes.iter().enumerate() {
        let ahead = |by: usize| bytes.get(at + by).copied().unwrap_or(b' ');
        if matches!(byte, b'/' | b'C') {
            *temporary_path |= temporary_root(&text[at..]).is_some();
        }
        let begins_word = !in_word;
        in_word = byte.is_ascii_alphanumeric() || *byte == b'_';
        if !(begins_word && in_word) {
            continue;
        }
        *uuid |= ahead(8) == b'-';
        *process_id |= matches!(byte, b'p' | b'P') && matches!(ahead(1), b'i' | b'I');
        if byte.is_ascii_digit() {
            *address |= *byte == b'0' && matches!(ahead(1), b'x' | b'X');
            *timestamp |= ahead(4) == b'-';
            *long_number |= ahead(9).is_ascii_digit();
        }
    }
    possible
}

/// Replaces one type; `None` if there is nothing to replace.
fn replace(text: &str, volatile: Volatile) -> Option<String> {
    let mut clean = String::new();
    let mut kept = 0;
    let mut at = 0;
    let mut before = None;
    while let Some(c) = text[at..].chars().next() {
        let found = volatile(&text[at..], before);
        if found.is_some() {
            clean.push_str(&text[kept..at]);
            clean.push(MARK);
        }
        at += found.unwrap_or(c.len_utf8());
        before = text[..at].chars().next_back();
        if found.is_some() {
            kept = at;
        }
    }
    (kept > 0).then(|| clean + &text[kept..])
}

fn temporary_path(rest: &str, _: Option<char>) -> Option<usize> {
    let root = temporary_root(rest)?.len();
    Some(root + run_len(&rest[root..], |c| !is_space(c)))
}

fn temporary_root(rest: &str) -> Option<&'static str> {
    ["/tmp/", "C:\\Users\\", "/var/folders/"].into_iter().find(|root| rest.starts_with(root))
}

fn uuid(rest: &str, before: Option<char>) -> Option<usize> {
    let len = fixed_len(rest, before, "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh")?;
    ends_word(rest, len).then_some(len)
}

fn address(rest: &str, before: Option<char>) -> Option<usize> {
    let prefix = fixed_len(rest, before, "0x")?;
    let digits = run_len(&rest[prefix..], |c| c.is_ascii_hexdigit());
    (digits > 0 && ends_word(rest, prefix + digits)).then_some(prefix + digits)
}

fn process_id(rest: &str, before: Option<char>) -> Option<usize> {
    let prefix = fixed_len(rest, before, "pid=")?;
    let digits = run_len(&rest[prefix..], is_digit);
    (digits > 0 && ends_word(rest, prefix + digits)).then_some(prefix + digits)
}

fn timestamp(rest: &str, before: Option<char>) -> Option<usize> {
    let len = fixed_len(rest, before, "dddd-dd-dd dd:dd:dd")?;
    Some(len + run_len(&rest[len..], |c| !is_space(c)))
}

fn long_number(rest: &str, before: Option<char>) -> Option<usize> {
    if before.is_some_and(is_word) {
        return None;
    }
    let len = run_len(rest, is_digit);
    (rest[..len].chars().take(10).count() == 10 && ends_word(rest, len)).then_some(len)
}

/// Returns the length of a match at the start of a word: `h` is a hexadecimal digit, `d` any digit in a shape of
/// digits, and the letters of a prefix match in any case.
fn fixed_len(rest: &str, before: Option<char>, shape: &str) -> Option<usize> {
    if before.is_some_and(is_word) {
        return None;
    }
    let digits = shape.starts_with("dd");
    let mut found = rest.chars();
    for want in shape.chars() {
        let c = found.next()?;
        let fits = match want {
            'h' => c.is_ascii_hexdigit(),
            'd' if digits => is_digit(c),
            ' ' => matches!(c, ' ' | 'T'),
            '=' => matches!(c, '=' | ':' | ' '),
            'i' => matches!(c, 'i' | 'I' | 'İ' | 'ı'), // As in a case-insensitive match.
            other => c.eq_ignore_ascii_case(&other),
        };
        if !fits {
            return None;
        }
    }
    Some(rest.len() - found.as_str().len())
}

fn ends_word(rest: &str, len: usize) -> bool {
    !rest[len..].chars().next().is_some_and(is_word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn volatile_parts_are_replaced() {
        let cases = [
            ("/tmp/abc/x.py fail", "∎ fail"),
            ("id 123e4567-E89b-12d3-a456-426614174000 z", "id ∎ z"),
            (
                "id 123e4567-e89b-12d3-a456-426614174f000",
                "id 123e4567-e89b-12d3-a456-426614174f000",
            ),
            ("0xDEADBEEF, 0xfg, a0x1", "∎, 0xfg, a0x1"),
            ("pid=123 pid: 4 pid 5 PID 7 rapid 3", "∎ pid: 4 ∎ ∎ rapid 3"),
            ("2024-01-02T03:04:05.678Z end", "∎ end"),
            ("1234567890 123456789 x1234567890", "∎ 123456789 x1234567890"),
            ("C:\\Users\\bob\\f.py", "∎"),
            ("  \u{1c}kept\u{1c} ", "kept"),
            ("١٢٣٤٥٦٧٨٩٠", "∎"),
            ("", ""),
        ];
        for (observation, expected) in cases {
            assert_eq!(signature(observation), expected, "{observation:?}");
        }
        assert_eq!(signature(&"é".repeat(500)).chars().count(), SIGNATURE_CHARS_MAX);
    }

    /// Applies every type at every character, one after the other over the whole text.
    fn plainly(observation: &str) -> String {
        let mut text = observation.to_owned();
        for kind in &KINDS {
            let mut clean = String::new();
            let mut at = 0;
            while let Some(c) = text[at..].chars().next() {
                let found = kind(&text[at..], text[..at].chars().next_back());
                clean.push(if found.is_some() { MARK } else { c });
                at += found.unwrap_or(c.len_utf8());
            }
            text = clean;
        }
        prefix(trim(&text), SIGNATURE_CHARS_MAX).to_owned()
    }

    fn volatile() -> impl Strategy<Value = String> {
        #[rustfmt::skip]
        const PIECES: &[&str] = &[
            " ", " ", " ", "  ", "\n", "\u{1c}", "\u{a0}", "-", "é", "٣", "a", "0", "pid", "PID=", "pİd:",
            "pid 5", "pid 2024-01-02 03:04:05", "/tmp/", "C:\\Users\\b", "/var/folders/q", "0x1f", "0X",
            "2024-01-02", "T03:04:05", " 03:04:05.6Z", "1234567890", "١٢٣٤٥٦٧٨٩٠",
            "123e4567-e89b-12d3-a456-426614174000", "lorem ipsum dolor", "error in module ",
        ];
        let text = prop::collection::vec(prop::sample::select(PIECES), 0..120);
        // Long fillers, so that prefixes end anywhere.
        (text, 0..700_usize, prop::sample::select(&["x", " ", "é", "/tmp/a", "word "][..]))
            .prop_map(|(all, times, filler)| filler.repeat(times) + &all.concat())
    }

    proptest! {
        #[test]
        fn a_signature_of_a_prefix_equals_that_of_the_whole(text in volatile()) {
            prop_assert_eq!(signature(&text), plainly(&text));
        }
    }
}
