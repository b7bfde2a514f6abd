//! How hard the last step looks: one number from the thought's wording.
//!
//! Four shares (doubt, length, trouble, things named) are weighted, added, and spread by a logistic
//! curve. The result lies between 0.047 and 0.953; an empty text is 0.5, the middle.

use crate::lexicon::ThoughtWords;
use crate::text::is_word;

const HEDGE_WEIGHT: f64 = 0.30;
const LENGTH_WEIGHT: f64 = 0.25;
const TROUBLE_WEIGHT: f64 = 0.25;
const ENTITY_WEIGHT: f64 = 0.20;

/// This many words read as full length.
const WORDS_FULL: f64 = 500.0;
/// This many kinds of trouble words read as full trouble.
const TROUBLES_FULL: f64 = 3.0;
/// This many named things read as full.
const ENTITIES_FULL: f64 = 10.0;
/// How steeply the curve rises around its middle.
const STEEPNESS: f64 = 6.0;

/// The difficulty of one thought, from 0 (easy) to 1 (hard).
///
/// ```
/// assert_eq!(rb_engine::score::difficulty(""), 0.5);
/// assert!(rb_engine::score::difficulty("ok") < 0.05);
/// ```
pub fn difficulty(thought: &str) -> f64 {
    from_words(thought, &ThoughtWords::of(thought))
}

/// The same for a thought whose words are counted already.
pub(crate) fn from_words(thought: &str, found: &ThoughtWords) -> f64 {
    if thought.is_empty() {
        return 0.5;
    }
    let words = f64::from(found.words.max(1));
    let hedge = (f64::from(found.hedge_kinds) / (words * 0.05 + 1.0)).min(1.0);
    let length = (words / WORDS_FULL).min(1.0);
    let trouble = (f64::from(found.trouble_kinds) / TROUBLES_FULL).min(1.0);
    let entity = (f64::from(entity_count(thought)) / ENTITIES_FULL).min(1.0);
    let raw = HEDGE_WEIGHT * hedge
        + LENGTH_WEIGHT * length
        + TROUBLE_WEIGHT * trouble
        + ENTITY_WEIGHT * entity;
    1.0 / (1.0 + (-STEEPNESS * (raw - 0.5)).exp())
}

/// How many things a thought names: paths, dotted names, quoted texts, from left to right without
/// overlap. Counting stops where more would change nothing.
fn entity_count(thought: &str) -> u32 {
    let mut count = 0;
    let mut at = 0;
    let mut before = None;
    while let Some(c) = thought.get(at..).and_then(|rest| rest.chars().next()) {
        let len = entity_len(&thought[at..], before, c);
        if len > 0 {
            count += 1;
            if f64::from(count) >= ENTITIES_FULL {
                return count;
            }
        }
        let step = len.max(c.len_utf8());
        before = thought[..at + step].chars().next_back();
        at += step;
    }
    count
}

/// The length in bytes of the entity that begins `rest`, or 0.
fn entity_len(rest: &str, before: Option<char>, first: char) -> usize {
    let path = path_len(rest, first);
    if path > 0 {
        return path;
    }
    if (first.is_ascii_alphabetic() || first == '_') && !before.is_some_and(is_word) {
        return dotted_len(rest);
    }
    if is_quote(first) { quoted_len(rest) } else { 0 }
}

/// An optional drive, then at least two parts that each begin with a slash.
fn path_len(rest: &str, first: char) -> usize {
    let mut at = 0;
    if first.is_ascii_alphabetic() {
        if rest.as_bytes().get(1) != Some(&b':') {
            return 0;
        }
        at = 2;
    }
    let mut parts = 0;
    while matches!(rest.as_bytes().get(at), Some(b'/' | b'\\')) {
        let part = run_len(&rest[at + 1..], |c| is_word(c) || c == '.' || c == '-');
        if part == 0 {
            break;
        }
        at += 1 + part;
        parts += 1;
    }
    if parts >= 2 { at } else { 0 }
}

/// A word, then one or more parts that each begin with a dot.
fn dotted_len(rest: &str) -> usize {
    let mut at = run_len(rest, is_word);
    let mut parts = 0;
    while rest.as_bytes().get(at) == Some(&b'.') {
        let part = run_len(&rest[at + 1..], is_word);
        if part == 0 {
            break;
        }
        at += 1 + part;
        parts += 1;
    }
    if parts > 0 { at } else { 0 }
}

/// At least three characters between two quotes, which need not be of one kind.
fn quoted_len(rest: &str) -> usize {
    let inside = run_len(&rest[1..], |c| !is_quote(c));
    let closed = rest.len() > 1 + inside;
    if closed && rest[1..=inside].chars().take(3).count() == 3 { inside + 2 } else { 0 }
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`')
}

/// The length in bytes of the run of matching characters at the start.
fn run_len(text: &str, matches: impl Fn(char) -> bool) -> usize {
    text.find(|c| !matches(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_counted_left_to_right() {
        let cases = [
            ("", 0),
            ("plain words only", 0),
            ("src/main.rs", 1), // the dotted name; one slash is no path
            ("/usr/lib/x.so", 1),
            ("C:\\Users\\me", 1),
            ("see a.b and c.d.e.", 2),
            ("'ab' 'abc' \"x`", 1), // fewer than three characters between quotes are no name
            ("é.a", 0),             // a dotted name begins with an ASCII letter
            ("éa.b", 0),
            ("x /a/b /c", 1),
        ];
        for (text, count) in cases {
            assert_eq!(entity_count(text), count, "{text:?}");
        }
    }

    #[test]
    fn the_score_stays_in_its_range() {
        for text in ["", " ", "ok", &"maybe error fail bug a.b /x/y ".repeat(200)] {
            let score = difficulty(text);
            assert!((0.047..=0.953).contains(&score), "{text:?} {score}");
        }
    }
}
