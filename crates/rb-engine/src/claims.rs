//! What the agent asserts in its own words: that it is done, that tests pass, that a file is missing.
//!
//! Plain phrase lists over short sentences. A sentence that asks, plans, supposes or denies asserts nothing.

use crate::text::{fingerprint, head, is_word};

/// Only so much of a thought is read for claims, from its end: conclusions stand there.
const READ_BYTES: usize = 4_000;
/// Longer sentences argue, they do not state.
const SENTENCE_WORDS_MAX: usize = 45;
/// A statement that can be held against another is short, and about something.
const STATEMENT_WORDS_MAX: usize = 14;
const STATEMENT_CONTENT_MIN: usize = 3;

/// Words that make a sentence a plan, a question, a wish or a guess.
const NOT_YET: [&str; 30] = [
    "if",
    "should",
    "would",
    "could",
    "might",
    "may",
    "let",
    "will",
    "need",
    "needs",
    "must",
    "try",
    "trying",
    "next",
    "once",
    "until",
    "unless",
    "whether",
    "hopefully",
    "ensure",
    "verify",
    "confirm",
    "check",
    "make",
    "when",
    "please",
    "before",
    "expect",
    "assuming",
    "want",
];
const DENIALS: [&str; 14] = [
    "not", "no", "never", "cannot", "can't", "isn't", "aren't", "doesn't", "don't", "didn't",
    "wasn't", "haven't", "without", "unable",
];

/// Calls back with each sentence that states something: its words in lower case.
pub(crate) fn each_statement(thought: &str, mut found: impl FnMut(&str, &[&str])) {
    let start = thought.ceil_char_boundary(thought.len().saturating_sub(READ_BYTES));
    for sentence in thought[start..].split_inclusive(['.', '!', '?', '\n', ';']) {
        if sentence.ends_with('?') || sentence.trim().is_empty() {
            continue;
        }
        let low = head(sentence, 400).to_lowercase();
        let words: Vec<&str> = low
            .split(|c: char| !(is_word(c) || c == '\''))
            .filter(|word| !word.is_empty())
            .collect();
        if !words.is_empty() && words.len() <= SENTENCE_WORDS_MAX {
            found(&low, &words);
        }
    }
}

fn is_plain_statement(words: &[&str]) -> bool {
    !words.iter().any(|word| NOT_YET.contains(word))
}

fn is_denied(words: &[&str]) -> bool {
    words.iter().any(|word| DENIALS.contains(word))
}

/// The agent says that the work is done.
pub(crate) fn says_done(thought: &str) -> bool {
    const DONE: [&str; 30] = [
        "is complete",
        "are complete",
        "is now complete",
        "is done",
        "all done",
        "is finished",
        "have completed",
        "has been completed",
        "i've completed",
        "completed the",
        "successfully completed",
        "have finished",
        "i've finished",
        "task complete",
        "have fixed",
        "i've fixed",
        "is fixed",
        "is now fixed",
        "has been fixed",
        "have implemented",
        "i've implemented",
        "have been implemented",
        "has been implemented",
        "in place",
        "is ready",
        "all set",
        "have successfully",
        "i've successfully",
        "done!",
        "i've updated",
    ];
    let mut done = false;
    each_statement(thought, |sentence, words| {
        done |= !is_denied(words)
            && is_plain_statement(words)
            && DONE.iter().any(|phrase| sentence.contains(phrase));
    });
    done || { thought.trim_start().to_lowercase().starts_with("done") }
}

/// The agent says that the tests pass.
pub(crate) fn says_tests_pass(thought: &str) -> bool {
    const PASS: [&str; 8] =
        ["pass", "passes", "passed", "passing", "green", "succeed", "succeeded", "succeeds"];
    const TESTS: [&str; 3] = ["tests", "suite", "specs"];
    const PART: [&str; 15] = [
        "some",
        "most",
        "other",
        "except",
        "but",
        "fail",
        "failed",
        "failing",
        "fails",
        "failure",
        "failures",
        "unrelated",
        "existing",
        "related",
        "relevant",
    ];
    let excused = head(thought, 2_000).to_lowercase();
    if ["unrelated", "pre-existing", "preexisting", "expected fail", "flaky"]
        .iter()
        .any(|word| excused.contains(word))
    {
        return false;
    }
    let mut pass = false;
    each_statement(thought, |_, words| {
        let says = words.iter().any(|word| PASS.contains(word))
            && words.iter().any(|word| TESTS.contains(word));
        let part = words.iter().any(|word| PART.contains(word));
        pass |= says && !part && !is_denied(words) && is_plain_statement(words);
    });
    pass
}

/// What a sentence states: a fingerprint of what it is about, and one of what it says of it.
///
/// An answer is about "the answer" and says its words. Any other short, plain sentence is about its own words and says
/// yes or no to them. Numbers are part of the words: another value is another statement, not the opposite.
pub(crate) fn subject(sentence: &str, words: &[&str]) -> Option<(u64, u64)> {
    const SMALL: [&str; 30] = [
        "the", "a", "an", "is", "are", "was", "were", "be", "been", "it", "this", "that", "there",
        "so", "and", "then", "i", "we", "of", "to", "in", "on", "do", "does", "did", "have", "has",
        "now", "also", "just",
    ];
    for opening in ["final answer is", "final answer:", "the answer is", "answer:"] {
        if let Some((before, answer)) = sentence.split_once(opening)
            && before.len() < 40
        {
            let answer: String = answer.chars().filter(|c| c.is_alphanumeric()).collect();
            return (!answer.is_empty()).then(|| (fingerprint("the answer"), fingerprint(&answer)));
        }
    }
    if words.len() > STATEMENT_WORDS_MAX || !is_plain_statement(words) {
        return None;
    }
    let mut content: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| !SMALL.contains(word) && !DENIALS.contains(word))
        .collect();
    if content.len() < STATEMENT_CONTENT_MIN {
        return None;
    }
    content.sort_unstable();
    let says = if is_denied(words) { "no" } else { "yes" };
    Some((fingerprint(&content.join(" ")), fingerprint(says)))
}

/// Looks like the name of a file: something, a dot, and a short ending.
pub(crate) fn names_a_file(word: &str) -> bool {
    word.rsplit_once('.').is_some_and(|(name, ending)| {
        let ends_well =
            (1..=5).contains(&ending.len()) && ending.bytes().all(|b| b.is_ascii_alphanumeric());
        ends_well && name.chars().any(char::is_alphabetic)
    })
}

/// How often the agent corrects itself in one thought.
pub(crate) fn corrections(thought: &str) -> u32 {
    const BACK: [&str; 14] = [
        "i was wrong",
        "my mistake",
        "i made a mistake",
        "i misread",
        "i misunderstood",
        "that's not right",
        "that is not right",
        "that's wrong",
        "oops",
        "i forgot",
        "i missed",
        "on second thought",
        "scratch that",
        "i overlooked",
    ];
    const OPENERS: [&str; 6] = ["wait", "actually", "hmm", "hold on", "no wait", "oh"];
    let mut count = 0_u32;
    for sentence in thought.split(['.', '!', '?', '\n', ';', '(', ')']) {
        let low = head(sentence.trim_start_matches(|c: char| !is_word(c)), 200).to_lowercase();
        let opens = OPENERS
            .iter()
            .any(|opener| low.strip_prefix(opener).is_some_and(|rest| !rest.starts_with(is_word)));
        count += u32::from(opens || BACK.iter().any(|phrase| low.contains(phrase)));
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn being_done_is_said_plainly() {
        let cases = [
            ("I have fixed the parser. All done!", true),
            ("The task is complete.", true),
            ("Done. The file is in /tmp.", true),
            ("I've implemented the retry logic and updated the docs.", true),
            ("Once the migration is complete, I will run the tests.", false),
            ("The fix is not complete.", false),
            ("Is the task complete?", false),
            ("Let me make sure the work is done.", false),
            ("Reading the configuration.", false),
        ];
        for (thought, done) in cases {
            assert_eq!(says_done(thought), done, "{thought}");
        }
    }

    #[test]
    fn passing_tests_are_claimed_plainly() {
        let cases = [
            ("All tests pass now.", true),
            ("The test suite is green.", true),
            ("12 tests passed.", true),
            ("The tests should pass now.", false),
            ("Some tests pass, others fail.", false),
            ("The tests do not pass.", false),
            ("If the tests pass, I will commit.", false),
            ("I will pass the tests folder as an argument.", false),
        ];
        for (thought, pass) in cases {
            assert_eq!(says_tests_pass(thought), pass, "{thought}");
        }
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
            assert_eq!(corrections(thought), count, "{thought}");
        }
    }
}
