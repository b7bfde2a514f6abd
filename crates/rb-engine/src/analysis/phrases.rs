//! All phrases that are searched for in thoughts and observations: one table, one automaton, one pass over each text.
//!
//! To search for something else, add a `Cue` and a row to `TABLE`.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::analysis::text::Lowercased;

/// Meaning of a phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cue {
    /// A hedge.
    Doubt,
    /// A hedge that only the `hedge` monitor counts, not the difficulty score.
    DoubtUnscored,
    /// A trouble word of the difficulty score.
    Trouble,
    /// A word of a retraction that is no trouble word.
    Hint,
    /// The agent corrects itself.
    Correction,
    /// An interjection with which a self-correction may begin.
    SecondThought,
    /// Something is reported missing.
    Missing,
    /// The conversation was compacted and continues from a summary.
    Compacted,
    /// The thought summarises the state of the work.
    SumUp,
    /// The agent announces a change of direction.
    NewDirection,
    /// The observation looks like a failure.
    Failure,
    /// The observation looks like the output of a test run.
    TestRun,
    /// The result is not ready yet.
    Waiting,
    /// Nothing was found.
    NothingFound,
    /// A check could not run.
    CouldNotRun,
}

/// Texts in which the phrases of a row count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Thought,
    /// The first characters of a thought.
    ThoughtStart(usize),
    Observation,
    /// Observations of at most [`SHORT_OBSERVATION_BYTES`].
    ShortObservation,
}

pub(crate) const SHORT_OBSERVATION_BYTES: usize = 600;

pub(crate) const SECOND_THOUGHTS: &[&str] =
    &["wait", "actually", "hmm", "hold on", "no wait", "oh"];
#[rustfmt::skip]
pub(crate) const CORRECTIONS: &[&str] = &[
    "i was wrong", "my mistake", "i made a mistake", "i misread", "i misunderstood", "that's not right",
    "that is not right", "that's wrong", "oops", "i forgot", "i missed", "on second thought", "scratch that",
    "i overlooked",
];
/// The first phrase in this order that a sentence contains determines the missing thing.
#[rustfmt::skip]
pub(crate) const MISSING: &[&str] = &[
    "does not exist", "doesn't exist", "do not exist", "not exist", "is missing", "are missing", "no such file",
    "there is no", "there's no", "not found", "could not find", "couldn't find", "cannot find", "can't find",
    "did not find", "is not there", "isn't there", "is not present", "nothing was found", "returned nothing",
    "no entry for", "no record", "no results for", "was never created",
];
/// "failed" counts as a second trouble word beside "fail".
pub(crate) const FAIL: &str = "fail";

/// All phrases, in lower case. The first four rows and the rows for [`Cue::Failure`] and [`Cue::TestRun`] are fixed by the
/// reference.
#[rustfmt::skip]
pub(crate) const TABLE: &[(Cue, Scope, &[&str])] = &[
    (Cue::Doubt, Scope::Thought, &[
        "hmm", "maybe", "perhaps", "possibly", "might", "could", "not sure", "uncertain", "i think", "probably",
        "actually", "wait", "reconsider",
    ]),
    (Cue::DoubtUnscored, Scope::Thought, &["let me think", "on second thought"]),
    (Cue::Trouble, Scope::Thought, &[FAIL, "error", "exception", "traceback", "crash", "broken", "bug", "issue", "problem"]),
    (Cue::Hint, Scope::Thought, &["fix", "wrong", "mind", "disregard"]),
    (Cue::Correction, Scope::Thought, CORRECTIONS),
    (Cue::SecondThought, Scope::Thought, SECOND_THOUGHTS),
    (Cue::Missing, Scope::Thought, MISSING),
    (Cue::Compacted, Scope::ThoughtStart(1_500), &[
        "continued from a previous conversation", "conversation was compacted", "context was compacted",
        "conversation is summarized below", "conversation has been summarized",
        "summary of the conversation so far", "previous context has been",
    ]),
    (Cue::SumUp, Scope::ThoughtStart(800), &[
        "so far", "to summarize", "to summarise", "in summary", "summary:", "summary of", "let me recap", "recap:",
        "to recap", "current state", "what we know", "what i know", "facts given", "progress update",
        "let me summarize", "let me take stock",
    ]),
    (Cue::NewDirection, Scope::ThoughtStart(600), &[
        "switching to", "switch to", "moving on to", "move on to", "instead of the task", "a detour",
        "before going on", "put this aside", "set this aside", "unrelated",
    ]),
    (Cue::Failure, Scope::Observation, &[
        "error", "exception", "traceback", "failed", "not found", "assertion", "invalid",
    ]),
    (Cue::TestRun, Scope::Observation, &["assertionerror", "failed ", "failures="]),
    (Cue::Waiting, Scope::ShortObservation, &[
        "running", "pending", "queued", "waiting", "in_progress", "in progress", "not ready", "building",
        "processing",
    ]),
    (Cue::NothingFound, Scope::ShortObservation, &[
        "no results", "no result", "no match", "not found", "nothing found", "0 results", "0 matches", "no such",
        "could not find", "couldn't find", "no files", "no records", "does not exist",
    ]),
    (Cue::CouldNotRun, Scope::ShortObservation, &[
        "command not found", "no module named", "no tests ran", "collected 0 items", "no such file",
        "is not recognized",
    ]),
];

/// Number of phrases in [`TABLE`].
pub(crate) const PHRASES: usize = {
    let (mut count, mut row) = (0, 0);
    while row < TABLE.len() {
        count += TABLE[row].2.len();
        row += 1;
    }
    count
};

/// One occurrence of a phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) cue: Cue,
    /// Position of the phrase in the table, below [`PHRASES`].
    pub(crate) number: usize,
    pub(crate) phrase: &'static str,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The automaton over all phrases, and the row and text of each.
struct Matcher {
    automaton: AhoCorasick,
    phrases: Vec<(Cue, Scope, &'static str)>,
}

/// `None` would mean that the automaton exceeds its size limits. No cue is reported then.
static MATCHER: LazyLock<Option<Matcher>> = LazyLock::new(|| {
    let rows = TABLE.iter();
    let phrases: Vec<_> = rows
        .flat_map(|(cue, scope, phrases)| phrases.iter().map(|phrase| (*cue, *scope, *phrase)))
        .collect();
    let mut builder = AhoCorasick::builder();
    let automaton = builder
        .kind(Some(AhoCorasickKind::DFA))
        .build(phrases.iter().map(|(.., phrase)| phrase))
        .ok()?;
    Some(Matcher { automaton, phrases })
});

/// All occurrences in a lower-case text, overlapping ones included, in the order of their ends.
fn hits(lower: &str) -> impl Iterator<Item = (Scope, Hit)> {
    MATCHER.iter().flat_map(move |matcher| {
        matcher.automaton.find_overlapping_iter(lower).map(|found| {
            let number = found.pattern().as_usize();
            let (cue, scope, phrase) = matcher.phrases[number];
            (scope, Hit { cue, number, phrase, start: found.start(), end: found.end() })
        })
    })
}

/// The cues that a text contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CueSet(u16);

impl CueSet {
    pub(crate) fn has(self, cue: Cue) -> bool {
        self.0 & 1 << cue as u16 != 0
    }

    fn insert(&mut self, cue: Cue) {
        self.0 |= 1 << cue as u16;
    }

    /// Searches a thought and reports every hit that counts.
    pub(crate) fn match_thought(thought: &Lowercased<'_>, mut report: impl FnMut(Hit)) -> Self {
        let mut cues = Self::default();
        for (scope, hit) in hits(thought.lower()) {
            let counts = match scope {
                Scope::Thought => true,
                Scope::ThoughtStart(chars_max) => hit.end <= thought.lower_len(chars_max),
                Scope::Observation | Scope::ShortObservation => false,
            };
            if counts {
                cues.insert(hit.cue);
                report(hit);
            }
        }
        cues
    }

    /// Searches an observation.
    pub(crate) fn match_observation(observation: &Lowercased<'_>) -> Self {
        // White space at the ends does not count towards the length.
        let is_short = observation.text().trim().len() <= SHORT_OBSERVATION_BYTES;
        let mut cues = Self::default();
        for (scope, hit) in hits(observation.lower()) {
            if scope == Scope::Observation || (is_short && scope == Scope::ShortObservation) {
                cues.insert(hit.cue);
                if !is_short && cues.has(Cue::Failure) && cues.has(Cue::TestRun) {
                    break; // Nothing else is searched for.
                }
            }
        }
        cues
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cues_count_in_their_scope() {
        let far = |cue: &str, chars: usize| format!("{}{cue}", "é ".repeat(chars / 2));
        for (text, cue, expected) in [
            ("Oops, that was it.".to_owned(), Cue::Correction, true),
            ("Actually no".to_owned(), Cue::SecondThought, true),
            ("a.py does NOT exist".to_owned(), Cue::Missing, true),
            ("a.py exists".to_owned(), Cue::Missing, false),
            ("job is queued".to_owned(), Cue::Waiting, false),
            (far("so far", 794), Cue::SumUp, true),
            (far("so far", 796), Cue::SumUp, false),
            (far("\u{212a} so far", 792), Cue::SumUp, true),
            (far("\u{212a} so far", 794), Cue::SumUp, false),
            (far("a detour", 592), Cue::NewDirection, true),
            (far("a detour", 594), Cue::NewDirection, false),
            (far("conversation was compacted", 1_474), Cue::Compacted, true),
            (far("conversation was compacted", 1_476), Cue::Compacted, false),
        ] {
            let cues = CueSet::match_thought(&Lowercased::of(&text), |_| {});
            assert_eq!(cues.has(cue), expected, "{cue:?} in {text:?}");
        }
        let blanks = "\n".repeat(SHORT_OBSERVATION_BYTES);
        for (text, cue, expected) in [
            ("job is queued", Cue::Waiting, true),
            ("no matches", Cue::NothingFound, true),
            ("bash: x: command not found", Cue::CouldNotRun, true),
            ("all is well", Cue::Failure, false),
            (&format!("no matches{blanks}"), Cue::NothingFound, true),
            (&format!("no matches{blanks}."), Cue::NothingFound, false),
            (&format!("{blanks}. not found"), Cue::Failure, true),
        ] {
            let cues = CueSet::match_observation(&Lowercased::of(text));
            assert_eq!(cues.has(cue), expected, "{cue:?} in {text:?}");
        }
    }

    #[test]
    fn overlapping_and_repeated_phrases_are_all_found() {
        let found: Vec<_> = hits("oh no wait").map(|(_, hit)| (hit.cue, hit.phrase)).collect();
        let expected = [
            (Cue::SecondThought, "oh"),
            (Cue::SecondThought, "no wait"),
            (Cue::Doubt, "wait"),
            (Cue::SecondThought, "wait"),
        ];
        assert_eq!(found, expected);
    }
}
