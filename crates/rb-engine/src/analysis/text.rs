//! Character classes of the reference implementation, and short labels for long names.
//!
//! The heuristic suite and the difficulty score are fixed by a Python reference, so "word", "space" and "digit" mean
//! the same as in Python. ASCII has a fast path, because nearly all agent text is ASCII.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// Computes a table over all bytes at compile time, for loops over every byte of a step.
macro_rules! byte_table {
    ($zero:expr, |$byte:ident| $value:expr) => {{
        let mut table = [$zero; 256];
        let mut $byte = 0_u8;
        loop {
            table[$byte as usize] = $value;
            if $byte == u8::MAX {
                break table;
            }
            $byte += 1;
        }
    }};
}
pub(crate) use byte_table;

/// Word bytes: letters, digits, the underscore, and everything that is not ASCII.
pub(crate) static WORD_BYTES: [bool; 256] =
    byte_table!(false, |byte| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii());

/// Reports whether a character is a letter, any kind of number, or the underscore. Combining marks are not word
/// characters.
pub fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    matches!(
        c.general_category_group(),
        GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number
    )
}

/// Reports whether a character is white space, including the four ASCII separators U+001C to U+001F.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Reports whether a character is a decimal digit of any script.
pub fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || (!c.is_ascii() && c.general_category() == GeneralCategory::DecimalNumber)
}

/// Counts the words between white space.
pub fn word_count(text: &str) -> u32 {
    if text.is_ascii() {
        return ascii_word_count(text.as_bytes());
    }
    let mut count = 0_u32;
    let mut in_word = false;
    for c in text.chars() {
        let space = is_space(c);
        count += u32::from(!space && !in_word);
        in_word = !space;
    }
    count
}

/// Counts the ends of white space. Branch-free sums over chunks, which the compiler vectorises; a chunk is short enough
/// for its sum to fit.
fn ascii_word_count(text: &[u8]) -> u32 {
    const CHUNK: usize = 192;
    let is_space =
        |byte: u8| (byte == b' ') | (byte.wrapping_sub(0x09) < 5) | (byte.wrapping_sub(0x1c) < 4);
    let begins = |(before, at): (&u8, &u8)| u8::from(is_space(*before) & !is_space(*at));
    let Some((first, rest)) = text.split_first() else { return 0 };
    let pairs = text.chunks(CHUNK).zip(rest.chunks(CHUNK));
    let later = pairs.map(|(before, at)| u32::from(before.iter().zip(at).map(begins).sum::<u8>()));
    later.sum::<u32>() + u32::from(!is_space(*first))
}

/// Trims white space at both ends.
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Reports whether a text contains only white space.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(is_space)
}

/// Converts to lower case for the search of ASCII words.
///
/// Only two letters beyond ASCII become ASCII in lower case. A text without them keeps its length and the position of
/// every byte.
pub(crate) fn searchable(text: &str) -> String {
    if has_any(text, LOWERED_TO_ASCII) { text.to_lowercase() } else { text.to_ascii_lowercase() }
}

/// A text and its lower-case form for searches.
pub(crate) struct Lowercased<'t> {
    text: &'t str,
    lower: String,
    /// Every byte has the same position in both.
    is_aligned: bool,
}

impl<'t> Lowercased<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        Self { text, lower: searchable(text), is_aligned: !has_any(text, LOWERED_TO_ASCII) }
    }

    /// The original text.
    pub(crate) fn text(&self) -> &'t str {
        self.text
    }

    /// The text in lower case.
    pub(crate) fn lower(&self) -> &str {
        &self.lower
    }

    /// Returns the length in bytes of the first `max` characters in lower case.
    pub(crate) fn lower_len(&self, max: usize) -> usize {
        let start = prefix(self.text, max);
        if self.is_aligned { start.len() } else { searchable(start).len() }
    }
}

/// The Turkish capital I and the Kelvin sign.
pub(crate) const LOWERED_TO_ASCII: [char; 2] = ['İ', '\u{212a}'];

/// Reports whether a text contains one of a few letters beyond ASCII.
pub(crate) fn has_any<const N: usize>(text: &str, letters: [char; N]) -> bool {
    !text.is_ascii() && letters.into_iter().any(|letter| text.contains(letter))
}

/// Reports whether a text contains one of a few words. For many words or long texts, see `phrases`.
pub(crate) fn any_in(words: &[&str], text: &str) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// Returns the length in bytes of the leading run of matching characters.
pub(crate) fn run_len(text: &str, matches: impl Fn(char) -> bool) -> usize {
    text.find(|c| !matches(c)).unwrap_or(text.len())
}

/// Returns the first `max` characters.
pub fn prefix(text: &str, max: usize) -> &str {
    // In ASCII no characters have to be counted.
    match text.as_bytes().get(..max) {
        None => text,
        Some(start) if start.is_ascii() => &text[..max],
        Some(_) => match text.char_indices().nth(max) {
            Some((end, _)) => &text[..end],
            None => text,
        },
    }
}

/// Returns the last `max` characters.
pub fn suffix(text: &str, max: usize) -> &str {
    let Some(start) = text.len().checked_sub(max) else { return text };
    if text.as_bytes().get(start..).is_some_and(<[u8]>::is_ascii) {
        return &text[start..];
    }
    let skip = text.chars().count().saturating_sub(max);
    match text.char_indices().nth(skip) {
        Some((start, _)) => &text[start..],
        None => "",
    }
}

/// Returns a 64-bit hash, for comparing texts that are too long to keep.
///
/// The hash may change with the version of the compiler. It is never stored: a run is rebuilt by replay.
pub(crate) fn fingerprint(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The FNV-1a hash of a short text, for sets of many small items.
pub(crate) fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(FNV1A_START, fnv1a_with)
}

pub(crate) const FNV1A_START: u64 = 0xcbf2_9ce4_8422_2325;

pub(crate) fn fnv1a_with(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// A name that is compared in full and shown shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    fingerprint: u64,
    shown: Box<str>,
}

impl Label {
    pub(crate) fn new(text: &str) -> Self {
        Self { fingerprint: fingerprint(text), shown: shown(text).into() }
    }

    /// Reports whether this is the name, even if it was shortened.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.fingerprint == fingerprint(text)
    }

    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.shown.len()
    }
}

/// Maximum length of a shown name.
pub(crate) const SHOWN_CHARS_MAX: usize = 80;

/// Shortens a name for evidence and advice: one line, no control characters.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'`';
    if text.len() <= SHOWN_CHARS_MAX && text.bytes().all(is_plain) {
        return text.into(); // Most names.
    }
    let mut line = String::new();
    let mut gap = false;
    for c in trim(prefix(text, 4 * SHOWN_CHARS_MAX)).chars() {
        if is_space(c) || c.is_control() {
            gap = true;
            continue;
        }
        if std::mem::take(&mut gap) && !line.is_empty() {
            line.push(' ');
        }
        // A backtick would end the quotation in the advice.
        line.push(if c == '`' { '\'' } else { c });
    }
    if line.chars().count() > SHOWN_CHARS_MAX {
        let mut cut = prefix(&line, SHOWN_CHARS_MAX - 1).to_owned();
        cut.push('…');
        return cut.into();
    }
    line.into()
}

/// Returns the start of a text on one line.
pub(crate) fn shown_line(text: &str, chars_max: usize) -> String {
    let mut line = String::with_capacity(2 * chars_max);
    let mut chars = 0;
    for word in text.split_whitespace() {
        if chars > chars_max {
            break; // The last gap does not count.
        }
        let word = shown(word);
        line.push_str(&word);
        line.push(' ');
        chars += word.chars().count() + 1;
    }
    line.pop(); // the last gap
    line.truncate(prefix(&line, chars_max).len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_classes_equal_the_reference() {
        let cases = [
            // (character, word, space, digit)
            ('a', true, false, false),
            ('_', true, false, false),
            ('-', false, false, false),
            ('7', true, false, true),
            ('\u{1c}', false, true, false),
            ('\u{a0}', false, true, false),
            ('é', true, false, false),
            ('½', true, false, false),
            ('²', true, false, false),
            ('٣', true, false, true),
            ('\u{301}', false, false, false), // a combining mark is no word character
            ('Ⓐ', false, false, false),       // a symbol, though Unicode calls it alphabetic
            ('字', true, false, false),
        ];
        for (c, word, space, digit) in cases {
            assert_eq!((is_word(c), is_space(c), is_digit(c)), (word, space, digit), "{c:?}");
        }
    }

    #[test]
    fn word_counts_equal_the_reference() {
        for (text, count) in [
            ("", 0),
            ("  ", 0),
            ("a b", 2),
            ("a\u{1c}b\n c ", 3),
            ("é\u{a0}b", 2),
            ("a\u{200b}b", 1),
            (&"word ".repeat(1_000), 1_000),
            (&" \tx".repeat(1_000), 1_000),
        ] {
            assert_eq!(word_count(text), count, "{text:?}");
        }
        for byte in 0..=0x7f_u8 {
            let text = format!("a{}b", char::from(byte));
            let words = text.split(is_space).filter(|word| !word.is_empty()).count();
            assert_eq!(word_count(&text) as usize, words, "{text:?}");
        }
    }

    #[test]
    fn only_two_letters_become_ascii_in_lower_case() {
        let becomes = |c: &char| !c.is_ascii() && c.to_lowercase().any(|lower| lower.is_ascii());
        let all: Vec<char> = ('\0'..=char::MAX).filter(becomes).collect();
        assert_eq!(all, LOWERED_TO_ASCII);
        assert_eq!(searchable("ÄB\u{212a}"), "äbk");
        assert_eq!(searchable("ÄB"), "Äb");
        for (text, lower, start) in
            [("ÄBC", "Äbc", "Äb"), ("İ\u{212a}B", "i\u{307}kb", "i\u{307}k")]
        {
            let lowercased = Lowercased::of(text);
            assert_eq!((lowercased.text(), lowercased.lower()), (text, lower));
            assert_eq!(&lowercased.lower()[..lowercased.lower_len(2)], start);
        }
    }

    #[test]
    fn labels_compare_full_names_and_show_short_ones() {
        let long = "x".repeat(200);
        let label = Label::new(&long);
        assert!(label.is(&long));
        assert!(!label.is(&"x".repeat(201)));
        assert_eq!(label.shown().chars().count(), SHOWN_CHARS_MAX);
        assert_eq!(shown("  a\n\tb`c\u{7} "), "a b'c");
    }

    #[test]
    fn prefix_and_suffix_count_characters() {
        assert_eq!(
            (prefix("añb", 2), suffix("añb", 2), prefix("a", 5), suffix("a", 5)),
            ("añ", "ñb", "a", "a")
        );
        assert_eq!(
            (prefix("ab", 2), suffix("ab", 2), prefix("abc", 2), suffix("abc", 2)),
            ("ab", "ab", "ab", "bc")
        );
        assert_eq!((suffix("éabc", 3), suffix("éabc", 4), prefix("abé", 2)), ("abc", "éabc", "ab"));
        assert_eq!((suffix("abc", 0), suffix("é", 0), prefix("é", 0)), ("", "", ""));
    }

    #[test]
    fn a_shown_line_is_a_prefix_of_the_shown_text() {
        for thought in ["", "  one\n two ", "\u{1} a \u{1}b` \u{1} é", "word of é 字 \u{2} four "]
        {
            for times in 1..60 {
                let thought = thought.repeat(times);
                let whole = thought.split_whitespace().map(shown).collect::<Vec<_>>().join(" ");
                assert_eq!(shown_line(&thought, 120), prefix(&whole, 120), "{thought:?}");
            }
        }
        for len in 100..130 {
            let thought = format!("{} {} more", "x".repeat(60), "y".repeat(len - 61));
            assert_eq!(shown_line(&thought, 120), prefix(&thought, 120));
        }
    }
}
