//! The words that count, and one pass over a text that counts them.
//!
//! The lists are fixed by the reference (see `docs/decisions/0002-bit-for-bit.md`): they are matched
//! as substrings of the lower-cased text, so `await` counts as `wait`. That is a known weakness of
//! the first generation; changing it would change every documented score.

use crate::analysis::cues::{Cue, CueSet};
use crate::analysis::phrases::Hit;
use crate::analysis::text::{LOWERED_TO_ASCII, Lowercased, has_any, is_space, is_word, word_count};

/// What a word of a thought counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A word of doubt.
    Doubt,
    /// A word of doubt that only the `hedge` monitor knows, not the difficulty score.
    DoubtUnscored,
    /// A word of trouble, for the difficulty score.
    Trouble,
    /// A word of trouble that may belong to a phrase that takes something back.
    TroubleAndHint,
    /// Only for such phrases: none does without one of its hints (see [`RETRACTIONS`]).
    Hint,
}
use Role::{Doubt, DoubtUnscored, Hint, Trouble, TroubleAndHint};

/// The words that count in a thought. "failed" is one more word of trouble, besides "fail".
const WORDS: [(&str, Role); 28] = [
    ("hmm", Doubt),
    ("maybe", Doubt),
    ("perhaps", Doubt),
    ("possibly", Doubt),
    ("might", Doubt),
    ("could", Doubt),
    ("not sure", Doubt),
    ("uncertain", Doubt),
    ("i think", Doubt),
    ("probably", Doubt),
    ("actually", Doubt),
    ("wait", Doubt),
    ("reconsider", Doubt),
    ("let me think", DoubtUnscored),
    ("on second thought", DoubtUnscored),
    (FAIL, Trouble),
    ("error", Trouble),
    ("exception", Trouble),
    ("traceback", Trouble),
    ("crash", Trouble),
    ("broken", Trouble),
    ("bug", TroubleAndHint),
    ("issue", TroubleAndHint),
    ("problem", TroubleAndHint),
    ("fix", Hint),
    ("wrong", Hint),
    ("mind", Hint),
    ("disregard", Hint),
];

const FAIL: &str = "fail";

/// The same without what they count for.
pub(crate) const COUNTED: [&str; WORDS.len()] = {
    let mut words = [""; WORDS.len()];
    let mut at = 0;
    while at < words.len() {
        words[at] = WORDS[at].0;
        at += 1;
    }
    words
};

/// An observation with one of these looks like a failure.
pub(crate) const FAILURES: [&str; 7] =
    ["error", "exception", "traceback", "failed", "not found", "assertion", "invalid"];

/// An observation with one of these looks like the output of a test run.
pub(crate) const TEST_MARKS: [&str; 3] = ["assertionerror", "failed ", "failures="];

/// An observation that names a test this early is one.
const TEST_NAMED_WITHIN_CHARS: usize = 60;

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
    /// What else it says.
    pub(crate) heard: CueSet,
}

impl ThoughtWords {
    pub(crate) fn of(thought: &Lowercased<'_>) -> Self {
        let mut found = Self { words: word_count(thought.text()), ..Self::default() };
        let mut ends = [0_usize; WORDS.len()];
        let mut failed = false;
        let heard = CueSet::match_thought(thought, |hit| {
            found.count(hit, thought.lower(), &mut ends[hit.phrase], &mut failed);
        });
        if has_any(thought.text(), FOLDED_TO_ASCII) {
            found.retraction = retraction(thought.text());
        }
        Self { heard, ..found }
    }

    /// Counts a word that was found, the last of which ended at `end`; `failed` says whether "failed" was.
    fn count(&mut self, hit: Hit, text: &str, end: &mut usize, failed: &mut bool) {
        let (word, role) = WORDS[hit.phrase];
        let is_first = *end == 0;
        // Occurrences of one word must not overlap: "reconsidereconsider" holds it once.
        let counts = hit.start >= *end;
        if counts {
            *end = hit.end;
        }
        self.hedges += u32::from(counts && role.is_doubt());
        self.hedge_kinds += u32::from(is_first && role == Doubt);
        self.trouble_kinds += u32::from(is_first && role.is_trouble());
        if word == FAIL && !*failed && text[hit.end..].starts_with("ed") {
            *failed = true;
            self.trouble_kinds += 1;
        }
        if role.is_hint() && self.retraction.is_none() {
            self.retraction = retraction_at(text, hit.start, hit.end);
        }
    }
}

impl Role {
    fn is_doubt(self) -> bool {
        matches!(self, Doubt | DoubtUnscored)
    }

    fn is_trouble(self) -> bool {
        matches!(self, Trouble | TroubleAndHint)
    }

    fn is_hint(self) -> bool {
        matches!(self, Hint | TroubleAndHint)
    }
}

/// What one observation looks like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ObservationLooks {
    /// Like a failure.
    pub(crate) failed: bool,
    /// Like the output of a test run.
    pub(crate) tested: bool,
    /// What else it says.
    pub(crate) heard: CueSet,
}

impl ObservationLooks {
    pub(crate) fn of(observation: &str) -> Self {
        let folded = Lowercased::of(observation);
        let names_a_test =
            crate::analysis::text::prefix(folded.lower(), TEST_NAMED_WITHIN_CHARS).contains("test");
        let heard = CueSet::match_observation(&folded);
        let tested = names_a_test || heard.has(Cue::TestRun);
        Self { failed: heard.has(Cue::Failure), tested, heard }
    }
}

/// A phrase that takes something back: whole words in a row with only white space between.
struct Retraction {
    shown: &'static str,
    /// For each place, the words that may stand there.
    places: &'static [&'static [&'static str]],
    /// The place whose words are among those that are searched for.
    hint: usize,
}

/// No phrase lies inside another and each ends in a word of its own, so the first found by its hint ends first.
const RETRACTIONS: [Retraction; 6] = [
    Retraction {
        shown: "the bug/issue/problem/fix is not/actually",
        places: &[&["bug", "issue", "problem", "fix"], &["is"], &["not", "actually"]],
        hint: 0,
    },
    Retraction { shown: "I was wrong", places: &[&["i"], &["was"], &["wrong"]], hint: 2 },
    Retraction { shown: "never mind", places: &[&["never"], &["mind"]], hint: 1 },
    Retraction { shown: "nevermind", places: &[&["nevermind"]], hint: 0 },
    Retraction { shown: "disregard that", places: &[&["disregard"], &["that"]], hint: 0 },
    Retraction {
        shown: "disregard my last",
        places: &[&["disregard"], &["my"], &["last"]],
        hint: 0,
    },
];

/// The longest phrase above.
const RETRACTION_WORDS_MAX: usize = 3;

/// The phrase around a hint in lower-case text, if there is one.
fn retraction_at(text: &str, start: usize, end: usize) -> Option<&'static str> {
    let start = start - last_word(&text[..start]).len();
    let end = end + first_word(&text[end..]).len();
    let fits = |phrase: &&Retraction| {
        let (before, from) = phrase.places.split_at(phrase.hint);
        let Some((here, after)) = from.split_first() else { return false };
        here.contains(&&text[start..end])
            && before.iter().rev().try_fold(&text[..start], word_before).is_some()
            && after.iter().try_fold(&text[end..], word_after).is_some()
    };
    RETRACTIONS.iter().find(fits).map(|phrase| phrase.shown)
}

/// What is left of a text that ends in white space and, before it, in one of some words.
fn word_before<'t>(text: &'t str, any: &&[&str]) -> Option<&'t str> {
    let trimmed = text.trim_end_matches(is_space);
    let word = last_word(trimmed);
    let fits = trimmed.len() < text.len() && any.contains(&word);
    fits.then(|| &trimmed[..trimmed.len() - word.len()])
}

/// What is left of a text that begins with white space and, after it, with one of some words.
fn word_after<'t>(text: &'t str, any: &&[&str]) -> Option<&'t str> {
    let trimmed = text.trim_start_matches(is_space);
    let word = first_word(trimmed);
    (trimmed.len() < text.len() && any.contains(&word)).then(|| &trimmed[word.len()..])
}

fn first_word(text: &str) -> &str {
    &text[..text.len() - text.trim_start_matches(is_word).len()]
}

fn last_word(text: &str) -> &str {
    &text[text.trim_end_matches(is_word).len()..]
}

/// Letters beyond ASCII that fold into it, besides those that become ASCII in lower case. Text with any of them is
/// read word by word.
const FOLDED_TO_ASCII: [char; 4] = [LOWERED_TO_ASCII[0], LOWERED_TO_ASCII[1], 'ı', 'ſ'];

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
    RETRACTIONS.iter().find_map(|phrase| {
        let suffix = row.len().checked_sub(phrase.places.len()).and_then(|at| row.get(at..))?;
        let mut all = suffix.iter().zip(phrase.places);
        let fits = all.all(|(word, any)| any.iter().any(|one| equal_folded(word, one)));
        fits.then_some(phrase.shown)
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
    use proptest::prelude::*;

    use super::*;
    use crate::analysis::cues::SHORT_ANSWER_BYTES;

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
            let found = ThoughtWords::of(&Lowercased::of(thought));
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
            assert_eq!(
                ThoughtWords::of(&Lowercased::of(thought)).retraction,
                retraction(thought),
                "{thought:?}"
            );
        }
    }

    #[test]
    fn every_phrase_has_its_hints() {
        for phrase in &RETRACTIONS {
            for one in phrase.places[phrase.hint] {
                let mut hints = WORDS.iter().filter(|(_, role)| role.is_hint());
                assert!(hints.any(|(hint, _)| one.contains(hint)), "{one} is never looked for");
            }
        }
    }

    /// Pieces that make up texts full of words that count, whole, cut and run together.
    fn wordy() -> impl Strategy<Value = String> {
        let words = WORDS.iter().map(|(word, _)| word).chain(&FAILURES);
        let phrases = RETRACTIONS.iter().flat_map(|phrase| phrase.places.concat());
        let gaps = [
            " ", " ", " ", "\n", "\u{1c}", "\u{a0}", ",", "-", "", "é", "—", "ı", "ſ", "İ",
            "\u{212a}",
        ];
        let pieces: Vec<String> = words
            .chain(&TEST_MARKS)
            .copied()
            .chain(phrases)
            .chain(gaps)
            .chain(["ed", "never", "test", "x", "_"])
            .flat_map(|piece| [piece.to_owned(), piece.to_uppercase(), format!("{piece} ")])
            .collect();
        prop::collection::vec(prop::sample::select(pieces), 0..40).prop_map(|all| all.concat())
    }

    proptest! {
        #[test]
        fn words_are_found_as_one_by_one(text in wordy()) {
            let found = ThoughtWords::of(&Lowercased::of(&text));
            let lower = text.to_lowercase();
            let kinds = |words: &[&str]| words.iter().filter(|word| lower.contains(**word)).count();
            let of = |wanted: fn(Role) -> bool| -> Vec<&str> {
                WORDS.iter().filter(|(_, role)| wanted(*role)).map(|(word, _)| *word).collect()
            };
            let hedges: usize =
                of(Role::is_doubt).iter().map(|word| lower.matches(word).count()).sum();
            prop_assert_eq!(found.hedges as usize, hedges);
            prop_assert_eq!(found.hedge_kinds as usize, kinds(&of(|role| role == Doubt)));
            let troubles = kinds(&of(Role::is_trouble)) + kinds(&["failed"]);
            prop_assert_eq!(found.trouble_kinds as usize, troubles);
            prop_assert_eq!(found.retraction, retraction(&text));
            let early: String = lower.chars().take(TEST_NAMED_WITHIN_CHARS).collect();
            let failed = kinds(&FAILURES) > 0;
            let tested = early.contains("test") || kinds(&TEST_MARKS) > 0;
            for filler in [0, SHORT_ANSWER_BYTES] {
                // A long answer is heard in another way.
                let looks = ObservationLooks::of(&format!("{text}{}", ".".repeat(filler)));
                prop_assert_eq!((looks.failed, looks.tested), (failed, tested));
            }
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
            let looks = ObservationLooks::of(observation);
            assert_eq!((looks.failed, looks.tested), (failed, tested), "{observation:?}");
        }
    }
}
