//! The words that count, and one pass over a text that counts them.
//!
//! The lists are fixed by the reference (see `docs/decisions/0002-bit-for-bit.md`): they are matched
//! as substrings of the lower-cased text, so `await` counts as `wait`. That is a known weakness of
//! the first generation; changing it would change every documented score.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::text::{is_space, is_word, searchable, word_count};

/// Words of doubt. The difficulty score knows the first [`HEDGES_IN_SCORE`], the `hedge` monitor all.
const HEDGES: [&str; 15] = [
    "maybe",
    "perhaps",
    "possibly",
    "might",
    "could",
    "not sure",
    "uncertain",
    "i think",
    "probably",
    "actually",
    "wait",
    "hmm",
    "reconsider",
    "let me think",
    "on second thought",
];
const HEDGES_IN_SCORE: usize = 13;

/// Words of trouble in a thought, for the difficulty score. "failed" counts twice, as "fail" too.
const TROUBLES: [&str; 10] = [
    "error",
    "exception",
    "traceback",
    "fail",
    "failed",
    "crash",
    "bug",
    "broken",
    "issue",
    "problem",
];

/// No phrase that takes something back does without one of these or of the last words of trouble
/// (see [`RETRACTIONS`]), so most thoughts need no closer look.
const RETRACTION_HINTS: [&str; 4] = ["wrong", "mind", "disregard", "fix"];

/// An observation with one of these looks like a failure.
const FAILURES: [&str; 7] =
    ["error", "exception", "traceback", "failed", "not found", "assertion", "invalid"];

/// An observation with one of these looks like the output of a test run.
const TEST_MARKS: [&str; 3] = ["assertionerror", "failed ", "failures="];

/// An observation that names a test this early is one.
const TEST_NAMED_WITHIN_CHARS: usize = 60;

static THOUGHT: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| automaton(HEDGES.iter().chain(&TROUBLES).chain(&RETRACTION_HINTS)));
static OBSERVATION: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| automaton(FAILURES.iter().chain(&TEST_MARKS)));

/// `None` cannot happen for these short lists; readers then see no word at all instead of a panic.
fn automaton<'a>(words: impl Iterator<Item = &'a &'a str>) -> Option<AhoCorasick> {
    AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .ascii_case_insensitive(true)
        .build(words)
        .ok()
}

/// What one thought contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ThoughtWords {
    /// Words between white space.
    pub(crate) words: u32,
    /// How many of the score's words of doubt occur at least once.
    pub(crate) hedge_kinds: u32,
    /// How often any word of doubt occurs.
    pub(crate) hedges: u32,
    /// How many words of trouble occur at least once.
    pub(crate) trouble_kinds: u32,
    /// The phrase that takes something back, if there is one.
    pub(crate) retraction: Option<&'static str>,
}

impl ThoughtWords {
    pub(crate) fn of(thought: &str) -> Self {
        let mut found = Self { words: word_count(thought), ..Self::default() };
        let Some(automaton) = THOUGHT.as_ref() else { return found };
        let text = searchable(thought);
        let mut seen = 0_u32; // one bit a word of the three lists
        let mut ends = [0_usize; HEDGES.len()];
        for hit in automaton.find_overlapping_iter(text.as_ref()) {
            let word = hit.pattern().as_usize();
            seen |= 1 << word;
            // Occurrences of one word must not overlap: "reconsidereconsider" holds it once.
            if let Some(end) = ends.get_mut(word)
                && hit.start() >= *end
            {
                found.hedges += 1;
                *end = hit.end();
            }
        }
        let in_score = (1 << HEDGES_IN_SCORE) - 1;
        let troubles = (seen >> HEDGES.len()) & ((1 << TROUBLES.len()) - 1);
        found.hedge_kinds = (seen & in_score).count_ones();
        found.trouble_kinds = troubles.count_ones();
        let hinted = seen >> HEDGES.len() != 0;
        if hinted || thought.contains(['İ', 'ı', 'ſ']) {
            found.retraction = retraction(thought);
        }
        found
    }
}

/// What one observation looks like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ObservationLooks {
    /// Like a failure.
    pub(crate) failed: bool,
    /// Like the output of a test run.
    pub(crate) tested: bool,
}

impl ObservationLooks {
    pub(crate) fn of(observation: &str) -> Self {
        let Some(automaton) = OBSERVATION.as_ref() else { return Self::default() };
        let text = searchable(observation);
        let mut looks = Self { failed: false, tested: names_a_test_early(&text) };
        for hit in automaton.find_overlapping_iter(text.as_ref()) {
            let is_failure = hit.pattern().as_usize() < FAILURES.len();
            looks.failed |= is_failure;
            looks.tested |= !is_failure;
            if looks.failed && looks.tested {
                break;
            }
        }
        looks
    }
}

fn names_a_test_early(text: &str) -> bool {
    let early = crate::text::head(text, TEST_NAMED_WITHIN_CHARS);
    contains_ignoring_ascii_case(early, "test")
}

/// Whether `name` holds `part`; `part` is ASCII lower case.
pub(crate) fn contains_ignoring_ascii_case(name: &str, part: &str) -> bool {
    name.as_bytes().windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}

/// Phrases that take something back, as sequences of whole words with only white space between.
///
/// `/` separates words that may stand in the same place.
const RETRACTIONS: [(&str, &[&str]); 6] = [
    ("the bug/issue/problem/fix is not/actually", &["bug/issue/problem/fix", "is", "not/actually"]),
    ("I was wrong", &["i", "was", "wrong"]),
    ("never mind", &["never", "mind"]),
    ("nevermind", &["nevermind"]),
    ("disregard that", &["disregard", "that"]),
    ("disregard my last", &["disregard", "my", "last"]),
];

/// The longest sequence above.
const RETRACTION_WORDS_MAX: usize = 3;

/// Finds the first phrase that takes something back.
fn retraction(thought: &str) -> Option<&'static str> {
    // The last words in a row; anything but white space between two words empties the row.
    let mut row = [""; RETRACTION_WORDS_MAX];
    let mut len = 0_usize;
    let mut rest = thought;
    while let Some(start) = rest.find(is_word) {
        if len > 0 && !rest[..start].chars().all(is_space) {
            len = 0;
        }
        let word_len = rest[start..].find(|c| !is_word(c)).unwrap_or(rest.len() - start);
        if len == RETRACTION_WORDS_MAX {
            row.rotate_left(1);
            len -= 1;
        }
        row[len] = &rest[start..start + word_len];
        len += 1;
        if let Some(phrase) = ends_in_retraction(&row[..len]) {
            return Some(phrase);
        }
        rest = &rest[start + word_len..];
    }
    None
}

fn ends_in_retraction(row: &[&str]) -> Option<&'static str> {
    RETRACTIONS.iter().find_map(|(phrase, words)| {
        let tail = row.len().checked_sub(words.len()).and_then(|at| row.get(at..))?;
        // From the last word back: it is the rarest, so most rows fail at once.
        let all = tail.iter().rev().zip(words.iter().rev());
        let all = { all }.all(|(word, any)| any.split('/').any(|one| equal_folded(word, one)));
        all.then_some(*phrase)
    })
}

/// Whether a word equals an ASCII one in any case. Three letters beyond ASCII fold into it: the
/// two Turkish i's and the long s. (A Kelvin sign would too, but no word here has a k.)
fn equal_folded(word: &str, ascii: &str) -> bool {
    let fold = |c: char| match c {
        'İ' | 'ı' => 'i',
        'ſ' => 's',
        other => other.to_ascii_lowercase(),
    };
    word.chars().map(fold).eq(ascii.chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thought_is_counted_in_one_pass() {
        let cases = [
            // (thought, hedge kinds, hedges, trouble kinds)
            ("", 0, 0, 0),
            ("Maybe, MAYBE it failed", 1, 2, 2),
            ("await the tissue", 1, 1, 1),
            ("reconsidereconsider", 1, 1, 0),
            ("On second thought, let me think", 0, 2, 0),
            ("I thinK so", 1, 1, 0),
        ];
        for (thought, hedge_kinds, hedges, trouble_kinds) in cases {
            let found = ThoughtWords::of(thought);
            assert_eq!(
                (found.hedge_kinds, found.hedges, found.trouble_kinds),
                (hedge_kinds, hedges, trouble_kinds),
                "{thought:?}"
            );
        }
    }

    #[test]
    fn retractions_are_whole_words_in_a_row() {
        let cases = [
            ("I was wrong about it", true),
            ("i\n was  wrong", true),
            ("I was, wrong", false),
            ("Hawaii was wrong", false),
            ("never mind", true),
            ("NEVERMIND.", true),
            ("never-mind", false),
            ("nevermindful", false),
            ("the bug is not here", true),
            ("problem is actually", true),
            ("debug is not on", false),
            ("the fix is notable", false),
            ("please disregard my last note", true),
            ("disregard my note", false),
            ("ı was wrong", true),
            ("dİſregard that", true),
            ("", false),
        ];
        for (thought, expected) in cases {
            assert_eq!(retraction(thought).is_some(), expected, "{thought:?}");
        }
    }

    #[test]
    fn observations_look_failed_or_tested() {
        let cases = [
            ("", false, false),
            ("all good", false, false),
            ("File not FOUND", true, false),
            ("running test_a ... ok", false, true),
            ("FAILED tests/a.py", true, true),
            ("failures=2", false, true),
            ("AssertionError", true, true),
            (&format!("{}test", "x".repeat(56)), false, true),
            (&format!("{}test", "x".repeat(57)), false, false),
        ];
        for (observation, failed, tested) in cases {
            assert_eq!(
                ObservationLooks::of(observation),
                ObservationLooks { failed, tested },
                "{observation:?}"
            );
        }
    }
}
