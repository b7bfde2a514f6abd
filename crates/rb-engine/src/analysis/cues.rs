//! What readers listen for in a thought and in an answer: the lists of all of them, heard in one pass over each text.
//!
//! A list stands with its reader, who says what it is for. To listen for something more, write the list there, and give it a
//! name and a row here.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::analysis::phrases::{Hit, Phrases, count_of};
use crate::analysis::text::Lowercased;
use crate::analysis::{claims, history, lexicon};

/// What one of the lists stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cue {
    /// A word that counts in a thought, whatever it counts for.
    Counted,
    /// The thought takes something back.
    Correction,
    /// A sentence of it may begin with second thoughts.
    SecondThought,
    /// Something is not there.
    Missing,
    /// The conversation was cut and goes on from a summary.
    Compacted,
    /// The thought sums up where things stand.
    SumUp,
    /// It says that it changes direction.
    NewDirection,
    /// The answer looks like a failure.
    Failure,
    /// It looks like the output of a test run.
    TestRun,
    /// Something is not ready yet.
    Waiting,
    /// There is nothing.
    NothingFound,
    /// What should have run could not.
    CouldNotRun,
}

/// Phrases of a conversation that continues from a summary.
const COMPACTED: [&str; 7] = [
    "continued from a previous conversation",
    "conversation was compacted",
    "context was compacted",
    "conversation is summarized below",
    "conversation has been summarized",
    "summary of the conversation so far",
    "previous context has been",
];

/// Phrases that summarise the state of the work.
const SUMS_UP: [&str; 16] = [
    "so far",
    "to summarize",
    "to summarise",
    "in summary",
    "summary:",
    "summary of",
    "let me recap",
    "recap:",
    "to recap",
    "current state",
    "what we know",
    "what i know",
    "facts given",
    "progress update",
    "let me summarize",
    "let me take stock",
];

/// Phrases that announce a change of direction.
const DIRECTION_CHANGES: [&str; 10] = [
    "switching to",
    "switch to",
    "moving on to",
    "move on to",
    "instead of the task",
    "a detour",
    "before going on",
    "put this aside",
    "set this aside",
    "unrelated",
];

/// Phrases of a short output that show that a check could not run.
const COULD_NOT_RUN: [&str; 6] = [
    "command not found",
    "no module named",
    "no tests ran",
    "collected 0 items",
    "no such file",
    "is not recognized",
];

/// A list and what it stands for.
struct Row {
    cue: Cue,
    phrases: &'static [&'static str],
    /// It counts only if it stands within so many characters from the beginning.
    chars_max: usize,
}

const fn row(cue: Cue, phrases: &'static [&'static str]) -> Row {
    Row { cue, phrases, chars_max: usize::MAX }
}

const THOUGHT: [Row; 7] = [
    row(Cue::Counted, &lexicon::COUNTED),
    row(Cue::Correction, &claims::CORRECTIONS),
    row(Cue::SecondThought, &claims::SECOND_THOUGHTS),
    row(Cue::Missing, &claims::MISSING),
    Row { chars_max: 1_500, ..row(Cue::Compacted, &COMPACTED) },
    Row { chars_max: 800, ..row(Cue::SumUp, &SUMS_UP) },
    Row { chars_max: 600, ..row(Cue::NewDirection, &DIRECTION_CHANGES) },
];

const ANSWER: [Row; 5] = [
    row(Cue::Failure, &lexicon::FAILURES),
    row(Cue::TestRun, &lexicon::TEST_MARKS),
    row(Cue::Waiting, &history::WAITING),
    row(Cue::NothingFound, &history::NOTHING_FOUND),
    row(Cue::CouldNotRun, &COULD_NOT_RUN),
];

const fn lists<const ROWS: usize>(rows: &[Row; ROWS]) -> [&'static [&'static str]; ROWS] {
    let mut lists: [&[&str]; ROWS] = [&[]; ROWS];
    let mut at = 0;
    while at < ROWS {
        lists[at] = rows[at].phrases;
        at += 1;
    }
    lists
}

static IN_THOUGHT: Phrases<{ count_of(&lists(&THOUGHT)) }> = Phrases::of(&lists(&THOUGHT));
static IN_ANSWER: Phrases<{ count_of(&lists(&ANSWER)) }> = Phrases::of(&lists(&ANSWER));

/// Longer answers are only asked whether they look like a failure or like a test run.
pub(crate) const SHORT_ANSWER_BYTES: usize = 600;

/// Which cues a text holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CueSet(u16);

impl CueSet {
    pub(crate) fn has(self, cue: Cue) -> bool {
        self.0 & 1 << cue as u16 != 0
    }

    fn note(&mut self, cue: Cue) {
        self.0 |= 1 << cue as u16;
    }

    /// Listens to a thought, and calls back for every word that counts.
    pub(crate) fn match_thought(thought: &Lowercased<'_>, mut counted: impl FnMut(Hit)) -> Self {
        let mut heard = Self::default();
        IN_THOUGHT.each(thought.lower(), |hit| {
            let Row { cue, chars_max, .. } = THOUGHT[hit.list];
            if cue == Cue::Counted {
                counted(hit);
            } else if hit.end <= thought.lower_len(chars_max) {
                heard.note(cue);
            }
        });
        heard
    }

    /// Listens to an answer. Of a long one only [`Cue::Failure`] and [`Cue::TestRun`] are heard.
    pub(crate) fn match_observation(answer: &Lowercased<'_>) -> Self {
        // Readers measure an answer without the blanks around it.
        if answer.text().trim().len() > SHORT_ANSWER_BYTES {
            return Self::in_long_answer(answer.lower());
        }
        let mut heard = Self::default();
        IN_ANSWER.each(answer.lower(), |hit| heard.note(ANSWER[hit.list].cue));
        heard
    }

    /// Few words in many bytes: the other way around than everywhere else, and vector instructions pay.
    fn in_long_answer(lower: &str) -> Self {
        static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
            let words = lexicon::FAILURES.iter().chain(&lexicon::TEST_MARKS);
            // `None` cannot happen for so few words; an answer then looks like nothing instead of a panic.
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(words).ok()
        });
        let mut heard = Self::default();
        for hit in WORDS.iter().flat_map(|words| words.find_iter(lower)) {
            let is_one_of =
                |words: &[&str]| words.iter().any(|word| lower[hit.start()..].starts_with(word));
            if is_one_of(&lexicon::FAILURES) {
                heard.note(Cue::Failure);
            }
            if is_one_of(&lexicon::TEST_MARKS) {
                heard.note(Cue::TestRun);
            }
            if heard.has(Cue::Failure) && heard.has(Cue::TestRun) {
                break;
            }
        }
        heard
    }
}

/// Whether a lower-case text that is no thought says what a thought may say.
pub(crate) fn says(cue: Cue, lower: &str) -> bool {
    let mut says = false;
    IN_THOUGHT.each(lower, |hit| says |= THOUGHT[hit.list].cue == cue);
    says
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cues_count_where_they_stand() {
        let far = |cue: &str, chars: usize| format!("{}{cue}", "é ".repeat(chars / 2));
        for (text, cue, expected) in [
            ("Oops, that was it.".to_owned(), Cue::Correction, true),
            ("Actually no".to_owned(), Cue::SecondThought, true),
            ("a.py does NOT exist".to_owned(), Cue::Missing, true),
            ("a.py exists".to_owned(), Cue::Missing, false),
            (far("so far", 794), Cue::SumUp, true),
            (far("so far", 796), Cue::SumUp, false),
            (far("\u{212a} so far", 792), Cue::SumUp, true),
            (far("\u{212a} so far", 794), Cue::SumUp, false),
            (far("a detour", 592), Cue::NewDirection, true),
            (far("a detour", 594), Cue::NewDirection, false),
            (far("conversation was compacted", 1_474), Cue::Compacted, true),
            (far("conversation was compacted", 1_476), Cue::Compacted, false),
        ] {
            let heard = CueSet::match_thought(&Lowercased::of(&text), |_| {});
            assert_eq!(heard.has(cue), expected, "{cue:?} in {text:?}");
        }
        for (text, cue, expected) in [
            ("job is queued", Cue::Waiting, true),
            ("no matches", Cue::NothingFound, true),
            ("bash: x: command not found", Cue::CouldNotRun, true),
            ("all is well", Cue::Failure, false),
            (&format!("no matches{}", "\n".repeat(SHORT_ANSWER_BYTES)), Cue::NothingFound, true),
        ] {
            let heard = CueSet::match_observation(&Lowercased::of(text));
            assert_eq!(heard.has(cue), expected, "{cue:?} in {text:?}");
        }
    }
}
