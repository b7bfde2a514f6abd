//! The names that a text mentions, each once, and how many of them the run knows.
//!
//! A *coined* name (an identifier, an id, a file with a number: anything with a digit, an underscore or a capital inside)
//! is nearly always taken from somewhere; a plain word may be anybody's. So a coined name counts three times as much.

use std::borrow::Cow;

use crate::analysis::recency_filter::RecencyFilter;
use crate::analysis::text::{FNV1A_START, fnv1a_with};

/// Plain words weigh this much, coined names 1.
const PLAIN: f64 = 1.0 / 3.0;
/// So many names of one task are kept.
const TASK_NAMES_MAX: usize = 1_000;

/// What the run knows, and what of it was asked for.
#[derive(Debug, Default)]
pub(crate) struct KnownIdentifiers {
    all: RecencyFilter,
    /// The names of the task and of what the user asked for since, sorted.
    asked: Vec<u64>,
}

impl KnownIdentifiers {
    /// Somebody asks for this.
    pub(crate) fn ask(&mut self, text: &str) {
        let mut once = StepSet::default();
        each_name(text, |name| {
            if !is_mention(text, name) || !once.insert(name.print) {
                return;
            }
            self.all.insert(name.print);
            if let Err(place) = self.asked.binary_search(&name.print)
                && self.asked.len() < TASK_NAMES_MAX
            {
                self.asked.insert(place, name.print);
            }
        });
    }

    pub(crate) fn learn(&mut self, prints: &[u64]) {
        for print in prints {
            self.all.insert(*print);
        }
    }

    /// Learns everything that was set aside, which is empty afterwards.
    pub(crate) fn learn_all(&mut self, set_aside: &mut RecencyFilter) {
        self.all.merge(set_aside);
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.all.heap_bytes() + self.asked.capacity() * size_of::<u64>()
    }
}

/// The names of a text, counted.
#[derive(Debug, Default)]
pub(crate) struct Mentions {
    /// Every name, once.
    pub(crate) prints: Vec<u64>,
    /// The weight of the names that the run knows, and of the others.
    known: f64,
    pub(crate) unknown: f64,
    /// How many were asked for.
    pub(crate) asked: u32,
    /// How many coined ones the run knows, and how many not.
    coined_known: u32,
    coined_unknown: u32,
}

impl Mentions {
    /// Of a text whose names are these, without those that are in `once` already.
    pub(crate) fn of(
        text: &str,
        names: &[Name],
        known: &KnownIdentifiers,
        once: &mut StepSet,
    ) -> Self {
        let mut mentions = Self { prints: Vec::with_capacity(names.len()), ..Self::default() };
        for name in names.iter().filter(|name| is_mention(text, **name)) {
            if !once.insert(name.print) {
                continue;
            }
            let coined =
                name.has_digit || is_coined(&text.as_bytes()[name.starts_at..name.ends_at]);
            let weight = if coined { 1.0 } else { PLAIN };
            if known.all.contains(name.print) {
                mentions.known += weight;
                mentions.coined_known += u32::from(coined);
                mentions.asked += u32::from(known.asked.binary_search(&name.print).is_ok());
            } else {
                mentions.unknown += weight;
                mentions.coined_unknown += u32::from(coined);
            }
            mentions.prints.push(name.print);
        }
        mentions
    }

    /// Takes names from what is known, and coins none.
    pub(crate) fn is_derived(&self) -> bool {
        self.coined_unknown == 0 && (self.coined_known > 0 || self.known > self.unknown)
    }

    /// From 0, everything is known or nothing is named, towards 1.
    pub(crate) fn unknown_share(&self) -> f64 {
        self.unknown / (self.unknown + self.known + 1.0)
    }
}

/// Which names a step has mentioned: a few places, so that two names may be taken for one.
pub(crate) struct StepSet([u64; 128]);

impl Default for StepSet {
    fn default() -> Self {
        Self([0; 128])
    }
}

impl StepSet {
    fn insert(&mut self, print: u64) -> bool {
        let mixed = print.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51; // 13 bits
        let (word, bit) = (usize::try_from(mixed / 64).unwrap_or(0), 1_u64 << (mixed % 64));
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }
}

/// Numbers with a unit or an ending are no names. What belongs to the tool is none either: the keys of an object, the first
/// word of a command.
fn is_mention(text: &str, name: Name) -> bool {
    let bytes = text.as_bytes();
    let is_number = name.ends_at - name.starts_at < 5 && bytes[name.starts_at].is_ascii_digit();
    !is_number && !is_of_tool(&bytes[..name.starts_at], &bytes[name.ends_at..])
}

/// A key between quotation marks, or what follows a pipe or another command.
fn is_of_tool(before: &[u8], after: &[u8]) -> bool {
    let is_quoted = matches!(before, [.., b'"' | b'\'']);
    let is_command = matches!(before, [.., b'|' | b'&', b' ']);
    is_command || (is_quoted && ends_key(after))
}

/// A quotation mark and a colon follow.
fn ends_key(after: &[u8]) -> bool {
    let after = after.strip_prefix(b"\\").unwrap_or(after);
    matches!(after, [b'"' | b'\'', b':', ..] | [b'"' | b'\'', b' ', b':', ..])
}

/// An underscore inside, or a capital after a small letter.
fn is_coined(word: &[u8]) -> bool {
    let starts_at = word.iter().position(|byte| *byte != b'_').unwrap_or(0);
    let ends_at = word.iter().rposition(|byte| *byte != b'_').unwrap_or(0);
    word.get(starts_at..=ends_at).is_some_and(|inner| inner.contains(&b'_'))
        || word
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()))
}

/// A name in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name {
    /// Its fingerprint, whatever the case of its letters.
    pub(crate) print: u64,
    /// The bytes of the text in which it stands.
    pub(crate) starts_at: usize,
    pub(crate) ends_at: usize,
    /// There is a digit in it.
    pub(crate) has_digit: bool,
}

/// Calls back with every name in a text: words of at least four characters, and shorter ones with a digit. Plain words are
/// among them; a run repeats those, so they tell nothing either way.
///
/// Every text of every step comes through here, so it is one pass with one look into a table for each byte.
pub(crate) fn each_name(text: &str, mut found: impl FnMut(Name)) {
    let (mut print, mut starts_at, mut digits) = (FNV1A_START, 0_usize, 0_usize);
    // A blank at the end closes the last word.
    text.bytes().chain([b' ']).enumerate().for_each(|(at, byte)| {
        let small = IN_NAME[usize::from(byte)];
        if small != 0 {
            print = fnv1a_with(print, small);
            digits += usize::from(byte.is_ascii_digit());
            return;
        }
        let len = at - starts_at;
        if len >= 3 && (len >= 4 || digits > 0) && digits < len {
            found(Name { print, starts_at, ends_at: at, has_digit: digits > 0 });
        }
        (print, starts_at, digits) = (FNV1A_START, at + 1, 0);
    });
}

/// The names of the beginning of a text, out of all of its names. The last one may be cut off, which makes it another.
pub(crate) fn names_within<'n>(names: &'n [Name], beginning: &str) -> Cow<'n, [Name]> {
    let whole = names.partition_point(|name| name.ends_at <= beginning.len());
    let (within, rest) = names.split_at(whole);
    let Some(cut) = rest.first().and_then(|name| beginning.get(name.starts_at..)) else {
        return within.into();
    };
    let mut within = within.to_vec();
    let before = beginning.len() - cut.len();
    each_name(cut, |name| {
        let (starts_at, ends_at) = (before + name.starts_at, before + name.ends_at);
        within.push(Name { starts_at, ends_at, ..name });
    });
    within.into()
}

/// Bytes of names in lower case, and 0 for all others. Bytes beyond ASCII belong to words: no need to look closer.
const IN_NAME: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0_u8;
    loop {
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80 {
            table[byte as usize] = byte.to_ascii_lowercase();
        }
        if byte == u8::MAX {
            break table;
        }
        byte += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::text::fnv1a;

    fn mentions(text: &str, known: &KnownIdentifiers, once: &mut StepSet) -> Mentions {
        let mut names = Vec::new();
        each_name(text, |name| names.push(name));
        Mentions::of(text, &names, known, once)
    }

    #[test]
    fn names_are_counted_once_by_weight_and_by_who_asked() {
        let mut known = KnownIdentifiers::default();
        known.ask("Repair the PartLoader of case_7");
        known.learn(&mentions("seen elsewhere", &known, &mut StepSet::default()).prints);
        let cases = [
            ("nothing", "", 0, 0.0, 0.0, 0),
            ("numbers and short words are no names", "the 12345 of it", 0, 0.0, 0.0, 0),
            ("asked for", "partloader PartLoader repair", 2, 0.0, 1.0 + PLAIN, 2),
            ("seen, not asked for", "elsewhere", 1, 0.0, PLAIN, 0),
            ("unknown", "other_loader garden X1b", 3, 2.0 + PLAIN, 0.0, 0),
            (
                "keys belong to the tool",
                r#"{"order_id": "W237", "x\": 'kind': garden}"#,
                2,
                1.0 + PLAIN,
                0.0,
                0,
            ),
            (
                "line numbers and the first words of commands",
                "sed -n '10,20p' | less && make",
                0,
                0.0,
                0.0,
                0,
            ),
            ("underscores around a word coin nothing", "__main__", 1, PLAIN, 0.0, 0),
        ];
        for (name, text, count, unknown, familiar, asked) in cases {
            let got = mentions(text, &known, &mut StepSet::default());
            assert_eq!((got.prints.len(), got.asked), (count, asked), "{name}");
            assert!((got.unknown - unknown).abs() < 1e-9, "{name}: {}", got.unknown);
            // The spelling of the first occurrence decides what is coined.
            assert!((got.known - familiar).abs() < 0.7, "{name}: {}", got.known);
        }
    }

    #[test]
    fn what_the_question_named_is_not_counted_again_in_the_answer() {
        let (known, mut once) = (KnownIdentifiers::default(), StepSet::default());
        assert_eq!(mentions("order W2378156", &known, &mut once).prints.len(), 2);
        let answer = mentions("order W2378156 pending", &known, &mut once);
        assert_eq!(answer.prints.len(), 1);
    }

    #[test]
    fn what_was_set_aside_can_be_learned() {
        let (mut known, mut aside) = (KnownIdentifiers::default(), RecencyFilter::default());
        for print in mentions("quarantined names", &known, &mut StepSet::default()).prints {
            aside.insert(print);
        }
        known.learn_all(&mut aside);
        let again = mentions("quarantined names", &known, &mut StepSet::default());
        assert!(again.unknown == 0.0 && again.unknown_share() == 0.0);
        assert!(
            mentions("quarantined", &KnownIdentifiers::default(), &mut StepSet::default()).unknown
                > 0.0
        );
    }

    #[test]
    fn a_beginning_has_the_names_that_are_in_it() {
        let names_of = |text: &str| {
            let mut names = Vec::new();
            each_name(text, |name| names.push(name));
            names
        };
        let text = "ab1 12345 Word, get_user(größe) 12x34 last";
        let names = names_of(text);
        for len in (0..=text.len()).filter(|len| text.is_char_boundary(*len)) {
            let beginning = &text[..len];
            assert_eq!(*names_within(&names, beginning), names_of(beginning), "{beginning}");
        }
    }

    #[test]
    fn names_are_long_enough_and_not_numbers() {
        let cases: [(&str, &[&str]); 6] = [
            ("", &[]),
            ("a bc def", &[]),
            ("ab1 12345 Word", &["ab1", "word"]),
            ("get_user(a, Größe)", &["get_user", "größe"]),
            ("x\0long_name\nend.", &["long_name"]),
            ("last", &["last"]),
        ];
        for (text, names) in cases {
            let mut found = Vec::new();
            each_name(text, |name| {
                assert_eq!(
                    fnv1a(text[name.starts_at..name.ends_at].to_lowercase().bytes()),
                    name.print
                );
                found.push(name.print);
            });
            let expected: Vec<u64> = names.iter().map(|name| fnv1a(name.bytes())).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
