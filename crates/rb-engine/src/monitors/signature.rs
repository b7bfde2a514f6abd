//! The signature of a failure: its text without what changes from run to run.
//!
//! Temporary paths, UUIDs, addresses, process ids, times and long numbers become one mark each, one kind
//! after the other, so that the same failure compares equal when it happens again.

use crate::text::{head, is_digit, is_space, is_word, trim};

/// Stands where something volatile was.
const MARK: char = '∎';
/// This much of the cleaned text is the signature.
const SIGNATURE_CHARS_MAX: usize = 200;

/// The cleaned beginning of a failing observation.
pub(super) fn signature(observation: &str) -> String {
    let mut text = observation.to_owned();
    for volatile in [temporary_path, uuid, address, process_id, timestamp, long_number] {
        text = replace(&text, volatile);
    }
    head(trim(&text), SIGNATURE_CHARS_MAX).to_owned()
}

/// Finds the volatile thing that begins `rest`, whose neighbour on the left is `before`; gives its length.
type Volatile = fn(rest: &str, before: Option<char>) -> Option<usize>;

fn replace(text: &str, volatile: Volatile) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut before = None;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let found = volatile(&text[at..], before);
        clean.push(if found.is_some() { MARK } else { c });
        let len = found.unwrap_or(c.len_utf8());
        before = text[..at + len].chars().next_back();
        at += len;
    }
    clean
}

fn temporary_path(rest: &str, _: Option<char>) -> Option<usize> {
    let root = ["/tmp/", "C:\\Users\\", "/var/folders/"]
        .into_iter()
        .find(|root| rest.starts_with(root))?;
    Some(root.len() + run_len(&rest[root.len()..], |c| !is_space(c)))
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

/// Matches a shape at the start of a word: `h` is a hex digit, `d` any digit inside a shape of digits, and
/// the letters of a prefix match in any case. Gives the length in bytes.
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
            'i' => matches!(c, 'i' | 'I' | 'İ' | 'ı'), // what a case-insensitive match takes for an i
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

/// The length in bytes of the run of matching characters at the start.
fn run_len(text: &str, matches: impl Fn(char) -> bool) -> usize {
    text.find(|c| !matches(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volatile_parts_become_marks() {
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
}
