//! The distinct names in a text, and how many of them are known in the run.
//!
//! A *coined* name (with a digit, an underscore or an inner capital, such as an identifier, an id or a file) nearly
//! always comes from somewhere. An ordinary word does not, so a coined name counts three times as much.

use crate::analysis::recency_filter::RecencyFilter;
use crate::analysis::text::{FNV1A_START, byte_table, fnv1a_with};

/// Weight of an ordinary word; that of a coined name is 1.
const PLAIN: f64 = 1.0 / 3.0;
/// Maximum number of names of a task.
const TASK_NAMES_MAX: usize = 1_000;

/// The names that are known in a run.
#[derive(Debug, Default)]
pub(crate) struct KnownIdentifiers {
    all: RecencyFilter,
    /// Names in the task and in later user messages, sorted.
    requested: Vec<u64>,
}

impl KnownIdentifiers {
    /// Adds the names of the task or of a user message.
    pub(crate) fn add_requested(&mut self, text: &str) {
        let mut seen = StepSet::default();
        each_name(text, |name| {
            if !is_mention(text, name) || !seen.insert(name.hash) {
                return;
            }
            self.all.insert(name.hash);
            if let Err(place) = self.requested.binary_search(&name.hash)
                && self.requested.len() < TASK_NAMES_MAX
            {
                self.requested.insert(place, name.hash);
            }
        });
    }

    pub(crate) fn add(&mut self, hashes: &[u64]) {
        for hash in hashes {
            self.all.insert(*hash);
        }
    }

    /// Adds all quarantined names; `set_aside` is empty afterwards.
    pub(crate) fn add_all(&mut self, set_aside: &mut RecencyFilter) {
        self.all.merge(set_aside);
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.all.heap_bytes() + self.requested.capacity() * size_of::<u64>()
    }
}

/// Counts of the names in a text.
#[derive(Debug, Default)]
pub(crate) struct Mentions {
    /// Hashes of the distinct names.
    pub(crate) hashes: Vec<u64>,
    /// Weight of the known and of the unknown names.
    known: f64,
    pub(crate) unknown: f64,
    /// Number of names from the task or a user message.
    pub(crate) requested: u32,
    /// Number of known and of unknown coined names.
    coined_known: u32,
    coined_unknown: u32,
}

impl Mentions {
    /// Counts the names of a text, without those that are in `seen` already.
    pub(crate) fn of(text: &str, known: &KnownIdentifiers, seen: &mut StepSet) -> Self {
        let mut mentions = Self::default();
        each_name(text, |name| {
            if !is_mention(text, name) || !seen.insert(name.hash) {
                return;
            }
            let coined =
                name.has_digit || is_coined(&text.as_bytes()[name.starts_at..name.ends_at]);
            let weight = if coined { 1.0 } else { PLAIN };
            if known.all.contains(name.hash) {
                mentions.known += weight;
                mentions.coined_known += u32::from(coined);
                mentions.requested += u32::from(known.requested.binary_search(&name.hash).is_ok());
            } else {
                mentions.unknown += weight;
                mentions.coined_unknown += u32::from(coined);
            }
            mentions.hashes.push(name.hash);
        });
        mentions
    }

    /// Reports whether the text uses known names and coins none.
    pub(crate) fn is_derived(&self) -> bool {
        self.coined_unknown == 0 && (self.coined_known > 0 || self.known > self.unknown)
    }

    /// Returns the weighted share of unknown names, from 0 to below 1.
    pub(crate) fn unknown_share(&self) -> f64 {
        self.unknown / (self.unknown + self.known + 1.0)
    }
}

/// Names of one step, as a small Bloom filter: two names may be taken for one.
pub(crate) struct StepSet([u64; 128]);

impl Default for StepSet {
    fn default() -> Self {
        Self([0; 128])
    }
}

impl StepSet {
    fn insert(&mut self, hash: u64) -> bool {
        let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51; // 13 bits
        let (word, bit) = (usize::try_from(mixed / 64).unwrap_or(0), 1_u64 << (mixed % 64));
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }
}

/// Excludes numbers with a unit, keys of an object, and the first word of a command.
fn is_mention(text: &str, name: Name) -> bool {
    let bytes = text.as_bytes();
    let is_number = name.ends_at - name.starts_at < 5 && bytes[name.starts_at].is_ascii_digit();
    !is_number && !is_of_tool(&bytes[..name.starts_at], &bytes[name.ends_at..])
}

/// Reports whether a name is a quoted key, or follows a pipe or `&`.
fn is_of_tool(before: &[u8], after: &[u8]) -> bool {
    let is_quoted = matches!(before, [.., b'"' | b'\'']);
    let is_command = matches!(before, [.., b'|' | b'&', b' ']);
    is_command || (is_quoted && ends_key(after))
}

/// Reports whether a closing quote and a colon follow.
fn ends_key(after: &[u8]) -> bool {
    let after = after.strip_prefix(b"\\").unwrap_or(after);
    matches!(after, [b'"' | b'\'', b':', ..] | [b'"' | b'\'', b' ', b':', ..])
}

/// Reports whether a word contains an inner underscore, or a capital after a lower-case letter.
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
    /// Hash of the name in lower case.
    pub(crate) hash: u64,
    /// Byte range of the name in the text.
    pub(crate) starts_at: usize,
    pub(crate) ends_at: usize,
    /// The name contains a digit.
    pub(crate) has_digit: bool,
}

/// Reports every name in a text: words of at least four characters, and shorter ones with a digit. Ordinary words are
/// included; a run repeats those, so they have little effect.
pub(crate) fn each_name(text: &str, mut found: impl FnMut(Name)) {
    let (mut hash, mut starts_at, mut digits) = (FNV1A_START, 0, 0);
    for ends_at in 0..=text.len() {
        // The end of the text ends the last word.
        let byte = text.as_bytes().get(ends_at).copied().unwrap_or(b' ');
        let lower = NAME_BYTES[usize::from(byte)];
        if lower != 0 {
            hash = fnv1a_with(hash, lower);
            digits += usize::from(byte.is_ascii_digit());
            continue;
        }
        let len = ends_at - starts_at;
        if len >= 3 && (len >= 4 || digits > 0) && digits < len {
            found(Name { hash, starts_at, ends_at, has_digit: digits > 0 });
        }
        (hash, starts_at, digits) = (FNV1A_START, ends_at + 1, 0);
    }
}

/// Lower-case form of the bytes of names, 0 for all others.
static NAME_BYTES: [u8; 256] = byte_table!(0, |byte| {
    if byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii() {
        byte.to_ascii_lowercase()
    } else {
        0
    }
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::text::fnv1a;

    #[test]
    fn names_are_counted_once_with_weight_and_origin() {
        let mut known = KnownIdentifiers::default();
        known.add_requested("Repair the PartLoader of case_7");
        known.add(&Mentions::of("seen elsewhere", &known, &mut StepSet::default()).hashes);
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
        for (name, text, count, unknown, familiar, requested) in cases {
            let got = Mentions::of(text, &known, &mut StepSet::default());
            assert_eq!((got.hashes.len(), got.requested), (count, requested), "{name}");
            assert!((got.unknown - unknown).abs() < 1e-9, "{name}: {}", got.unknown);
            // The spelling of the first occurrence decides whether a name is coined.
            assert!((got.known - familiar).abs() < 0.7, "{name}: {}", got.known);
        }
    }

    #[test]
    fn names_in_the_argument_do_not_count_in_the_result() {
        let (known, mut seen) = (KnownIdentifiers::default(), StepSet::default());
        assert_eq!(Mentions::of("order W2378156", &known, &mut seen).hashes.len(), 2);
        let answer = Mentions::of("order W2378156 pending", &known, &mut seen);
        assert_eq!(answer.hashes.len(), 1);
    }

    #[test]
    fn quarantined_names_can_be_added() {
        let (mut known, mut aside) = (KnownIdentifiers::default(), RecencyFilter::default());
        for hash in Mentions::of("quarantined names", &known, &mut StepSet::default()).hashes {
            aside.insert(hash);
        }
        known.add_all(&mut aside);
        let again = Mentions::of("quarantined names", &known, &mut StepSet::default());
        assert!(again.unknown == 0.0 && again.unknown_share() == 0.0);
        assert!(
            Mentions::of("quarantined", &KnownIdentifiers::default(), &mut StepSet::default())
                .unknown
                > 0.0
        );
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
                    name.hash
                );
                found.push(name.hash);
            });
            let expected: Vec<u64> = names.iter().map(|name| fnv1a(name.bytes())).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
