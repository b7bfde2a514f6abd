//! Word counts of thoughts and observations.
//!
//! The word lists are fixed by the reference (see `docs/decisions/0002-bit-for-bit.md`): they are matched as substrings
//! of the lower-case text, so `await` counts as `wait`. This known weakness of the first generation is kept, because a
//! change would alter every documented score.

use crate::analysis::phrases::{Cue, CueSet, FAIL, Hit, PHRASES};
use crate::analysis::text::{
    LOWERED_TO_ASCII, Lowercased, has_any, is_space, is_word, prefix, word_count,
};

/// An observation that contains "test" in its first characters is test output.
const TEST_NAMED_WITHIN_CHARS: usize = 60;

/// Word counts of a thought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ThoughtWords {
    /// Words between white space.
    pub(crate) words: u32,
    /// Number of distinct hedges, without those that the difficulty score does not count.
    pub(crate) hedge_kinds: u32,
    /// Number of occurrences of all hedges.
    pub(crate) hedges: u32,
    /// Number of distinct trouble words.
    pub(crate) trouble_kinds: u32,
    /// The first retraction.
    pub(crate) retraction: Option<&'static str>,
    /// All cues.
    pub(crate) cues: CueSet,
}

impl ThoughtWords {
    pub(crate) fn of(thought: &Lowercased<'_>) -> Self {
        let mut found = Self { words: word_count(thought.text()), ..Self::default() };
        let mut ends = [0_usize; PHRASES];
        let (mut has_failed, mut may_retract) = (false, false);
        let cues = CueSet::match_thought(thought, |hit| {
            may_retract |= may_be_in_retraction(hit, thought.lower());
            found.count(hit, thought.lower(), &mut ends[hit.number], &mut has_failed);
        });
        if may_retract || has_any(thought.text(), FOLDED_TO_ASCII) {
            found.retraction = retraction(thought.text());
        }
        Self { cues, ..found }
    }

    /// Counts one hit. `end` is the end of the last counted occurrence of the phrase; `has_failed` is set once "failed"
    /// was found.
    fn count(&mut self, hit: Hit, text: &str, end: &mut usize, has_failed: &mut bool) {
        let (is_first, is_separate) = (*end == 0, hit.start >= *end);
        // Occurrences of one word must not overlap: "reconsidereconsider" contains it once.
        if is_separate {
            *end = hit.end;
        }
        let is_doubt = matches!(hit.cue, Cue::Doubt | Cue::DoubtUnscored);
        self.hedges += u32::from(is_separate && is_doubt);
        self.hedge_kinds += u32::from(is_first && hit.cue == Cue::Doubt);
        self.trouble_kinds += u32::from(is_first && hit.cue == Cue::Trouble);
        if hit.phrase == FAIL && !*has_failed && text[hit.end..].starts_with("ed") {
            *has_failed = true;
            self.trouble_kinds += 1;
        }
    }
}

/// Reports whether a hit may be part of a retraction: a cheap check of the word next to it.
fn may_be_in_retraction(hit: Hit, text: &str) -> bool {
    let before = || text[..hit.start].trim_end_matches(is_space);
    match hit.phrase {
        "wrong" => before().ends_with("was"),
        "mind" => before().ends_with("never"),
        "disregard" => true,
        "bug" | "issue" | "problem" | "fix" => text[hit.end..]
            .trim_start_matches(is_space)
            .strip_prefix("is")
            .is_some_and(|rest| rest.starts_with(is_space)),
        _ => false,
    }
}

/// Properties of an observation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ObservationLooks {
    /// It looks like a failure.
    pub(crate) failed: bool,
    /// It looks like the output of a test run.
    pub(crate) tested: bool,
    /// All cues.
    pub(crate) cues: CueSet,
}

impl ObservationLooks {
    pub(crate) fn of(observation: &str) -> Self {
        let lowercased = Lowercased::of(observation);
        let names_a_test = prefix(lowercased.lower(), TEST_NAMED_WITHIN_CHARS).contains("test");
        let cues = CueSet::match_observation(&lowercased);
        let tested = names_a_test || cues.has(Cue::TestRun);
        Self { failed: cues.has(Cue::Failure), tested, cues }
    }
}

/// Phrases of a retraction: the text shown for it, and for each position the words that may be there, with only white
/// space between.
const RETRACTIONS: [(&str, &[&[&str]]); 6] = [
    (
        "the bug/issue/problem/fix is not/actually",
        &[&["bug", "issue", "problem", "fix"], &["is"], &["not", "actually"]],
    ),
    ("I was wrong", &[&["i"], &["was"], &["wrong"]]),
    ("never mind", &[&["never"], &["mind"]]),
    ("nevermind", &[&["nevermind"]]),
    ("disregard that", &[&["disregard"], &["that"]]),
    ("disregard my last", &[&["disregard"], &["my"], &["last"]]),
];

/// Length of the longest phrase above.
const RETRACTION_WORDS_MAX: usize = 3;

/// Letters beyond ASCII that case folding turns into ASCII, including those whose lower case is ASCII. Text with one of
/// them may contain a retraction without a [`Cue::Hint`].
const FOLDED_TO_ASCII: [char; 4] = [LOWERED_TO_ASCII[0], LOWERED_TO_ASCII[1], 'ı', 'ſ'];

/// Finds the first retraction.
fn retraction(thought: &str) -> Option<&'static str> {
    // The last consecutive words. Anything but white space between two words empties the row.
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
    RETRACTIONS.iter().find_map(|(shown, places)| {
        let suffix = row.len().checked_sub(places.len()).and_then(|at| row.get(at..))?;
        let mut all = suffix.iter().zip(*places);
        let fits = all.all(|(word, any)| any.iter().any(|one| equal_folded(word, one)));
        fits.then_some(*shown)
    })
}

/// Compares a word with an ASCII word by case folding. Three letters beyond ASCII fold to ASCII: the two Turkish i's
/// and the long s. (The Kelvin sign does too, but no word here contains a k.)
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
    use crate::analysis::phrases::{SHORT_OBSERVATION_BYTES, TABLE};

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

    /// The phrases of some cues.
    fn phrases(cues: &[Cue]) -> Vec<&'static str> {
        let rows = TABLE.iter().filter(|(cue, ..)| cues.contains(cue));
        rows.flat_map(|(.., phrases)| phrases.iter().copied()).collect()
    }

    #[test]
    fn every_retraction_is_found() {
        for (shown, places) in RETRACTIONS {
            for word in places[0] {
                let phrase: Vec<&str> = std::iter::once(word)
                    .chain(places[1..].iter().map(|words| &words[0]))
                    .copied()
                    .collect();
                let thought = phrase.join(" ");
                assert_eq!(
                    ThoughtWords::of(&Lowercased::of(&thought)).retraction,
                    Some(shown),
                    "{thought}"
                );
            }
        }
    }

    const COUNTED: [Cue; 4] = [Cue::Doubt, Cue::DoubtUnscored, Cue::Trouble, Cue::Hint];

    /// Texts made of the counted words: whole, cut and run together.
    fn wordy() -> impl Strategy<Value = String> {
        let words = phrases(&[&COUNTED[..], &[Cue::Failure, Cue::TestRun]].concat());
        let retractions = RETRACTIONS.iter().flat_map(|(_, places)| places.concat());
        let gaps = [
            " ", " ", " ", "\n", "\u{1c}", "\u{a0}", ",", "-", "", "é", "—", "ı", "ſ", "İ",
            "\u{212a}", "ed", "never", "test", "x", "_",
        ];
        let pieces: Vec<String> = words
            .into_iter()
            .chain(retractions)
            .chain(gaps)
            .flat_map(|piece| [piece.to_owned(), piece.to_uppercase(), format!("{piece} ")])
            .collect();
        prop::collection::vec(prop::sample::select(pieces), 0..40).prop_map(|all| all.concat())
    }

    proptest! {
        #[test]
        fn counts_equal_separate_searches(text in wordy()) {
            let found = ThoughtWords::of(&Lowercased::of(&text));
            let lower = text.to_lowercase();
            let kinds = |words: &[&str]| words.iter().filter(|word| lower.contains(**word)).count();
            let hedges: usize = phrases(&[Cue::Doubt, Cue::DoubtUnscored])
                .iter()
                .map(|word| lower.matches(word).count())
                .sum();
            prop_assert_eq!(found.hedges as usize, hedges);
            prop_assert_eq!(found.hedge_kinds as usize, kinds(&phrases(&[Cue::Doubt])));
            let troubles =
                kinds(&phrases(&[Cue::Trouble])) + kinds(&["failed"]);
            prop_assert_eq!(found.trouble_kinds as usize, troubles);
            prop_assert_eq!(found.retraction, retraction(&text));
            let early: String = lower.chars().take(TEST_NAMED_WITHIN_CHARS).collect();
            let failed = kinds(&phrases(&[Cue::Failure])) > 0;
            let tested = early.contains("test") || kinds(&phrases(&[Cue::TestRun])) > 0;
            for filler in [0, SHORT_OBSERVATION_BYTES] {
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
