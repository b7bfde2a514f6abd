//! Claims of the agent: that it is done, that tests pass, that something is missing.
//!
//! Word lists over short sentences. Questions, plans, suppositions, quotations and denials are not claims.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::analysis::phrases::{CORRECTIONS, Cue, CueSet, MISSING, SECOND_THOUGHTS};
use crate::analysis::sentences::{SENTENCE_WORDS_MAX, Sentences, split_sentences, words};
use crate::analysis::text::{any_in, fingerprint, fnv1a, is_word, prefix, searchable};

/// Maximum number of words and minimum number of content words of a statement.
const STATEMENT_WORDS_MAX: usize = 16;
const STATEMENT_CONTENT_MIN: usize = 2;

/// Words that make a clause a plan, a question, a wish or a guess.
#[rustfmt::skip]
const NOT_YET: &[&str] = &[
    "if", "should", "would", "could", "might", "may", "let", "will", "need", "needs", "must",
    "try", "trying", "next", "once", "until", "unless", "whether", "hopefully", "ensure", "verify",
    "confirm", "check", "make", "when", "please", "before", "expect", "assuming", "want", "i'll",
    "maybe", "perhaps", "probably", "seems", "why", "how", "guess", "suppose",
];
/// Negations.
#[rustfmt::skip]
const DENIALS: &[&str] = &[
    "not", "no", "never", "cannot", "can't", "isn't", "aren't", "doesn't", "don't", "didn't",
    "wasn't", "haven't", "hasn't", "won't", "without", "unable", "nothing",
];
/// Words without content.
#[rustfmt::skip]
const SMALL: &[&str] = &[
    "the", "a", "an", "is", "are", "was", "were", "be", "been", "it", "this", "that", "there",
    "so", "and", "then", "i", "we", "of", "to", "in", "on", "do", "does", "did", "have", "has",
    "now", "also", "just", "can", "really", "actually", "indeed",
];

/// Function of a word in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    NotYet,
    Denial,
    Small,
    Content,
}

/// The lists above by first letter, because every word of every short sentence is looked up.
static ROLES: LazyLock<[Vec<(&str, Role)>; 26]> = LazyLock::new(|| {
    let mut roles = [const { Vec::new() }; 26];
    for (words, role) in [(NOT_YET, Role::NotYet), (DENIALS, Role::Denial), (SMALL, Role::Small)] {
        for word in words {
            if let Some(row) = letter(word).and_then(|letter| roles.get_mut(letter)) {
                row.push((*word, role));
            }
        }
    }
    roles
});

/// Returns the position of the first letter in the alphabet.
fn letter(word: &str) -> Option<usize> {
    word.bytes().next().and_then(|first| first.checked_sub(b'a')).map(usize::from)
}

fn role(word: &str) -> Role {
    let row = letter(word).and_then(|letter| ROLES.get(letter));
    let known = row.and_then(|row| row.iter().find(|(known, _)| *known == word));
    known.map_or(Role::Content, |(_, role)| *role)
}

fn is_plain<'a>(words: impl IntoIterator<Item = &'a str>) -> bool {
    !words.into_iter().any(|word| role(word) == Role::NotYet)
}

fn is_denied(words: &[&str]) -> bool {
    words.iter().any(|word| role(word) == Role::Denial)
}

/// Reports whether the agent hands over its work: it reports and announces nothing more.
pub(crate) fn hands_over(thought: &str) -> bool {
    #[rustfmt::skip]
    const MORE_TO_DO: [&str; 18] = [
        "let me", "i'll", "i will", "next,", "next step", "now i", "going to", "let's", "need to", "remaining",
        "to do:", "plan:", "not complete", "not done", "not finished", "incomplete", "is left", "are left",
    ];
    let Some(last) = split_sentences(thought).last() else { return false };
    let end = thought.floor_char_boundary(thought.len().saturating_sub(400));
    let suffix = thought[end..].to_lowercase().replace("let me know", "");
    let asks = last.ends_with('?') || last.ends_with(':');
    !asks && words(&suffix).count() >= 2 && !MORE_TO_DO.iter().any(|phrase| suffix.contains(phrase))
}

/// Reports whether the agent claims that the tests pass.
pub(crate) fn claims_tests_pass(thought: &str, sentences: &Sentences) -> bool {
    #[rustfmt::skip]
    const PASS: [&str; 9] = [
        "pass", "passes", "passed", "passing", "green", "succeed", "succeeded", "succeeds", "clean",
    ];
    const TESTS: [&str; 3] = ["tests", "suite", "specs"];
    #[rustfmt::skip]
    const PART: [&str; 17] = [
        "some", "most", "other", "except", "but", "fail", "failed", "failing", "fails", "failure", "failures",
        "unrelated", "existing", "related", "relevant", "says", "criteria",
    ];
    const EXCUSES: [&str; 6] =
        ["unrelated", "pre-existing", "preexisting", "expected fail", "flaky", "criteria"];
    let is_about = |text: &str| any_in(&TESTS, text) && any_in(&PASS, text);
    if !is_about(sentences.text()) || any_in(&EXCUSES, &searchable(prefix(thought, 2_000))) {
        return false;
    }
    let mut pass = false;
    sentences.each(SENTENCE_WORDS_MAX, |sentence, _| {
        if pass || !is_about(sentence) {
            return;
        }
        let sentence = without_praise(sentence);
        let all: Vec<&str> = words(&sentence).collect();
        if all.iter().any(|word| PART.contains(word)) || is_denied(&all) {
            return;
        }
        pass = sentence.split(',').any(|clause| {
            let words: Vec<&str> = words(clause).collect();
            let tests = words.iter().position(|word| TESTS.contains(word));
            let passes = words.iter().position(|word| PASS.contains(word));
            let in_order = tests
                .zip(passes)
                .is_some_and(|(tests, passes)| tests < passes || clause.contains("all tests"));
            in_order && is_plain(words.iter().copied())
        });
    });
    pass
}

/// Removes phrases such as "without failures", which contain a negation but confirm success.
fn without_praise(sentence: &str) -> Cow<'_, str> {
    #[rustfmt::skip]
    const PRAISE: [&str; 10] = [
        "without any failures", "without failures", "without any errors", "without errors", "with no failures",
        "no failures", "zero failures", "0 failures", "0 failed", "no errors",
    ];
    let mut sentence = Cow::Borrowed(sentence);
    for praise in PRAISE {
        if sentence.contains(praise) {
            sentence = sentence.replace(praise, "").into();
        }
    }
    sentence
}

/// Reports the things that the agent claims are missing.
pub(crate) fn each_missing(sentences: &Sentences, cues: CueSet, mut found: impl FnMut(&str)) {
    let is_reported =
        cues.has(Cue::Missing) || (sentences.is_cut() && any_in(MISSING, sentences.text()));
    if !is_reported {
        return;
    }
    sentences.each(SENTENCE_WORDS_MAX, |sentence, words| {
        let sign = MISSING.iter().find_map(|sign| sentence.find(sign).map(|at| (at, sign.len())));
        let Some((at, len)) = sign
            .filter(|_| is_plain(words.iter().copied().take(8).filter(|word| *word != "could")))
        else {
            return;
        };
        // The thing is directly before the phrase or soon after it; "the key is missing in a.json" is about the key.
        let before = things(&sentence[..at]).last();
        let after = things(sentence.get(at + len..).unwrap_or("")).next();
        let in_something = sentence[at..].contains(" in ") || sentence[at..].contains(" from ");
        let close = before.filter(|thing| {
            sentence[..at].trim_end().trim_end_matches(['`', '\'']).ends_with(thing)
        });
        let starts = !sentence[..at].contains(|c: char| c.is_alphanumeric());
        let inner = before.filter(|_| words.len() <= 12 && close.is_none() && !in_something);
        if let Some(thing) =
            close.or(after.filter(|_| starts || (before.is_none() && !in_something))).or(inner)
        {
            found(thing);
        }
    });
}

/// Returns the words that identify one thing: files and ids.
fn things(text: &str) -> impl Iterator<Item = &str> {
    let edges = |c: char| !c.is_alphanumeric() && !matches!(c, '/' | '.' | '_');
    text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | '"'))
        .map(move |word| word.trim_matches(edges).trim_end_matches('.'))
        .filter(|word| names_a_thing(word))
}

/// Reports whether a word looks like a file or an id, rather than an ordinary word or a name in code.
pub(crate) fn names_a_thing(word: &str) -> bool {
    let has = |test: fn(char) -> bool| word.chars().any(test);
    let is_file = word.rsplit_once('.').is_some_and(|(name, ending)| {
        (1..=5).contains(&ending.len())
            && ending.bytes().all(|b| b.is_ascii_alphanumeric())
            && name.chars().any(char::is_alphanumeric)
    });
    word.chars().count() >= 4
        && (is_file || (has(|c| c.is_ascii_digit()) && has(char::is_alphabetic)))
}

/// Reports the statement of each sentence: a fingerprint of its subject, and its value.
///
/// The value of an answer is its words. The subject of any other short, plain sentence is its words, and the value is
/// yes or no. Numbers belong to the subject, so a different number is a different statement rather than the opposite.
pub(crate) fn each_statement(sentences: &Sentences, mut found: impl FnMut(u64, Cow<'static, str>)) {
    // Most thoughts contain no answer.
    let answers = sentences.text().contains("answer");
    for sentence in sentences.iter() {
        let given = if answers { answer_after(sentence) } else { None };
        let stated = match given {
            Some(answer) if words(sentence).nth(SENTENCE_WORDS_MAX).is_none() => {
                answer_of(answer).map(|it| (fingerprint("the answer"), it.into()))
            }
            Some(_) => None,
            None => yes_or_no(words(sentence)),
        };
        if let Some((subject, says)) = stated {
            found(subject, says);
        }
    }
}

/// Returns the text after the phrase that introduces an answer.
fn answer_after(sentence: &str) -> Option<&str> {
    ["final answer is", "final answer:", "the answer is", "answer:"].iter().find_map(|opening| {
        let (before, answer) = sentence.split_once(opening)?;
        (before.len() < 40).then_some(answer)
    })
}

fn yes_or_no<'w>(words: impl Iterator<Item = &'w str>) -> Option<(u64, Cow<'static, str>)> {
    // The sum of the hashes is independent of the order of the words.
    let (mut subject, mut content, mut denied) = (0_u64, 0, false);
    for (at, word) in words.enumerate() {
        match role(word) {
            _ if at == STATEMENT_WORDS_MAX => return None,
            Role::NotYet => return None,
            Role::Denial => denied = true,
            Role::Small => {}
            Role::Content => {
                content += 1;
                subject = subject.wrapping_add(fnv1a(stem(word).bytes()));
            }
        }
    }
    let says = if denied { "no" } else { "yes" };
    (content >= STATEMENT_CONTENT_MIN).then_some((subject, says.into()))
}

/// Returns the letters and digits of the first clause. References ("in the table") are not answers.
fn answer_of(text: &str) -> Option<String> {
    let clause = text.split([',', ';', '(']).next().unwrap_or(text);
    let first = words(clause).next()?;
    let points =
        ["in", "on", "at", "not", "that", "there", "to", "found", "given"].contains(&first);
    let answer: String = clause.chars().filter(|c| c.is_alphanumeric()).take(60).collect();
    (!points && !answer.is_empty()).then_some(answer)
}

/// Removes endings, so that "supports" equals "support".
fn stem(word: &str) -> &str {
    let cut = ["ing", "ed", "es", "s"]
        .iter()
        .find_map(|ending| word.strip_suffix(ending).filter(|stem| stem.len() >= 4));
    cut.unwrap_or(word).trim_end_matches('e')
}

/// Counts self-corrections in a thought, which is in lower case.
pub(crate) fn corrections(lower: &str, cues: CueSet) -> u32 {
    let takes_back = cues.has(Cue::Correction);
    if !takes_back && !cues.has(Cue::SecondThought) {
        return 0;
    }
    let mut count = 0_u32;
    for sentence in lower.split(['.', '!', '?', '\n', ';', '(', ')']) {
        let sentence = sentence.trim_start_matches(|c: char| !is_word(c));
        let opens = |opener: &&str| {
            sentence.strip_prefix(*opener).is_some_and(|rest| !rest.starts_with(is_word))
        };
        let counts =
            SECOND_THOUGHTS.iter().any(opens) || (takes_back && any_in(CORRECTIONS, sentence));
        count += u32::from(counts);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::text::Lowercased;

    #[test]
    fn completion_reports_announce_nothing_more() {
        let cases = [
            ("I have fixed the parser. All done!", true),
            ("Done. The file is in place.", true),
            ("I've added the retry logic. Let me know if you need anything else!", true),
            ("That fixes the crash. The function now handles empty lists.", true),
            ("The first part is done. Now I will do the second part.", false),
            ("I've implemented the parser. Let me run the tests.", false),
            ("Should I also update the docs?", false),
            ("Here is what I found:", false),
            ("", false),
        ];
        for (thought, expected) in cases {
            assert_eq!(hands_over(thought), expected, "{thought}");
        }
    }

    #[test]
    fn claims_of_passing_tests_are_recognised() {
        let cases = [
            ("All tests pass now.", true),
            ("The test suite is green, let me write the changelog.", true),
            ("The whole suite passes without failures.", true),
            ("It passes all tests.", true),
            ("12 tests passed.", true),
            ("The tests should pass now.", false),
            ("Some tests pass, others fail.", false),
            ("The tests do not pass.", false),
            ("If the tests pass, I will commit.", false),
            ("I will pass the tests folder as an argument.", false),
            ("The issue says that \"all tests pass\" on version 3.1.", false),
            ("The fixture passes a Decimal into the tests.", false),
        ];
        for (thought, pass) in cases {
            assert_eq!(claims_tests_pass(thought, &Sentences::of(thought)), pass, "{thought}");
        }
    }

    #[test]
    fn names_of_missing_things_are_extracted() {
        let cases: [(&str, Option<&str>); 9] = [
            (
                "The file settings.yaml does not exist, so I have to do it here.",
                Some("settings.yaml"),
            ),
            ("`docs/install.md` is missing from this repository.", Some("docs/install.md")),
            ("No such file as ./app/todo.sh exists, moving on.", Some("./app/todo.sh")),
            ("Nothing was found for DQST39.", Some("dqst39")),
            ("I could not find anything about noah_muller_9847.", Some("noah_muller_9847")),
            ("The lookup for 2024-05-23 returned nothing.", None),
            ("If settings.yaml does not exist, create it.", None),
            ("The timeout key is missing in config.json.", None),
            ("Everything is there.", None),
        ];
        for (thought, thing) in cases {
            let mut found = None;
            let cues = CueSet::match_thought(&Lowercased::of(thought), |_| {});
            each_missing(&Sentences::of(thought), cues, |thing| found = Some(thing.to_owned()));
            assert_eq!(found.as_deref(), thing, "{thought}");
        }
    }

    #[test]
    fn opposite_statements_have_equal_subjects() {
        let of = |sentence: &str| {
            let mut stated = None;
            each_statement(&Sentences::of(sentence), |subject, says| {
                stated = Some((subject, says));
            });
            stated
        };
        let opposite = |a: &str, b: &str| match (of(a), of(b)) {
            (Some(a), Some(b)) => a.0 == b.0 && a.1 != b.1,
            _ => false,
        };
        assert!(opposite("The parser supports this.", "The parser does not support this."));
        assert!(opposite("This order can be returned.", "This order cannot be returned."));
        assert!(opposite("The answer is 42.", "The answer is 17."));
        assert!(!opposite("The timeout is 10.", "The timeout is 20."));
        assert!(!opposite("The answer is in the table.", "The answer is 17."));
        assert!(!opposite("The cache might be cold.", "The cache is not cold."));
    }

    #[test]
    fn corrections_are_counted() {
        let cases = [
            ("Wait, that file is generated. Actually, it is not.", 2),
            ("I await the result.", 0),
            ("Waiting for the build.", 0),
            ("Hmm, I misread the error.", 1),
            ("", 0),
        ];
        for (thought, count) in cases {
            let lowercased = Lowercased::of(thought);
            let cues = CueSet::match_thought(&lowercased, |_| {});
            assert_eq!(corrections(lowercased.lower(), cues), count, "{thought}");
        }
    }
}
