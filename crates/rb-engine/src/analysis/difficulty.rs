//! How hard the last step looks: one number from the thought's wording.
//!
//! Four shares (doubt, length, trouble, things named) are weighted, added, and spread by a logistic
//! curve. The result lies between 0.047 and 0.953; an empty text is 0.5, the middle.

use crate::analysis::lexicon::ThoughtWords;
use crate::analysis::text::{Lowercased, is_word, run_len};

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
/// assert_eq!(rb_engine::analysis::difficulty::difficulty(""), 0.5);
/// assert!(rb_engine::analysis::difficulty::difficulty("ok") < 0.05);
/// ```
pub fn difficulty(thought: &str) -> f64 {
    from_words(thought, &ThoughtWords::of(&Lowercased::of(thought)))
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
///
/// Each of them holds a slash, a dot or a quote, so only the surroundings of those are looked at.
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

/// Where the next slash, dot or quote is.
fn next_mark(text: &str, from: usize) -> Option<usize> {
    const MARKS: [bool; 256] = {
        let mut marks = [false; 256];
        let mut rest: &[u8] = b"/\\.\"'`";
        while let [mark, more @ ..] = rest {
            marks[*mark as usize] = true;
            rest = more;
        }
        marks
    };
    let rest = text.as_bytes().get(from..)?;
    rest.iter().position(|byte| MARKS[usize::from(*byte)]).map(|at| from + at)
}

/// At least two parts that each begin with a slash. (A drive before them makes no difference to the count.)
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

/// Whether the dot follows a whole word that begins with an ASCII letter or an underscore and was not counted yet.
fn begins_dotted(thought: &str, after_last: usize, dot: usize) -> bool {
    let free = &thought[after_last..dot];
    let word = &free[free.trim_end_matches(is_word).len()..];
    let cut = word.len() == free.len() && thought[..after_last].ends_with(is_word);
    !cut && word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Parts that each begin with a dot.
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

/// At least three characters between two quotes, which need not be of one kind.
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
