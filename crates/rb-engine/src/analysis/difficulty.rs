//! Difficulty of a step, estimated from the wording of the thought.
//!
//! Four components (hedging, length, trouble words, named entities) are weighted, added, and mapped by a logistic curve
//! to the range from 0.047 to 0.953. An empty text gives 0.5.

use crate::analysis::lexicon::ThoughtWords;
use crate::analysis::text::{Lowercased, is_word, run_len};

const HEDGE_WEIGHT: f64 = 0.30;
const LENGTH_WEIGHT: f64 = 0.25;
const TROUBLE_WEIGHT: f64 = 0.25;
const ENTITY_WEIGHT: f64 = 0.20;

/// Number of words at which the length component is 1.
const WORDS_FULL: f64 = 500.0;
/// Number of distinct trouble words at which their component is 1.
const TROUBLES_FULL: f64 = 3.0;
/// Number of entities at which their component is 1.
const ENTITIES_FULL: f64 = 10.0;
/// Steepness of the logistic curve at its middle.
const STEEPNESS: f64 = 6.0;

/// Returns the difficulty of a thought, from 0 (easy) to 1 (hard).
///
/// ```
/// assert_eq!(rb_engine::analysis::difficulty::difficulty(""), 0.5);
/// assert!(rb_engine::analysis::difficulty::difficulty("ok") < 0.05);
/// ```
pub fn difficulty(thought: &str) -> f64 {
    from_words(thought, &ThoughtWords::of(&Lowercased::of(thought)))
}

/// Returns the difficulty of a thought whose words have been counted.
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

/// Counts paths, dotted names and quoted texts, from left to right and without overlap, up to [`ENTITIES_FULL`].
///
/// Each of them contains a slash, a dot or a quote, so only the surroundings of those are examined.
fn entity_count(thought: &str) -> u32 {
    let mut count = 0;
    let mut after_last = 0;
    let mut at = 0;
    while let Some(mark) = next_mark(thought, at) {
        let rest = &thought[mark..];
        let len = match rest.as_bytes().first() {
            Some(b'/' | b'\\') => path_len(rest),
            Some(b'.') if begins_dotted(thought, after_last, mark) => parts_len(rest),
            Some(b'.') | None => 0,
            Some(_) => quoted_len(rest),
        };
        at = mark + len.max(1);
        if len > 0 {
            after_last = at;
            count += 1;
            if f64::from(count) >= ENTITIES_FULL {
                return count;
            }
        }
    }
    count
}

/// Returns the position of the next slash, dot or quote.
fn next_mark(text: &str, from: usize) -> Option<usize> {
    let rest = text.as_bytes().get(from..)?;
    rest.iter()
        .position(|byte| matches!(byte, b'/' | b'\\' | b'.' | b'"' | b'\'' | b'`'))
        .map(|at| from + at)
}

/// Returns the length of a path: at least two parts that start with a slash. (A drive letter before it does not change
/// the count.)
fn path_len(rest: &str) -> usize {
    let mut at = 0;
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

/// Reports whether the dot follows a whole, uncounted word that starts with an ASCII letter or an underscore.
fn begins_dotted(thought: &str, after_last: usize, dot: usize) -> bool {
    let free = &thought[after_last..dot];
    let word = &free[free.trim_end_matches(is_word).len()..];
    let cut = word.len() == free.len() && thought[..after_last].ends_with(is_word);
    !cut && word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Returns the length of parts that start with a dot.
fn parts_len(rest: &str) -> usize {
    let mut at = 0;
    while rest.as_bytes().get(at) == Some(&b'.') {
        let part = run_len(&rest[at + 1..], is_word);
        if part == 0 {
            break;
        }
        at += 1 + part;
    }
    at
}

/// Returns the length of a quoted text: at least three characters between two quotes, which may be of different types.
fn quoted_len(rest: &str) -> usize {
    let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`');
    let Some(inside) = rest.as_bytes().iter().skip(1).position(is_quote) else { return 0 };
    if rest[1..=inside].chars().take(3).count() == 3 { inside + 2 } else { 0 }
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
            ("ab.c:/x/y", 2), // the drive's letter belongs to the name before
            ("c:/x/y.z", 1),
            ("/a/b.c.d", 1),
            ("'abc'def.g", 2),
            ("'abc'.g", 1),
            ("a.b.1.", 1),
            ("1a.b", 0),
            ("_.é", 1),
            ("..a.b", 1),
            ("\"unclosed a.b", 1),
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
